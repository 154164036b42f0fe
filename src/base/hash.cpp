#include "base/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace cingulum {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

struct Hash128::State {
  State() {
    if (value == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(value);
  }
  ~State() { XXH3_freeState(value); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* value = XXH3_createState();
};

Hash128::Hash128() : state_(std::make_unique<State>()) {}
Hash128::~Hash128() = default;
Hash128::Hash128(Hash128&&) noexcept = default;
Hash128& Hash128::operator=(Hash128&&) noexcept = default;

void Hash128::add(std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) XXH3_128bits_update(state_->value, bytes.data(), bytes.size());
}

void Hash128::add(std::string_view text) noexcept {
  add(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Hash128::hex() const {
  return to_hex(XXH3_128bits_digest(state_->value));
}

std::string hash_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_hex(std::string_view text) {
  return hash_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace cingulum
