// Identities of messages as other processes know them: 128 bits, written as RFC 4122 has it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cingulum::ring {

struct Uuid {
  std::uint64_t high = 0;  // the first eight bytes, most significant first
  std::uint64_t low = 0;

  friend bool operator==(const Uuid&, const Uuid&) = default;

  [[nodiscard]] std::array<std::byte, 16> bytes() const noexcept;
  [[nodiscard]] static Uuid from_bytes(const std::byte* sixteen) noexcept;

  [[nodiscard]] std::string text() const;  // 8-4-4-4-12, lower case
  // 32 hexadecimal digits, with or without hyphens.
  [[nodiscard]] static std::optional<Uuid> parse(std::string_view text) noexcept;

  // Version 4: from the system's randomness at the thread's first call, then by a generator that it seeded.
  [[nodiscard]] static Uuid random();
};

}  // namespace cingulum::ring
