// The hash of Hash128 of long content, taken by several threads. XXH3 adds numbers that depend on the bytes alone, over
// blocks of 1024 bytes, and stirs the sums between two blocks. So any thread makes the sums of any block, and one
// thread strings them together in order, 64 bytes for each block and a few operations. Used for the hashes of files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cingulum {

constexpr std::size_t hash_block_bytes = 1024;
// The bytes that the hash takes at a time; the last of a content are taken once more at its end.
constexpr std::size_t hash_stripe_bytes = 64;
// Shorter content is hashed in another way: Hash128.
constexpr std::size_t least_block_hashed_bytes = 2 * hash_block_bytes;

using HashBlockSums = std::array<std::uint64_t, 8>;

// The sums of whole blocks, one after the other in `bytes`. any thread
void sum_hash_blocks(std::span<const std::byte> bytes, std::span<HashBlockSums> sums) noexcept;

class HashChain {
 public:
  // In the order of the content, all of its blocks but the last: that one, be it whole or not, is given to hex().
  void add(std::span<const HashBlockSums> sums) noexcept;

  // The hash of `bytes` in all, at least least_block_hashed_bytes. `end` are the last of them: the last block, and
  // before it as many as make a stripe at least.
  [[nodiscard]] std::string hex(std::uint64_t bytes, std::span<const std::byte> end) const;

 private:
  static constexpr std::uint64_t prime32_1 = 0x9e3779b1U, prime32_2 = 0x85ebca77U, prime32_3 = 0xc2b2ae3dU;
  static constexpr std::uint64_t prime64_1 = 0x9e3779b185ebca87U, prime64_2 = 0xc2b2ae3d27d4eb4fU,
                                 prime64_3 = 0x165667b19e3779f9U, prime64_4 = 0x85ebca77c2b2ae63U,
                                 prime64_5 = 0x27d4eb2f165667c5U;

  HashBlockSums sums_ = {prime32_3, prime64_1, prime64_2, prime64_3, prime64_4, prime32_2, prime64_5, prime32_1};
};

}  // namespace cingulum
