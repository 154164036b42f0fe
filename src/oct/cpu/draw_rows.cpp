#include "oct/cpu/draw_rows.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CGL_DRAWS_BY_AVX 1
#else
#define CGL_DRAWS_BY_AVX 0
#endif

namespace cingulum::oct {
namespace {

using numerics::PhiloxBlock;
using numerics::PhiloxKey;

#if CGL_DRAWS_BY_AVX

// A word of a counter in each slot of 64 bits: the product of the low halves is both words of philox4x32_10 at once,
// and what stands in the high half of a word does not enter the next product. Compilers multiply 64 bits, at some
// sixteen nanoseconds a block instead of two (AVX-512, 2.0 GHz).
constexpr std::uint32_t multiplier_0 = 0xd2511f53u;
constexpr std::uint32_t multiplier_1 = 0xcd9e8d57u;
constexpr std::uint32_t weyl_0 = 0x9e3779b9u;
constexpr std::uint32_t weyl_1 = 0xbb67ae85u;
constexpr int rounds = 10;
// Registers of each word that take turns, so that products do not wait for each other.
constexpr std::size_t groups = 4;

CGL_TARGET_AVX512 void draw_by_avx512(PhiloxKey key, const std::uint32_t* index, const PhiloxBlock& others,
                                      DrawnWords& words) {
  constexpr std::size_t lanes = 8;
  const __m512i factor_0 = _mm512_set1_epi64(multiplier_0);
  const __m512i factor_1 = _mm512_set1_epi64(multiplier_1);
  for (std::size_t first = 0; first < draws_at_once; first += groups * lanes) {
    __m512i a[groups], b[groups], c[groups], d[groups];
    for (std::size_t g = 0; g < groups; ++g) {
      a[g] = _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index + first + g * lanes)));
      b[g] = _mm512_set1_epi64(others.word[1]);
      c[g] = _mm512_set1_epi64(others.word[2]);
      d[g] = _mm512_set1_epi64(others.word[3]);
    }
    PhiloxKey round_key = key;
    for (int round = 0; round < rounds; ++round) {
      const __m512i low = _mm512_set1_epi64(round_key.low);
      const __m512i high = _mm512_set1_epi64(round_key.high);
      for (std::size_t g = 0; g < groups; ++g) {
        const __m512i product_0 = _mm512_mul_epu32(a[g], factor_0);
        const __m512i product_1 = _mm512_mul_epu32(c[g], factor_1);
        a[g] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product_1, 32), b[g]), low);
        b[g] = product_1;
        c[g] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product_0, 32), d[g]), high);
        d[g] = product_0;
      }
      round_key.low += weyl_0;
      round_key.high += weyl_1;
    }
    for (std::size_t g = 0; g < groups; ++g) {
      const __m512i drawn[4] = {a[g], b[g], c[g], d[g]};
      for (std::size_t w = 0; w < 4; ++w) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(words.word[w] + first + g * lanes),
                            _mm512_cvtepi64_epi32(drawn[w]));
      }
    }
  }
}

CGL_TARGET_AVX2 void draw_by_avx2(PhiloxKey key, const std::uint32_t* index, const PhiloxBlock& others,
                                  DrawnWords& words) {
  constexpr std::size_t lanes = 4;
  const __m256i factor_0 = _mm256_set1_epi64x(multiplier_0);
  const __m256i factor_1 = _mm256_set1_epi64x(multiplier_1);
  const __m256i low_halves = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  constexpr std::size_t registers_of_word = 2;  // sixteen registers hold no more
  for (std::size_t first = 0; first < draws_at_once; first += registers_of_word * lanes) {
    __m256i a[registers_of_word], b[registers_of_word], c[registers_of_word], d[registers_of_word];
    for (std::size_t g = 0; g < registers_of_word; ++g) {
      a[g] = _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(index + first + g * lanes)));
      b[g] = _mm256_set1_epi64x(others.word[1]);
      c[g] = _mm256_set1_epi64x(others.word[2]);
      d[g] = _mm256_set1_epi64x(others.word[3]);
    }
    PhiloxKey round_key = key;
    for (int round = 0; round < rounds; ++round) {
      const __m256i low = _mm256_set1_epi64x(round_key.low);
      const __m256i high = _mm256_set1_epi64x(round_key.high);
      for (std::size_t g = 0; g < registers_of_word; ++g) {
        const __m256i product_0 = _mm256_mul_epu32(a[g], factor_0);
        const __m256i product_1 = _mm256_mul_epu32(c[g], factor_1);
        a[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product_1, 32), b[g]), low);
        b[g] = product_1;
        c[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product_0, 32), d[g]), high);
        d[g] = product_0;
      }
      round_key.low += weyl_0;
      round_key.high += weyl_1;
    }
    for (std::size_t g = 0; g < registers_of_word; ++g) {
      const __m256i drawn[4] = {a[g], b[g], c[g], d[g]};
      for (std::size_t w = 0; w < 4; ++w) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(words.word[w] + first + g * lanes),
                         _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(drawn[w], low_halves)));
      }
    }
  }
}

#endif

}  // namespace

void draw_blocks(numerics::PhiloxKey key, const std::uint32_t* index, const numerics::DrawCounter& others,
                 std::uint32_t block, DrawnWords& words, [[maybe_unused]] numerics::SimdLevel level) {
  PhiloxBlock counter = numerics::counter_words(others, block);
#if CGL_DRAWS_BY_AVX
  if (level == numerics::SimdLevel::avx512) return draw_by_avx512(key, index, counter, words);
  if (level == numerics::SimdLevel::avx2) return draw_by_avx2(key, index, counter, words);
#endif
  for (std::size_t i = 0; i < draws_at_once; ++i) {
    counter.word[0] = index[i];
    const PhiloxBlock drawn = numerics::philox4x32_10(counter, key);
    for (std::size_t w = 0; w < 4; ++w) words.word[w][i] = drawn.word[w];
  }
}

}  // namespace cingulum::oct
