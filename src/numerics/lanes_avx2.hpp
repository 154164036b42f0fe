// The 32 lanes of the contract as four registers of eight, for hosts with AVX2. The same primitives as
// lanes_portable.hpp, which states what each does; include it only from files compiled with -mavx2.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>

#include "numerics/lanes_portable.hpp"

namespace cingulum::numerics {

struct Avx2Lanes {
  // part[i] holds lanes 8i to 8i + 7.
  struct Float {
    __m256 part[4];
  };
  struct Word {
    __m256i part[4];
  };
  struct Mask {
    __m256 part[4];
  };

  static Float broadcast(float value) {
    const __m256 v = _mm256_set1_ps(value);
    return {{v, v, v, v}};
  }
  static Word broadcast(std::uint32_t value) {
    const __m256i v = _mm256_set1_epi32(static_cast<std::int32_t>(value));
    return {{v, v, v, v}};
  }
  static Float load(const float* first) {
    return {
        {_mm256_loadu_ps(first), _mm256_loadu_ps(first + 8), _mm256_loadu_ps(first + 16), _mm256_loadu_ps(first + 24)}};
  }
  static Float load_row(const float* slots, std::uint32_t row, std::uint32_t count) {
    const std::uint32_t first = lane_count * row;
    if (first + lane_count <= count) return load(slots + first);
    // A masked load reads nothing where the mask is not set.
    const Word numbers = slots_of_row(row);
    const __m256i end = _mm256_set1_epi32(static_cast<std::int32_t>(count));
    Float result;
    for (int i = 0; i < 4; ++i) {
      const __m256i wanted = _mm256_cmpgt_epi32(end, numbers.part[i]);
      result.part[i] = _mm256_maskload_ps(slots + first + 8 * i, wanted);
    }
    return result;
  }
  static void store(float* first, const Float& a) {
    for (int i = 0; i < 4; ++i) _mm256_storeu_ps(first + 8 * i, a.part[i]);
  }
  static Word slots_of_row(std::uint32_t row) {
    const __m256i low = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                         _mm256_set1_epi32(static_cast<std::int32_t>(lane_count * row)));
    return {{low, _mm256_add_epi32(low, _mm256_set1_epi32(8)), _mm256_add_epi32(low, _mm256_set1_epi32(16)),
             _mm256_add_epi32(low, _mm256_set1_epi32(24))}};
  }

  static Float add(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_add_ps(a.part[i], b.part[i]); });
  }
  static Float subtract(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_sub_ps(a.part[i], b.part[i]); });
  }
  static Float multiply(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_mul_ps(a.part[i], b.part[i]); });
  }

  static Mask greater(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm256_cmp_ps(a.part[i], b.part[i], _CMP_GT_OQ); });
  }
  static Mask equal(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm256_cmp_ps(a.part[i], b.part[i], _CMP_EQ_OQ); });
  }
  static Mask less(const Word& a, const Word& b) {
    // AVX2 compares signed integers; turning the highest bit over maps the unsigned order onto theirs.
    const __m256i top = _mm256_set1_epi32(INT32_MIN);
    return each<Mask>([&](int i) {
      return _mm256_castsi256_ps(
          _mm256_cmpgt_epi32(_mm256_xor_si256(b.part[i], top), _mm256_xor_si256(a.part[i], top)));
    });
  }
  static Mask both(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return _mm256_and_ps(a.part[i], b.part[i]); });
  }
  static Mask either(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return _mm256_or_ps(a.part[i], b.part[i]); });
  }
  static Float select(const Mask& mask, const Float& if_set, const Float& otherwise) {
    return each<Float>([&](int i) { return _mm256_blendv_ps(otherwise.part[i], if_set.part[i], mask.part[i]); });
  }
  static Word select(const Mask& mask, const Word& if_set, const Word& otherwise) {
    return each<Word>([&](int i) {
      return _mm256_castps_si256(
          _mm256_blendv_ps(_mm256_castsi256_ps(otherwise.part[i]), _mm256_castsi256_ps(if_set.part[i]), mask.part[i]));
    });
  }
  static std::uint32_t ballot(const Mask& mask) {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(mask.part[i])) << (8 * i);
    return bits;
  }

  template <std::uint32_t distance>
  static Float exchange(const Float& a) {
    if constexpr (distance >= 8) {
      return each<Float>([&](int i) { return a.part[i ^ static_cast<int>(distance / 8)]; });
    } else {
      return each<Float>([&](int i) { return exchange_within<distance>(a.part[i]); });
    }
  }
  template <std::uint32_t distance>
  static Word exchange(const Word& a) {
    const Float moved = exchange<distance>(each<Float>([&](int i) { return _mm256_castsi256_ps(a.part[i]); }));
    return each<Word>([&](int i) { return _mm256_castps_si256(moved.part[i]); });
  }
  template <std::uint32_t distance>
  static Float add_from_below(const Float& a) {
    // Through memory: the shift crosses registers, and the scan has only five of these.
    alignas(32) float lane[lane_count];
    for (int i = 0; i < 4; ++i) _mm256_store_ps(lane + 8 * i, a.part[i]);
    alignas(32) float sum[lane_count];
    for (std::uint32_t l = 0; l < lane_count; ++l) sum[l] = l >= distance ? lane[l - distance] + lane[l] : lane[l];
    return load(sum);
  }
  static float get(const Float& a, std::uint32_t lane) {
    alignas(32) float lanes[lane_count];
    for (int i = 0; i < 4; ++i) _mm256_store_ps(lanes + 8 * i, a.part[i]);
    return lanes[lane];
  }
  static std::uint32_t get(const Word& a, std::uint32_t lane) {
    alignas(32) std::uint32_t lanes[lane_count];
    for (int i = 0; i < 4; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 8 * i), a.part[i]);
    return lanes[lane];
  }

  static float fold_sum(const Float& partial) {
    const __m256 by_16_low = _mm256_add_ps(partial.part[0], partial.part[2]);
    const __m256 by_16_high = _mm256_add_ps(partial.part[1], partial.part[3]);
    const __m256 by_8 = _mm256_add_ps(by_16_low, by_16_high);
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_movehdup_ps(by_2)));
  }

 private:
  template <class Result, class Part>
  static Result each(Part&& part) {
    return {{part(0), part(1), part(2), part(3)}};
  }

  template <std::uint32_t distance>
  static __m256 exchange_within(__m256 a) {
    if constexpr (distance == 4) return _mm256_permute2f128_ps(a, a, 1);
    if constexpr (distance == 2) return _mm256_permute_ps(a, 0x4e);
    if constexpr (distance == 1) return _mm256_permute_ps(a, 0xb1);
  }
};

}  // namespace cingulum::numerics

#endif
