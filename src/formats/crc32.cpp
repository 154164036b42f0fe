#include "formats/crc32.hpp"

#include <isa-l/crc.h>

namespace cingulum {
namespace {

// Polynomials over GF(2) of degree below 32, modulo that of the CRC; reflected: the highest bit is the coefficient
// of 1.
constexpr std::uint32_t one = 0x80000000U;
constexpr std::uint32_t x_to_the_8 = one >> 8U;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1U) ^ ((a & 1U) != 0 ? 0xedb88320U : 0U);
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1U, b = times_x(b)) {
    if ((a & one) != 0) sum ^= b;
  }
  return sum;
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  if (bytes.empty()) return previous;
  return ::crc32_gzip_refl(previous, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// A CRC is the remainder of the bytes as a polynomial: n bytes behind it multiply it by x^(8n), and remainders add up.
// The bits that are inverted before and after cancel out of the sum.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept {
  std::uint32_t power = x_to_the_8;
  for (; second_bytes != 0; second_bytes >>= 1U, power = product(power, power)) {
    if ((second_bytes & 1U) != 0) first = product(first, power);
  }
  return first ^ second;
}

}  // namespace cingulum
