#include "ring/edge/uuid.hpp"

#include <fmt/format.h>

#include <random>

namespace cingulum::ring {

std::array<std::byte, 16> Uuid::bytes() const noexcept {
  std::array<std::byte, 16> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::byte>(low >> (56 - 8 * i));
  }
  return bytes;
}

Uuid Uuid::from_bytes(const std::byte* sixteen) noexcept {
  Uuid uuid;
  for (std::size_t i = 0; i < 8; ++i) {
    uuid.high = uuid.high << 8U | std::to_integer<std::uint64_t>(sixteen[i]);
    uuid.low = uuid.low << 8U | std::to_integer<std::uint64_t>(sixteen[8 + i]);
  }
  return uuid;
}

std::string Uuid::text() const {
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, high >> 16U & 0xffffU, high & 0xffffU,
                     low >> 48U, low & 0xffffffffffffU);
}

std::optional<Uuid> Uuid::parse(std::string_view text) noexcept {
  Uuid uuid;
  unsigned digits = 0;
  for (const char letter : text) {
    unsigned value = 0;
    if (letter == '-') continue;
    if (letter >= '0' && letter <= '9') {
      value = static_cast<unsigned>(letter - '0');
    } else if (letter >= 'a' && letter <= 'f') {
      value = static_cast<unsigned>(letter - 'a') + 10;
    } else if (letter >= 'A' && letter <= 'F') {
      value = static_cast<unsigned>(letter - 'A') + 10;
    } else {
      return std::nullopt;
    }
    if (++digits > 32) return std::nullopt;
    std::uint64_t& half = digits <= 16 ? uuid.high : uuid.low;
    half = half << 4U | value;
  }
  if (digits != 32) return std::nullopt;
  return uuid;
}

Uuid Uuid::random() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  Uuid uuid{generator(), generator()};
  uuid.high = (uuid.high & ~std::uint64_t{0xf000}) | 0x4000;
  uuid.low = (uuid.low & ~(std::uint64_t{3} << 62U)) | std::uint64_t{2} << 62U;
  return uuid;
}

}  // namespace cingulum::ring
