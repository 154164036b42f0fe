// The 32 lanes of the contract as two registers of sixteen (one for work that each lane does alone), for hosts with
// AVX-512 (F, DQ, BW, VL): what lanes_registers.hpp asks of one register. Include it only from files compiled with
// these flags. Equal to: PortableLanes. Held by: the tests of lanes_test_body.hpp,
// TrackKernels.give_the_same_bits_with_all_instructions_of_this_cpu.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512DQ__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_registers.hpp"

namespace cingulum::numerics {

// Without optimisation GCC's intrinsics that take constants are macros, which convert a full mask to a signed number.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
struct Avx512Registers {
  static constexpr int lanes = 16;
  using Float = __m512;
  using Word = __m512i;
  using Mask = __mmask16;

  static Float broadcast(float value) { return _mm512_set1_ps(value); }
  static Word broadcast(std::uint32_t value) { return _mm512_set1_epi32(static_cast<std::int32_t>(value)); }
  static Word lane_numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static Float load(const float* first) { return _mm512_loadu_ps(first); }
  static Float load_float16(const std::uint16_t* first) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
  }
  // A bit for each slot of the row that begins at `first`, set where it is before `count`.
  static std::uint32_t wanted_of_row(std::uint32_t first, std::uint32_t count) {
    return count > first ? 0xffffffffu >> (lane_count - (count - first)) : 0u;
  }
  static Float load_wanted(const float* first, std::uint32_t wanted, int part) {
    return _mm512_maskz_loadu_ps(mask_of_bits(wanted, part), first);
  }
  static void store(float* first, Float a) { _mm512_storeu_ps(first, a); }
  static void store(std::uint32_t* first, Word a) { _mm512_storeu_si512(first, a); }
  static Float gather(const float* table, Word index) { return _mm512_i32gather_ps(index, table, 4); }
  static Word gather(const std::uint32_t* table, Word index) { return _mm512_i32gather_epi32(index, table, 4); }
  static Float gather_float16(const std::uint16_t* table, Word index) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_i32gather_epi32(index, table, 2)));
  }

  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float subtract(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float multiply(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float divide(Float a, Float b) { return _mm512_div_ps(a, b); }
  static Float square_root(Float a) { return _mm512_sqrt_ps(a); }
  static Float floor_of_lanes(Float a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static Float magnitude(Float a) { return _mm512_abs_ps(a); }
  // The instructions give the second operand unless the first is greater (less): exactly the rule.
  static Float greater_of(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float lesser_of(Float a, Float b) { return _mm512_min_ps(a, b); }

  static Word add(Word a, Word b) { return _mm512_add_epi32(a, b); }
  static Word subtract(Word a, Word b) { return _mm512_sub_epi32(a, b); }
  static Word multiply(Word a, Word b) { return _mm512_mullo_epi32(a, b); }
  // The products of even lanes and of odd lanes, 64 bits each; their upper words, put together.
  static Word high_product(Word a, Word factor) {
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, factor), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
    return _mm512_mask_blend_epi32(static_cast<__mmask16>(0xaaaa), even, odd);
  }
  static Word bits_and(Word a, Word b) { return _mm512_and_si512(a, b); }
  static Word bits_or(Word a, Word b) { return _mm512_or_si512(a, b); }
  static Word bits_xor(Word a, Word b) { return _mm512_xor_si512(a, b); }
  template <int by>
  static Word shift_left(Word a) {
    return _mm512_slli_epi32(a, by);
  }
  template <int by>
  static Word shift_right(Word a) {
    return _mm512_srli_epi32(a, by);
  }
  static Word bits_of(Float a) { return _mm512_castps_si512(a); }
  static Float float_of_bits(Word a) { return _mm512_castsi512_ps(a); }
  static Float float_of_integer(Word a) { return _mm512_cvtepi32_ps(a); }
  static Word integer_of_float(Float a) { return _mm512_cvttps_epi32(a); }

  static Mask at_least(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
  static Mask greater(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static Mask equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Mask less(Word a, Word b) { return _mm512_cmplt_epu32_mask(a, b); }
  static Mask both(Mask a, Mask b) { return _kand_mask16(a, b); }
  static Mask either(Mask a, Mask b) { return _kor_mask16(a, b); }
  static Float select(Mask mask, Float if_set, Float otherwise) {
    return _mm512_mask_blend_ps(mask, otherwise, if_set);
  }
  static Word select(Mask mask, Word if_set, Word otherwise) {
    return _mm512_mask_blend_epi32(mask, otherwise, if_set);
  }
  // The mask of register `part`, and the bits of a register's mask.
  static Mask mask_of_bits(std::uint32_t bits, int part) { return static_cast<__mmask16>(bits >> (16 * part)); }
  static std::uint32_t bits(Mask mask) { return static_cast<std::uint32_t>(mask); }
  template <std::size_t parts>
  static bool any(const Mask (&part)[parts]) {
    __mmask16 all = part[0];
    for (std::size_t i = 1; i < parts; ++i) all = _kor_mask16(all, part[i]);
    return _cvtmask16_u32(all) != 0u;
  }

  // The next three: `distance` is less than 16.
  template <std::uint32_t distance>
  static Float exchange(Float a) {
    if constexpr (distance == 8) return _mm512_shuffle_f32x4(a, a, 0x4e);
    if constexpr (distance == 4) return _mm512_shuffle_f32x4(a, a, 0xb1);
    if constexpr (distance == 2) return _mm512_permute_ps(a, 0x4e);
    if constexpr (distance == 1) return _mm512_permute_ps(a, 0xb1);
  }
  // The sixteen lanes that end `distance` lanes before the end of `here`, `below` being the register before it.
  template <std::uint32_t distance>
  static Float moved_up(Float below, Float here) {
    constexpr int from = 16 - static_cast<int>(distance);
    return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(here), _mm512_castps_si512(below), from));
  }
  // Lanes without a lane below keep what they have: adding a zero would turn -0.0 over.
  template <std::uint32_t distance, class AllLanes>
  static AllLanes add_from_below(const Float (&a)[2]) {
    constexpr auto with = static_cast<__mmask16>(0xffffu << distance);
    return {{_mm512_mask_add_ps(a[0], with, moved_up<distance>(_mm512_setzero_ps(), a[0]), a[0]),
             add(moved_up<distance>(a[0], a[1]), a[1])}};
  }
  static float fold_sum(const Float (&part)[2]) {
    const __m512 by_16 = _mm512_add_ps(part[0], part[1]);
    const __m256 by_8 = _mm256_add_ps(_mm512_castps512_ps256(by_16), _mm512_extractf32x8_ps(by_16, 1));
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_movehdup_ps(by_2)));
  }
};
#pragma GCC diagnostic pop

using Avx512Lanes = RegisterLanes<Avx512Registers, 2>;

}  // namespace cingulum::numerics

#endif
