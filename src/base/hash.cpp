#include "base/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#if defined(__x86_64__) && defined(__linux__)
// The library's function that looks for wider instructions, two to four times as fast; null where it was built without.
extern "C" __attribute__((weak)) XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t* state, const void* bytes,
                                                                            size_t size);
#define CGL_HASH_DISPATCHED 1
#endif

namespace cingulum {
namespace {

void update(XXH3_state_t* state, std::span<const std::byte> bytes) {
#if defined(CGL_HASH_DISPATCHED)
  if (XXH3_128bits_update_dispatch != nullptr) {
    XXH3_128bits_update_dispatch(state, bytes.data(), bytes.size());
    return;
  }
#endif
  XXH3_128bits_update(state, bytes.data(), bytes.size());
}

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
  if (!bytes.empty()) update(state_->value, bytes);
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
