// Decodes messages and encodes them again, for the comparison with Python's msgpack: a line of hexadecimal digits in, a
// line "ok HEX" or "error TEXT" out.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "ring/wire_types.hpp"
#include "support/hex_bytes.hpp"

int main() {
  using namespace cingulum::ring;
  BufferTable table(16);
  WireRegistry registry(&table);
  if (!wire_test::add_all(registry)) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    const auto decoded = registry.decode(cingulum::test::from_hex(line));
    std::vector<std::byte> again;
    if (!decoded) {
      fmt::print("error {}\n", decoded.error().message());
    } else if (const auto encoded = registry.encode(decoded->message, decoded->envelope, again); !encoded) {
      fmt::print("error {}\n", encoded.error().message());
    } else {
      fmt::print("ok {}\n", cingulum::test::to_hex(again));
    }
    if (decoded) wire_test::release_buffers(decoded->message, table);
    std::fflush(stdout);
  }
  return table.statistics().live == 0 ? 0 : 1;
}
