// Bytes as hexadecimal digits and back, for probes that speak with a Python script in lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cingulum::test {

// By a table, since long tests send hundreds of megabytes.
constexpr std::string_view hex_digits = "0123456789abcdef";

inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(hex_digits.find(text[i]) << 4 | hex_digits.find(text[i + 1])));
  }
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += hex_digits[std::to_integer<unsigned>(byte) >> 4];
    text += hex_digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace cingulum::test
