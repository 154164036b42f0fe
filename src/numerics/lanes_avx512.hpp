// The 32 lanes of the contract as two registers of sixteen (one for work that each lane does alone), for hosts with
// AVX-512 (F, DQ, BW, VL). The same primitives as lanes_portable.hpp, which states what each does; include it only from
// files compiled with these flags. Equal to: PortableLanes. Held by: the tests of lanes_test_body.hpp,
// TrackKernels.give_the_same_bits_with_all_instructions_of_this_cpu.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512DQ__)

#include <immintrin.h>

#include <cstdint>

#include "numerics/lanes_portable.hpp"

namespace cingulum::numerics {

template <unsigned registers>
struct Avx512LanesOf {
  static constexpr std::uint32_t width = 16 * registers;
  static constexpr int parts = static_cast<int>(registers);
  using Narrow = Avx512LanesOf<1>;
  using Probes = Avx512LanesOf<3>;
  static constexpr bool serial = true;
  using Wide = Avx512LanesOf<2>;

  // part[i] holds lanes 16i to 16i + 15.
  struct Float {
    __m512 part[registers];
  };
  struct Word {
    __m512i part[registers];
  };
  struct Mask {
    __mmask16 part[registers];
  };

  static Float broadcast(float value) {
    const __m512 v = _mm512_set1_ps(value);
    return each<Float>([&](int) { return v; });
  }
  static Word broadcast(std::uint32_t value) {
    const __m512i v = _mm512_set1_epi32(static_cast<std::int32_t>(value));
    return each<Word>([&](int) { return v; });
  }
  static Float load(const float* first) {
    return each<Float>([&](int i) { return _mm512_loadu_ps(first + 16 * i); });
  }
  static Float load_float16(const std::uint16_t* first) {
    return each<Float>(
        [&](int i) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + 16 * i))); });
  }
  static Float load_row(const float* slots, std::uint32_t row, std::uint32_t count) {
    const std::uint32_t first = lane_count * row;
    if (first + lane_count <= count) return load(slots + first);
    const std::uint32_t wanted = count > first ? 0xffffffffu >> (lane_count - (count - first)) : 0u;
    return each<Float>([&](int i) {
      return _mm512_maskz_loadu_ps(static_cast<__mmask16>(wanted >> (16 * i)), slots + first + 16 * i);
    });
  }
  static void store(float* first, const Float& a) {
    for (int i = 0; i < parts; ++i) _mm512_storeu_ps(first + 16 * i, a.part[i]);
  }
  static Float gather(const float* table, const Word& index) {
    return each<Float>([&](int i) { return _mm512_i32gather_ps(index.part[i], table, 4); });
  }
  static Word gather(const std::uint32_t* table, const Word& index) {
    return each<Word>([&](int i) { return _mm512_i32gather_epi32(index.part[i], table, 4); });
  }
  static Float gather_number(const float* table, const Word& row, std::uint32_t stride, const Word& column,
                             bool small) {
    if (small) return gather(table, add(multiply(row, broadcast(stride)), column));
    float lanes[width];
    for (std::uint32_t l = 0; l < width; ++l) {
      lanes[l] = table[static_cast<std::uint64_t>(get(row, l)) * stride + get(column, l)];
    }
    return load(lanes);
  }
  static Float gather_float16(const std::uint16_t* table, const Word& row, std::uint32_t stride, const Word& column,
                              bool small) {
    if (small) {
      const Word index = add(multiply(row, broadcast(stride)), column);
      return each<Float>([&](int i) {
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_i32gather_epi32(index.part[i], table, 2)));
      });
    }
    float lanes[width];
    for (std::uint32_t l = 0; l < width; ++l) {
      lanes[l] = finite_float16_to_float(table[static_cast<std::uint64_t>(get(row, l)) * stride + get(column, l)]);
    }
    return load(lanes);
  }
  template <class Function>
  static Float map(const Float& a, Function&& function) {
    alignas(64) float lanes[width];
    store(lanes, a);
    for (std::uint32_t l = 0; l < width; ++l) lanes[l] = function(lanes[l]);
    return load(lanes);
  }
  template <class Body>
  static void each_lane(const Mask& mask, Body&& body) {
    for (std::uint32_t l = 0; l < width; ++l) {
      if (((static_cast<std::uint32_t>(mask.part[l / 16]) >> (l % 16)) & 1u) != 0u) body(l);
    }
  }
  static float own(const Float& a, std::uint32_t lane) { return get(a, lane); }
  static void barrier() {}
  static Word slots_of_row(std::uint32_t row) {
    const __m512i low = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                         _mm512_set1_epi32(static_cast<std::int32_t>(lane_count * row)));
    return each<Word>([&](int i) { return _mm512_add_epi32(low, _mm512_set1_epi32(16 * i)); });
  }

  static Float add(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_add_ps(a.part[i], b.part[i]); });
  }
  static Float subtract(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_sub_ps(a.part[i], b.part[i]); });
  }
  static Float multiply(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_mul_ps(a.part[i], b.part[i]); });
  }
  static Float divide(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_div_ps(a.part[i], b.part[i]); });
  }
  static Float square_root(const Float& a) {
    return each<Float>([&](int i) { return _mm512_sqrt_ps(a.part[i]); });
  }
  static Float floor_of_lanes(const Float& a) {
    return each<Float>(
        [&](int i) { return _mm512_roundscale_ps(a.part[i], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); });
  }
  static Float magnitude(const Float& a) {
    return each<Float>([&](int i) { return _mm512_abs_ps(a.part[i]); });
  }
  // The instructions give the second operand unless the first is greater (less): exactly the rule.
  static Float greater_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_max_ps(a.part[i], b.part[i]); });
  }
  static Float lesser_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm512_min_ps(a.part[i], b.part[i]); });
  }

  static Word add(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_add_epi32(a.part[i], b.part[i]); });
  }
  static Word subtract(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_sub_epi32(a.part[i], b.part[i]); });
  }
  static Word multiply(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_mullo_epi32(a.part[i], b.part[i]); });
  }
  static Word high_product_with(const Word& a, std::uint32_t b) {
    // The products of even lanes and of odd lanes, 64 bits each; their upper words, put together.
    const __m512i factor = _mm512_set1_epi32(static_cast<std::int32_t>(b));
    return each<Word>([&](int i) {
      const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a.part[i], factor), 32);
      const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.part[i], 32), factor);
      return _mm512_mask_blend_epi32(static_cast<__mmask16>(0xaaaa), even, odd);
    });
  }
  static Word bits_and(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_and_si512(a.part[i], b.part[i]); });
  }
  static Word bits_or(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_or_si512(a.part[i], b.part[i]); });
  }
  static Word bits_xor(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm512_xor_si512(a.part[i], b.part[i]); });
  }
  template <int by>
  static Word shift_left(const Word& a) {
    return each<Word>([&](int i) { return _mm512_slli_epi32(a.part[i], by); });
  }
  template <int by>
  static Word shift_right(const Word& a) {
    return each<Word>([&](int i) { return _mm512_srli_epi32(a.part[i], by); });
  }
  static Word bits_of(const Float& a) {
    return each<Word>([&](int i) { return _mm512_castps_si512(a.part[i]); });
  }
  static Float float_of_bits(const Word& a) {
    return each<Float>([&](int i) { return _mm512_castsi512_ps(a.part[i]); });
  }
  static Float float_of_integer(const Word& a) {
    return each<Float>([&](int i) { return _mm512_cvtepi32_ps(a.part[i]); });
  }
  static Word integer_of_float(const Float& a) {
    return each<Word>([&](int i) { return _mm512_cvttps_epi32(a.part[i]); });
  }

  static Mask at_least(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm512_cmp_ps_mask(a.part[i], b.part[i], _CMP_GE_OQ); });
  }
  static Mask greater(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm512_cmp_ps_mask(a.part[i], b.part[i], _CMP_GT_OQ); });
  }
  static Mask equal(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm512_cmp_ps_mask(a.part[i], b.part[i], _CMP_EQ_OQ); });
  }
  static Mask less(const Word& a, const Word& b) {
    return each<Mask>([&](int i) { return _mm512_cmplt_epu32_mask(a.part[i], b.part[i]); });
  }
  static Mask both(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return _kand_mask16(a.part[i], b.part[i]); });
  }
  static Mask either(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return _kor_mask16(a.part[i], b.part[i]); });
  }
  static Float select(const Mask& mask, const Float& if_set, const Float& otherwise) {
    return each<Float>([&](int i) { return _mm512_mask_blend_ps(mask.part[i], otherwise.part[i], if_set.part[i]); });
  }
  static Word select(const Mask& mask, const Word& if_set, const Word& otherwise) {
    return each<Word>([&](int i) { return _mm512_mask_blend_epi32(mask.part[i], otherwise.part[i], if_set.part[i]); });
  }
  static Mask mask_of_bits(std::uint32_t bits) {
    return each<Mask>([&](int i) { return static_cast<__mmask16>(bits >> (16 * i)); });
  }
  template <class Predicate>
  static std::uint32_t filter(std::uint32_t bits, Predicate&& predicate) {
    std::uint32_t kept = 0;
    for (std::uint32_t left = bits; left != 0u; left &= left - 1u) {
      const std::uint32_t lane = lowest_set_bit(left);
      kept |= (predicate(lane) ? 1u : 0u) << lane;
    }
    return kept;
  }
  static bool any(const Mask& mask) {
    __mmask16 all = mask.part[0];
    for (int i = 1; i < parts; ++i) all = _kor_mask16(all, mask.part[i]);
    return _cvtmask16_u32(all) != 0u;
  }
  static std::uint32_t ballot(const Mask& mask) {
    std::uint32_t bits = 0;
    for (int i = 0; i < parts; ++i) bits |= static_cast<std::uint32_t>(mask.part[i]) << (16 * i);
    return bits;
  }

  template <std::uint32_t distance>
  static Float exchange(const Float& a) {
    if constexpr (distance == 16) {
      return {{a.part[1], a.part[0]}};
    } else {
      return each<Float>([&](int i) { return exchange_within<distance>(a.part[i]); });
    }
  }
  template <std::uint32_t distance>
  static Word exchange(const Word& a) {
    return bits_of(exchange<distance>(float_of_bits(a)));
  }
  template <std::uint32_t distance>
  static Float add_from_below(const Float& a) {
    if constexpr (distance == 16) {
      return {{a.part[0], _mm512_add_ps(a.part[0], a.part[1])}};
    } else {
      // Lanes without a lane below keep what they have: adding a zero would turn -0.0 over.
      constexpr auto with = static_cast<__mmask16>(0xffffu << distance);
      constexpr int from = 16 - static_cast<int>(distance);
      const __m512i low = _mm512_castps_si512(a.part[0]);
      const __m512i high = _mm512_castps_si512(a.part[1]);
      const __m512 moved_low = _mm512_castsi512_ps(_mm512_alignr_epi32(low, _mm512_setzero_si512(), from));
      const __m512 moved_high = _mm512_castsi512_ps(_mm512_alignr_epi32(high, low, from));
      return {{_mm512_mask_add_ps(a.part[0], with, moved_low, a.part[0]), _mm512_add_ps(moved_high, a.part[1])}};
    }
  }
  static float get(const Float& a, std::uint32_t lane) {
    alignas(64) float lanes[width];
    store(lanes, a);
    return lanes[lane];
  }
  static std::uint32_t get(const Word& a, std::uint32_t lane) {
    alignas(64) std::uint32_t lanes[width];
    for (int i = 0; i < parts; ++i) _mm512_store_si512(lanes + 16 * i, a.part[i]);
    return lanes[lane];
  }

  static float fold_sum(const Float& partial) {
    const __m512 by_16 = _mm512_add_ps(partial.part[0], partial.part[1]);
    const __m256 by_8 = _mm256_add_ps(_mm512_castps512_ps256(by_16), _mm512_extractf32x8_ps(by_16, 1));
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_movehdup_ps(by_2)));
  }

 private:
  template <class Result, class Part>
  static Result each(Part&& part) {
    Result result;
    for (int i = 0; i < parts; ++i) result.part[i] = part(i);
    return result;
  }

  template <std::uint32_t distance>
  static __m512 exchange_within(__m512 a) {
    if constexpr (distance == 8) return _mm512_shuffle_f32x4(a, a, 0x4e);
    if constexpr (distance == 4) return _mm512_shuffle_f32x4(a, a, 0xb1);
    if constexpr (distance == 2) return _mm512_permute_ps(a, 0x4e);
    if constexpr (distance == 1) return _mm512_permute_ps(a, 0xb1);
  }
};

using Avx512Lanes = Avx512LanesOf<2>;

}  // namespace cingulum::numerics

#endif
