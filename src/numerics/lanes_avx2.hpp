// The 32 lanes of the contract as four registers of eight (one register for work that each lane does alone), for hosts
// with AVX2. The same primitives as lanes_portable.hpp, which states what each does; include it only from files
// compiled with -mavx2. Equal to: PortableLanes. Held by: the tests of lanes_test_body.hpp,
// HostParity.avx2_has_the_bits_of_the_portable_path, TrackKernels.give_the_same_bits_with_all_instructions_of_this_cpu.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>

#include "numerics/lanes_portable.hpp"

namespace cingulum::numerics {

template <unsigned registers>
struct Avx2LanesOf {
  static constexpr std::uint32_t width = 8 * registers;
  static constexpr int parts = static_cast<int>(registers);
  using Narrow = Avx2LanesOf<1>;
  using Probes = Avx2LanesOf<5>;
  static constexpr bool serial = true;
  using Wide = Avx2LanesOf<4>;

  // part[i] holds lanes 8i to 8i + 7.
  struct Float {
    __m256 part[registers];
  };
  struct Word {
    __m256i part[registers];
  };
  struct Mask {
    __m256 part[registers];
  };

  static Float broadcast(float value) {
    const __m256 v = _mm256_set1_ps(value);
    return each<Float>([&](int) { return v; });
  }
  static Word broadcast(std::uint32_t value) {
    const __m256i v = _mm256_set1_epi32(static_cast<std::int32_t>(value));
    return each<Word>([&](int) { return v; });
  }
  static Float load(const float* first) {
    return each<Float>([&](int i) { return _mm256_loadu_ps(first + 8 * i); });
  }
  static Float load_float16(const std::uint16_t* first) {
    return each<Float>([&](int i) {
      return of_float16(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first + 8 * i))));
    });
  }
  static Float load_row(const float* slots, std::uint32_t row, std::uint32_t count) {
    const std::uint32_t first = lane_count * row;
    if (first + lane_count <= count) return load(slots + first);
    // A masked load reads nothing where the mask is not set.
    const Word numbers = slots_of_row(row);
    const __m256i end = _mm256_set1_epi32(static_cast<std::int32_t>(count));
    Float result;
    for (int i = 0; i < parts; ++i) {
      const __m256i wanted = _mm256_cmpgt_epi32(end, numbers.part[i]);
      result.part[i] = _mm256_maskload_ps(slots + first + 8 * i, wanted);
    }
    return result;
  }
  static void store(float* first, const Float& a) {
    for (int i = 0; i < parts; ++i) _mm256_storeu_ps(first + 8 * i, a.part[i]);
  }
  static Float gather(const float* table, const Word& index) {
    return each<Float>([&](int i) { return _mm256_i32gather_ps(table, index.part[i], 4); });
  }
  static Word gather(const std::uint32_t* table, const Word& index) {
    return each<Word>(
        [&](int i) { return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index.part[i], 4); });
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
        const __m256i two = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index.part[i], 2);
        return of_float16(_mm256_and_si256(two, _mm256_set1_epi32(0xffff)));
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
    alignas(32) float lanes[width];
    store(lanes, a);
    for (std::uint32_t l = 0; l < width; ++l) lanes[l] = function(lanes[l]);
    return load(lanes);
  }
  template <class Body>
  static void each_lane(const Mask& mask, Body&& body) {
    for (int i = 0; i < parts; ++i) {
      const auto bits = static_cast<std::uint32_t>(_mm256_movemask_ps(mask.part[i]));
      for (std::uint32_t l = 0; l < 8; ++l) {
        if (((bits >> l) & 1u) != 0u) body(8 * static_cast<std::uint32_t>(i) + l);
      }
    }
  }
  static float own(const Float& a, std::uint32_t lane) { return get(a, lane); }
  static void barrier() {}
  static Word slots_of_row(std::uint32_t row) {
    const __m256i low = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                         _mm256_set1_epi32(static_cast<std::int32_t>(lane_count * row)));
    return each<Word>([&](int i) { return _mm256_add_epi32(low, _mm256_set1_epi32(8 * i)); });
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

  static Float divide(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_div_ps(a.part[i], b.part[i]); });
  }
  static Float square_root(const Float& a) {
    return each<Float>([&](int i) { return _mm256_sqrt_ps(a.part[i]); });
  }
  static Float floor_of_lanes(const Float& a) {
    return each<Float>([&](int i) { return _mm256_floor_ps(a.part[i]); });
  }
  static Float magnitude(const Float& a) {
    const __m256 without_sign = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX));
    return each<Float>([&](int i) { return _mm256_and_ps(a.part[i], without_sign); });
  }
  // The instructions give the second operand unless the first is greater (less): exactly the rule.
  static Float greater_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_max_ps(a.part[i], b.part[i]); });
  }
  static Float lesser_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return _mm256_min_ps(a.part[i], b.part[i]); });
  }

  static Word add(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_add_epi32(a.part[i], b.part[i]); });
  }
  static Word subtract(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_sub_epi32(a.part[i], b.part[i]); });
  }
  static Word multiply(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_mullo_epi32(a.part[i], b.part[i]); });
  }
  static Word high_product_with(const Word& a, std::uint32_t b) {
    // The products of even lanes and of odd lanes, 64 bits each; their upper words, put together.
    const __m256i factor = _mm256_set1_epi32(static_cast<std::int32_t>(b));
    return each<Word>([&](int i) {
      const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a.part[i], factor), 32);
      const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.part[i], 32), factor);
      return _mm256_blend_epi32(even, odd, 0xaa);
    });
  }
  static Word bits_and(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_and_si256(a.part[i], b.part[i]); });
  }
  static Word bits_or(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_or_si256(a.part[i], b.part[i]); });
  }
  static Word bits_xor(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return _mm256_xor_si256(a.part[i], b.part[i]); });
  }
  template <int by>
  static Word shift_left(const Word& a) {
    return each<Word>([&](int i) { return _mm256_slli_epi32(a.part[i], by); });
  }
  template <int by>
  static Word shift_right(const Word& a) {
    return each<Word>([&](int i) { return _mm256_srli_epi32(a.part[i], by); });
  }
  static Word bits_of(const Float& a) {
    return each<Word>([&](int i) { return _mm256_castps_si256(a.part[i]); });
  }
  static Float float_of_bits(const Word& a) {
    return each<Float>([&](int i) { return _mm256_castsi256_ps(a.part[i]); });
  }
  static Float float_of_integer(const Word& a) {
    return each<Float>([&](int i) { return _mm256_cvtepi32_ps(a.part[i]); });
  }
  static Word integer_of_float(const Float& a) {
    return each<Word>([&](int i) { return _mm256_cvttps_epi32(a.part[i]); });
  }

  static Mask at_least(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return _mm256_cmp_ps(a.part[i], b.part[i], _CMP_GE_OQ); });
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
  static Mask mask_of_bits(std::uint32_t bits) {
    const __m256i spread = _mm256_set1_epi32(static_cast<std::int32_t>(bits));
    const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return each<Mask>([&](int i) { return has_bit(spread, _mm256_slli_epi32(low, 8 * i)); });
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
    int bits = 0;
    for (int i = 0; i < parts; ++i) bits |= _mm256_movemask_ps(mask.part[i]);
    return bits != 0;
  }
  static std::uint32_t ballot(const Mask& mask) {
    std::uint32_t bits = 0;
    for (int i = 0; i < parts; ++i) bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(mask.part[i])) << (8 * i);
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
    if constexpr (distance >= 8) {
      constexpr int below = static_cast<int>(distance / 8);
      return each<Float>([&](int i) { return i >= below ? _mm256_add_ps(a.part[i - below], a.part[i]) : a.part[i]; });
    } else {
      // Lanes without a lane below keep what they have: adding a zero would turn -0.0 over.
      constexpr int without = (1 << distance) - 1;
      return {{_mm256_blend_ps(_mm256_add_ps(moved_up<distance>(_mm256_setzero_ps(), a.part[0]), a.part[0]), a.part[0],
                               without),
               _mm256_add_ps(moved_up<distance>(a.part[0], a.part[1]), a.part[1]),
               _mm256_add_ps(moved_up<distance>(a.part[1], a.part[2]), a.part[2]),
               _mm256_add_ps(moved_up<distance>(a.part[2], a.part[3]), a.part[3])}};
    }
  }
  static float get(const Float& a, std::uint32_t lane) {
    alignas(32) float lanes[width];
    for (int i = 0; i < parts; ++i) _mm256_store_ps(lanes + 8 * i, a.part[i]);
    return lanes[lane];
  }
  static std::uint32_t get(const Word& a, std::uint32_t lane) {
    alignas(32) std::uint32_t lanes[width];
    for (int i = 0; i < parts; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 8 * i), a.part[i]);
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
    Result result;
    for (int i = 0; i < parts; ++i) result.part[i] = part(i);
    return result;
  }

  // finite_float16_to_float of words that hold a float16 each.
  static __m256 of_float16(__m256i float16s) {
    const __m256i magnitude = _mm256_and_si256(float16s, _mm256_set1_epi32(0x7fff));
    const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 13), _mm256_set1_epi32(0x38000000));
    const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-24f));
    const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x400), magnitude);
    const __m256 size = _mm256_blendv_ps(_mm256_castsi256_ps(normal), subnormal, _mm256_castsi256_ps(is_subnormal));
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(float16s, _mm256_set1_epi32(0x8000)), 16);
    return _mm256_or_ps(size, _mm256_castsi256_ps(sign));
  }

  static __m256 has_bit(__m256i bits, __m256i bit) {
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(bits, bit), bit));
  }

  // The eight lanes that end `distance` lanes before the end of `here`, `below` being the register before it.
  template <std::uint32_t distance>
  static __m256 moved_up(__m256 below, __m256 here) {
    const __m256i middle = _mm256_permute2x128_si256(_mm256_castps_si256(below), _mm256_castps_si256(here), 0x21);
    if constexpr (distance == 4) return _mm256_castsi256_ps(middle);
    return _mm256_castsi256_ps(
        _mm256_alignr_epi8(_mm256_castps_si256(here), middle, 16 - 4 * static_cast<int>(distance)));
  }

  template <std::uint32_t distance>
  static __m256 exchange_within(__m256 a) {
    if constexpr (distance == 4) return _mm256_permute2f128_ps(a, a, 1);
    if constexpr (distance == 2) return _mm256_permute_ps(a, 0x4e);
    if constexpr (distance == 1) return _mm256_permute_ps(a, 0xb1);
  }
};

using Avx2Lanes = Avx2LanesOf<4>;

}  // namespace cingulum::numerics

#endif
