// The 32 lanes of the contract as four registers of eight (one register for work that each lane does alone), for hosts
// with AVX2: what lanes_registers.hpp asks of one register. Include it only from files compiled with -mavx2. Equal to:
// PortableLanes. Held by: the tests of lanes_test_body.hpp, HostParity.avx2_has_the_bits_of_the_portable_path,
// TrackKernels.give_the_same_bits_with_all_instructions_of_this_cpu.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_registers.hpp"

namespace cingulum::numerics {

struct Avx2Registers {
  static constexpr int lanes = 8;
  using Float = __m256;
  using Word = __m256i;
  using Mask = __m256;

  static Float broadcast(float value) { return _mm256_set1_ps(value); }
  static Word broadcast(std::uint32_t value) { return _mm256_set1_epi32(static_cast<std::int32_t>(value)); }
  static Word lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static Float load(const float* first) { return _mm256_loadu_ps(first); }
  static Float load_float16(const std::uint16_t* first) {
    return of_float16(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first))));
  }
  // The numbers of the slots of the row that begins at `first`, eight of them, and the one that ends the slots.
  struct Wanted {
    Word numbers, end;
  };
  static Wanted wanted_of_row(std::uint32_t first, std::uint32_t count) {
    return {add(lane_numbers(), broadcast(first)), broadcast(count)};
  }
  // A masked load reads nothing where the mask is not set.
  static Float load_wanted(const float* first, const Wanted& wanted, int part) {
    const Word numbers = _mm256_add_epi32(wanted.numbers, _mm256_set1_epi32(8 * part));
    return _mm256_maskload_ps(first, _mm256_cmpgt_epi32(wanted.end, numbers));
  }
  static void store(float* first, Float a) { _mm256_storeu_ps(first, a); }
  static void store(std::uint32_t* first, Word a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), a); }
  static Float gather(const float* table, Word index) { return _mm256_i32gather_ps(table, index, 4); }
  static Word gather(const std::uint32_t* table, Word index) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index, 4);
  }
  static Float gather_float16(const std::uint16_t* table, Word index) {
    const __m256i two = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index, 2);
    return of_float16(_mm256_and_si256(two, _mm256_set1_epi32(0xffff)));
  }

  static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float subtract(Float a, Float b) { return _mm256_sub_ps(a, b); }
  static Float multiply(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float divide(Float a, Float b) { return _mm256_div_ps(a, b); }
  static Float square_root(Float a) { return _mm256_sqrt_ps(a); }
  static Float floor_of_lanes(Float a) { return _mm256_floor_ps(a); }
  static Float magnitude(Float a) { return _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX))); }
  // The instructions give the second operand unless the first is greater (less): exactly the rule.
  static Float greater_of(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float lesser_of(Float a, Float b) { return _mm256_min_ps(a, b); }

  static Word add(Word a, Word b) { return _mm256_add_epi32(a, b); }
  static Word subtract(Word a, Word b) { return _mm256_sub_epi32(a, b); }
  static Word multiply(Word a, Word b) { return _mm256_mullo_epi32(a, b); }
  // The products of even lanes and of odd lanes, 64 bits each; their upper words, put together.
  static Word high_product(Word a, Word factor) {
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, factor), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
    return _mm256_blend_epi32(even, odd, 0xaa);
  }
  static Word bits_and(Word a, Word b) { return _mm256_and_si256(a, b); }
  static Word bits_or(Word a, Word b) { return _mm256_or_si256(a, b); }
  static Word bits_xor(Word a, Word b) { return _mm256_xor_si256(a, b); }
  template <int by>
  static Word shift_left(Word a) {
    return _mm256_slli_epi32(a, by);
  }
  template <int by>
  static Word shift_right(Word a) {
    return _mm256_srli_epi32(a, by);
  }
  static Word bits_of(Float a) { return _mm256_castps_si256(a); }
  static Float float_of_bits(Word a) { return _mm256_castsi256_ps(a); }
  static Float float_of_integer(Word a) { return _mm256_cvtepi32_ps(a); }
  static Word integer_of_float(Float a) { return _mm256_cvttps_epi32(a); }

  static Mask at_least(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
  static Mask greater(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
  static Mask equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  // AVX2 compares signed integers; turning the highest bit over maps the unsigned order onto theirs.
  static Mask less(Word a, Word b) {
    const __m256i top = _mm256_set1_epi32(INT32_MIN);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_xor_si256(b, top), _mm256_xor_si256(a, top)));
  }
  static Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
  static Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
  static Float select(Mask mask, Float if_set, Float otherwise) { return _mm256_blendv_ps(otherwise, if_set, mask); }
  static Word select(Mask mask, Word if_set, Word otherwise) {
    return bits_of(_mm256_blendv_ps(float_of_bits(otherwise), float_of_bits(if_set), mask));
  }
  // The mask of register `part`, and the bits of a register's mask.
  static Mask mask_of_bits(std::uint32_t bits, int part) {
    const __m256i bit = _mm256_slli_epi32(_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), 8 * part);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(broadcast(bits), bit), bit));
  }
  static std::uint32_t bits(Mask mask) { return static_cast<std::uint32_t>(_mm256_movemask_ps(mask)); }
  template <std::size_t parts>
  static bool any(const Mask (&part)[parts]) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < parts; ++i) found |= bits(part[i]);
    return found != 0u;
  }

  // The next three: `distance` is less than 8.
  template <std::uint32_t distance>
  static Float exchange(Float a) {
    if constexpr (distance == 4) return _mm256_permute2f128_ps(a, a, 1);
    if constexpr (distance == 2) return _mm256_permute_ps(a, 0x4e);
    if constexpr (distance == 1) return _mm256_permute_ps(a, 0xb1);
  }
  // The eight lanes that end `distance` lanes before the end of `here`, `below` being the register before it.
  template <std::uint32_t distance>
  static Float moved_up(Float below, Float here) {
    const __m256i middle = _mm256_permute2x128_si256(_mm256_castps_si256(below), _mm256_castps_si256(here), 0x21);
    if constexpr (distance == 4) return _mm256_castsi256_ps(middle);
    return _mm256_castsi256_ps(
        _mm256_alignr_epi8(_mm256_castps_si256(here), middle, 16 - 4 * static_cast<int>(distance)));
  }
  // Lanes without a lane below keep what they have: adding a zero would turn -0.0 over.
  template <std::uint32_t distance, class AllLanes>
  static AllLanes add_from_below(const Float (&a)[4]) {
    constexpr int without = (1 << distance) - 1;
    return {{_mm256_blend_ps(add(moved_up<distance>(_mm256_setzero_ps(), a[0]), a[0]), a[0], without),
             add(moved_up<distance>(a[0], a[1]), a[1]), add(moved_up<distance>(a[1], a[2]), a[2]),
             add(moved_up<distance>(a[2], a[3]), a[3])}};
  }
  static float fold_sum(const Float (&part)[4]) {
    const __m256 by_16_low = _mm256_add_ps(part[0], part[2]);
    const __m256 by_16_high = _mm256_add_ps(part[1], part[3]);
    const __m256 by_8 = _mm256_add_ps(by_16_low, by_16_high);
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_movehdup_ps(by_2)));
  }

 private:
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
};

using Avx2Lanes = RegisterLanes<Avx2Registers, 4>;

}  // namespace cingulum::numerics

#endif
