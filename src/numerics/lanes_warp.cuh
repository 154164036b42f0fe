// The 32 lanes of the contract as a CUDA warp: a `Float` is this thread's number. The same primitives as
// lanes_portable.hpp, which states what each does. All 32 threads of the warp call each function together; the threads
// of the block are numbered along x, a multiple of 32 of them. Equal to: PortableLanes. Held by:
// LaneParity.sums_maxima_and_choices_of_32_lanes_have_the_bits_of_the_host.
#pragma once

#include <cstdint>

#include "numerics/lanes_portable.hpp"

namespace cingulum::numerics {

struct WarpLanes {
  using Float = float;
  using Word = std::uint32_t;
  using Mask = bool;
  using Narrow = WarpLanes;
  static constexpr bool serial = false;
  using Wide = WarpLanes;
  static constexpr std::uint32_t width = lane_count;

  static constexpr unsigned whole_warp = 0xffffffffu;

  static __device__ std::uint32_t lane_index() { return threadIdx.x % lane_count; }
  // The bits of the lanes before this one.
  static __device__ std::uint32_t lanes_below() { return (1u << lane_index()) - 1u; }

  static __device__ Float broadcast(float value) { return value; }
  static __device__ Word broadcast(std::uint32_t value) { return value; }
  static __device__ Float load(const float* first) { return first[lane_index()]; }
  static __device__ Float load_float16(const std::uint16_t* first) { return of_float16(first[lane_index()]); }
  static __device__ Float load_row(const float* slots, std::uint32_t row, std::uint32_t count) {
    const std::uint32_t slot = lane_count * row + lane_index();
    return slot < count ? slots[slot] : 0.0f;
  }
  static __device__ void store(float* first, Float a) { first[lane_index()] = a; }
  static __device__ Float gather(const float* table, Word index) { return table[index]; }
  static __device__ Word gather(const std::uint32_t* table, Word index) { return table[index]; }
  static __device__ Float gather_number(const float* table, Word row, std::uint32_t stride, Word column, bool) {
    return table[static_cast<std::uint64_t>(row) * stride + column];
  }
  static __device__ Float gather_float16(const std::uint16_t* table, Word row, std::uint32_t stride, Word column,
                                         bool) {
    return of_float16(table[static_cast<std::uint64_t>(row) * stride + column]);
  }
  // Exact for every float16, subnormal ones included: each is a normal float32.
  static __device__ float of_float16(std::uint16_t float16) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(float16));
    return value;
  }
  template <class Function>
  static __device__ Float map(Float a, Function&& function) {
    return function(a);
  }
  template <class Body>
  static __device__ void each_lane(Mask mask, Body&& body) {
    for (std::uint32_t bits = ballot(mask); bits != 0u; bits &= bits - 1u) body(lowest_set_bit(bits));
  }
  static __device__ float own(Float a, std::uint32_t lane) { return get(a, lane); }
  static __device__ void barrier() { __syncwarp(whole_warp); }
  static __device__ Word slots_of_row(std::uint32_t row) { return lane_count * row + lane_index(); }

  static __device__ Float add(Float a, Float b) { return a + b; }
  static __device__ Float subtract(Float a, Float b) { return a - b; }
  static __device__ Float multiply(Float a, Float b) { return a * b; }
  static __device__ Float divide(Float a, Float b) { return a / b; }
  static __device__ Float square_root(Float a) { return root(a); }
  static __device__ Float floor_of_lanes(Float a) { return floor_of(a); }
  // An operand of the comparison that follows, where bits would be an instruction of their own.
  static __device__ Float magnitude(Float a) { return fabsf(a); }
  static __device__ Float greater_of(Float a, Float b) { return a > b ? a : b; }
  static __device__ Float lesser_of(Float a, Float b) { return a < b ? a : b; }
  static __device__ Word add(Word a, Word b) { return a + b; }
  static __device__ Word subtract(Word a, Word b) { return a - b; }
  static __device__ Word multiply(Word a, Word b) { return a * b; }
  static __device__ Word high_product_with(Word a, std::uint32_t b) { return high_product(a, b); }
  static __device__ Word bits_and(Word a, Word b) { return a & b; }
  static __device__ Word bits_or(Word a, Word b) { return a | b; }
  static __device__ Word bits_xor(Word a, Word b) { return a ^ b; }
  template <int by>
  static __device__ Word shift_left(Word a) {
    return a << by;
  }
  template <int by>
  static __device__ Word shift_right(Word a) {
    return a >> by;
  }
  static __device__ Word bits_of(Float a) { return float_bits(a); }
  static __device__ Float float_of_bits(Word a) { return bits_float(a); }
  static __device__ Float float_of_integer(Word a) { return static_cast<float>(static_cast<std::int32_t>(a)); }
  static __device__ Word integer_of_float(Float a) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(a)); }
  static __device__ Mask at_least(Float a, Float b) { return a >= b; }
  static __device__ Mask greater(Float a, Float b) { return a > b; }
  static __device__ Mask equal(Float a, Float b) { return a == b; }
  static __device__ Mask less(Word a, Word b) { return a < b; }
  static __device__ Mask both(Mask a, Mask b) { return a && b; }
  static __device__ Mask either(Mask a, Mask b) { return a || b; }
  static __device__ Float select(Mask mask, Float if_set, Float otherwise) { return mask ? if_set : otherwise; }
  static __device__ Word select(Mask mask, Word if_set, Word otherwise) { return mask ? if_set : otherwise; }
  static __device__ Mask mask_of_bits(std::uint32_t bits) { return ((bits >> lane_index()) & 1u) != 0u; }
  template <class Predicate>
  static __device__ std::uint32_t filter(std::uint32_t bits, Predicate&& predicate) {
    return __ballot_sync(whole_warp, mask_of_bits(bits) && predicate(lane_index()));
  }
  static __device__ void pack(std::uint32_t bits, Word words, std::uint32_t* to) {
    if (mask_of_bits(bits)) to[__popc(bits & ((1u << lane_index()) - 1u))] = words;
  }
  static __device__ bool any(Mask mask) { return __any_sync(whole_warp, mask) != 0; }
  static __device__ std::uint32_t ballot(Mask mask) { return __ballot_sync(whole_warp, mask); }

  template <std::uint32_t distance>
  static __device__ Float exchange(Float a) {
    return __shfl_xor_sync(whole_warp, a, distance);
  }
  template <std::uint32_t distance>
  static __device__ Word exchange(Word a) {
    return __shfl_xor_sync(whole_warp, a, distance);
  }
  template <std::uint32_t distance>
  static __device__ Float add_from_below(Float a) {
    // The exchange itself says whether there is such a lane.
    float sum = a;
    asm volatile(
        "{\n\t.reg .pred from_below;\n\t.reg .f32 below;\n\t"
        "shfl.sync.up.b32 below|from_below, %1, %2, 0, 0xffffffff;\n\t"
        "@from_below add.rn.f32 %0, below, %1;\n\t}"
        : "+f"(sum)
        : "f"(a), "n"(distance));
    return sum;
  }
  static __device__ float get(Float a, std::uint32_t lane) {
    return __shfl_sync(whole_warp, a, static_cast<int>(lane));
  }
  static __device__ std::uint32_t get(Word a, std::uint32_t lane) {
    return __shfl_sync(whole_warp, a, static_cast<int>(lane));
  }

  static __device__ Word append_sign(Word bits, Float a) { return __funnelshift_l(float_bits(a), bits, 1u); }
  static __device__ Word greater_integer(Word a, Word b) {
    return static_cast<Word>(max(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
  }
  static __device__ std::uint32_t greatest_integer(Word a) {
#if __CUDA_ARCH__ >= 800
    return static_cast<std::uint32_t>(__reduce_max_sync(whole_warp, static_cast<std::int32_t>(a)));
#else
    a = greater_integer(a, exchange<16>(a));
    a = greater_integer(a, exchange<8>(a));
    a = greater_integer(a, exchange<4>(a));
    a = greater_integer(a, exchange<2>(a));
    return greater_integer(a, exchange<1>(a));
#endif
  }
  // The greater or lesser of a number in memory and those that lanes give, each by itself.
  static __device__ void raise(std::uint32_t& shared, std::uint32_t by) {
    atomicMax(&shared, by);
  }
  static __device__ void lower(std::uint32_t& shared, std::uint32_t by) {
    atomicMin(&shared, by);
  }

  // Four numbers per lane at a time, past the cache of the multiprocessor and without registers where the device can.
  template <std::uint32_t numbers>
  static __device__ void begin_copy(float* to, const float* from) {
    copy_from_on<numbers, 0u>(to + 4u * lane_index(), from + 4u * lane_index());
  }
  static __device__ void await_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp(whole_warp);
  }

  // Addition commutes, so every lane ends with the bits of lane 0.
  static __device__ float fold_sum(Float partial) {
    float p = partial;
#pragma unroll
    for (int distance = 16; distance != 0; distance /= 2) p = p + __shfl_xor_sync(whole_warp, p, distance);
    return p;
  }

 private:
  template <std::uint32_t numbers, std::uint32_t first>
  static __device__ void copy_from_on(float* to, const float* from) {
    constexpr std::uint32_t at_once = 4u * lane_count;
    if constexpr (first < numbers) {
      constexpr std::uint32_t left = numbers - first;
#if __CUDA_ARCH__ >= 800
      const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
      if constexpr (left >= at_once) {
        asm volatile("cp.async.cg.shared.global [%0+%2], [%1+%2], 16;" ::"r"(shared), "l"(from), "n"(4u * first)
                     : "memory");
      } else {
        asm volatile(
            "{\n\t.reg .pred takes_part;\n\tsetp.lt.u32 takes_part, %3, %4;\n\t"
            "@takes_part cp.async.cg.shared.global [%0+%2], [%1+%2], 16;\n\t}" ::"r"(shared),
            "l"(from), "n"(4u * first), "r"(4u * lane_index()), "n"(left)
            : "memory");
      }
#else
      if (left >= at_once || 4u * lane_index() < left) {
        *reinterpret_cast<float4*>(to + first) = *reinterpret_cast<const float4*>(from + first);
      }
#endif
      copy_from_on<numbers, first + at_once>(to, from);
    }
  }
};

}  // namespace cingulum::numerics
