// Decodes messages and encodes them again, for the comparison with Python's msgpack: a line of hexadecimal digits in, a
// line "ok HEX" or "error TEXT" out.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "ring/wire_types.hpp"

int main() {
  using namespace cingulum::ring;
  BufferTable table(16);
  WireRegistry registry(&table);
  if (!wire_test::add_all(registry)) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
    const auto decoded = registry.decode(bytes);
    std::vector<std::byte> again;
    if (!decoded) {
      fmt::print("error {}\n", decoded.error().message());
    } else if (const auto encoded = registry.encode(decoded->message, decoded->envelope, again); !encoded) {
      fmt::print("error {}\n", encoded.error().message());
    } else {
      std::string hex;
      for (const std::byte byte : again) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
      fmt::print("ok {}\n", hex);
    }
    if (decoded) wire_test::release_buffers(decoded->message, table);
    std::fflush(stdout);
  }
  return table.statistics().live == 0 ? 0 : 1;
}
