// Decodes messages and encodes them again, for the comparison with Python's msgpack: a line of hexadecimal digits in, a
// line "ok HEX" or "error TEXT" out.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "ring/wire_types.hpp"

namespace {

// By a table, since the long form of the test sends hundreds of megabytes.
constexpr std::string_view digits = "0123456789abcdef";

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digits.find(text[i]) << 4 | digits.find(text[i + 1])));
  }
  return bytes;
}

std::string to_hex(const std::vector<std::byte>& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace

int main() {
  using namespace cingulum::ring;
  BufferTable table(16);
  WireRegistry registry(&table);
  if (!wire_test::add_all(registry)) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    const auto decoded = registry.decode(from_hex(line));
    std::vector<std::byte> again;
    if (!decoded) {
      fmt::print("error {}\n", decoded.error().message());
    } else if (const auto encoded = registry.encode(decoded->message, decoded->envelope, again); !encoded) {
      fmt::print("error {}\n", encoded.error().message());
    } else {
      fmt::print("ok {}\n", to_hex(again));
    }
    if (decoded) wire_test::release_buffers(decoded->message, table);
    std::fflush(stdout);
  }
  return table.statistics().live == 0 ? 0 : 1;
}
