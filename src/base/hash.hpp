// 128-bit XXH3 of bytes, as 32 hexadecimal digits: identities of cache entries, inputs in sidecars, outputs in tests.
// It finds accidents and tells contents apart; it does not protect against an attacker.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cingulum {

// Parts are added in order; ("ab", "c") and ("a", "bc") are equal, so a key made of fields needs separators or sizes.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(Hash128&&) noexcept;
  Hash128& operator=(Hash128&&) noexcept;

  void add(std::span<const std::byte> bytes) noexcept;
  void add(std::string_view text) noexcept;
  [[nodiscard]] std::string hex() const;  // of all that was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string hash_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string hash_hex(std::string_view text);

}  // namespace cingulum
