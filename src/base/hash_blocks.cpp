// The form of XXH3 (Yann Collet, xxHash 0.8) for long inputs, with its default secret.
#include "base/hash_blocks.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <tuple>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cingulum {
namespace {

static_assert(std::endian::native == std::endian::little, "words of the hash are little-endian");

constexpr std::size_t secret_bytes = 192;
alignas(64) constexpr unsigned char secret[secret_bytes] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

constexpr std::size_t stripes_of_block = hash_block_bytes / hash_stripe_bytes;
constexpr std::size_t secret_step = 8;  // from one stripe to the next
constexpr std::size_t lanes = std::tuple_size_v<HashBlockSums>;

std::uint64_t word(const void* bytes, std::size_t index) {
  std::uint64_t value;
  std::memcpy(&value, static_cast<const char*>(bytes) + 8 * index, sizeof(value));
  return value;
}

void add_stripe(HashBlockSums& sums, const std::byte* bytes, const unsigned char* key) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::uint64_t value = word(bytes, i);
    const std::uint64_t keyed = value ^ word(key, i);
    sums[i ^ 1U] += value;
    sums[i] += (keyed & 0xffffffffU) * (keyed >> 32U);
  }
}

void sum_blocks(const std::byte* bytes, std::span<HashBlockSums> sums) {
  for (HashBlockSums& block : sums) {
    block = {};
    for (std::size_t s = 0; s < stripes_of_block; ++s, bytes += hash_stripe_bytes) {
      add_stripe(block, bytes, secret + s * secret_step);
    }
  }
}

#if defined(__x86_64__)
// The same sums, four lanes to a register.
__attribute__((target("avx2"))) void sum_blocks_avx2(const std::byte* bytes, std::span<HashBlockSums> sums) {
  constexpr int other_half = 0x4e;  // exchanges the two words of each pair
  for (HashBlockSums& block : sums) {
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::size_t s = 0; s < stripes_of_block; ++s, bytes += hash_stripe_bytes) {
      for (std::size_t half = 0; half < 2; ++half) {
        const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32 * half));
        const __m256i key = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(secret + s * secret_step + 32 * half));
        const __m256i keyed = _mm256_xor_si256(value, key);
        const __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
        sum[half] = _mm256_add_epi64(sum[half], _mm256_add_epi64(product, _mm256_shuffle_epi32(value, other_half)));
      }
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.data()), sum[0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.data() + 4), sum[1]);
  }
}
#endif

// The product in 128 bits, its halves laid over each other.
std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

std::uint64_t merged(const HashBlockSums& sums, const unsigned char* key, std::uint64_t start) {
  std::uint64_t result = start;
  for (std::size_t i = 0; i < lanes; i += 2)
    result += folded_product(sums[i] ^ word(key, i), sums[i + 1] ^ word(key, i + 1));
  result ^= result >> 37U;
  result *= 0x165667919e3779f9U;
  return result ^ (result >> 32U);
}

}  // namespace

void sum_hash_blocks(std::span<const std::byte> bytes, std::span<HashBlockSums> sums) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return sum_blocks_avx2(bytes.data(), sums);
#endif
  sum_blocks(bytes.data(), sums);
}

void HashChain::add(std::span<const HashBlockSums> sums) noexcept {
  const unsigned char* const key = secret + secret_bytes - hash_stripe_bytes;
  HashBlockSums own = sums_;
  for (const HashBlockSums& block : sums) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint64_t sum = own[i] + block[i];
      own[i] = (sum ^ (sum >> 47U) ^ word(key, i)) * prime32_1;
    }
  }
  sums_ = own;
}

std::string HashChain::hex(std::uint64_t bytes, std::span<const std::byte> end) const {
  HashBlockSums sums = sums_;
  const auto last_block = static_cast<std::size_t>((bytes - 1) % hash_block_bytes + 1);
  const std::byte* stripe = end.data() + (end.size() - last_block);
  for (std::size_t s = 0; s < (last_block - 1) / hash_stripe_bytes; ++s, stripe += hash_stripe_bytes) {
    add_stripe(sums, stripe, secret + s * secret_step);
  }
  constexpr std::size_t key_of_last = secret_bytes - hash_stripe_bytes - 7;
  add_stripe(sums, end.data() + (end.size() - hash_stripe_bytes), secret + key_of_last);
  constexpr std::size_t key_of_merging = 11;
  const std::uint64_t low = merged(sums, secret + key_of_merging, bytes * prime64_1);
  const std::uint64_t high =
      merged(sums, secret + secret_bytes - hash_stripe_bytes - key_of_merging, ~(bytes * prime64_2));
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace cingulum
