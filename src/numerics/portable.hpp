// What every other header of numerics stands on: the mark for functions compiled for host and CUDA, the bits of a
// number, the only two library functions that the bit contract allows (floor and square root, both exactly rounded)
// and the high word of a product. Mirrored by wgsl/exact.wgsl. It does not set compiler flags: the build does
// (-ffp-contract=off; -fmad=false -prec-div=true -prec-sqrt=true -ftz=false), and nothing here is right without them.
#pragma once

#include <math.h>

#include <cstdint>

#if defined(__CUDACC__)
#define CGL_HD __host__ __device__
// Before a template that is host or device code according to its arguments; nvcc would warn of the combination that is
// never called.
#define CGL_HD_GENERIC _Pragma("nv_exec_check_disable")
#else
#define CGL_HD
#define CGL_HD_GENERIC
#endif

namespace cingulum::numerics {

// __builtin_bit_cast rather than std::bit_cast: the latter is a host function to nvcc unless a flag relaxes that.
CGL_HD constexpr std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
CGL_HD constexpr float bits_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
CGL_HD constexpr std::uint64_t float_bits(double value) {
  return __builtin_bit_cast(std::uint64_t, value);
}
CGL_HD constexpr double bits_float(std::uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}

CGL_HD inline float floor_of(float value) {
  return ::floorf(value);
}
CGL_HD inline double floor_of(double value) {
  return ::floor(value);
}

CGL_HD inline float root(float value) {
  return ::sqrtf(value);
}
CGL_HD inline double root(double value) {
  return ::sqrt(value);
}

// The upper 32 bits of the 64-bit product.
CGL_HD constexpr std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

CGL_HD inline std::uint32_t bit_count(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}
// Positions of the lowest and the highest set bit; `bits` is not zero.
CGL_HD inline std::uint32_t lowest_set_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
  return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}
CGL_HD inline std::uint32_t highest_set_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(31 - __clz(static_cast<int>(bits)));
#else
  return static_cast<std::uint32_t>(31 - __builtin_clz(bits));
#endif
}

}  // namespace cingulum::numerics
