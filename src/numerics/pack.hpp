// A few independent numbers that go through the same operations: a voxel per lane. Model kernels are templates over
// their number type and take `double` (CUDA, tests) or a `Pack` of the width of this machine's registers (with_packs):
// every lane does exactly what the scalar would, so the result does not depend on the width. Host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "numerics/portable.hpp"

// Sanitizers cannot run the resolvers that choose a clone; they get the baseline, which has the same results.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__CUDACC__)
#define CGL_SIMD_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
#else
#define CGL_SIMD_CLONES
#endif
#define CGL_INLINE inline __attribute__((always_inline))

namespace cingulum::numerics {

template <class Real, int Width>
struct Pack {
  typedef Real Vector __attribute__((vector_size(Width * sizeof(Real))));
  using Integer = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  typedef Integer IntegerVector __attribute__((vector_size(Width * sizeof(Real))));
  static constexpr int width = Width;

  Vector lanes;

  // A comparison: all bits of a lane are set where it holds.
  struct Mask {
    IntegerVector lanes;
    friend CGL_INLINE Mask operator&(Mask a, Mask b) { return {a.lanes & b.lanes}; }
    friend CGL_INLINE Mask operator|(Mask a, Mask b) { return {a.lanes | b.lanes}; }
    friend CGL_INLINE Mask operator!(Mask a) { return {~a.lanes}; }
  };

  Pack() = default;
  // Through memory: GCC makes one instruction of it. Vector expressions it lowers for the baseline before it inlines
  // them into a clone, a piece per lane.
  CGL_INLINE Pack(Real value) {
    Real copies[static_cast<unsigned>(Width)];
    for (int i = 0; i < Width; ++i) copies[i] = value;
    __builtin_memcpy(&lanes, copies, sizeof(Vector));
  }
  // (GCC takes a constructor from the vector type for one from the number type.)
  static CGL_INLINE Pack of(Vector vector) {
    Pack result;
    result.lanes = vector;
    return result;
  }
  static CGL_INLINE Pack load(const Real* from) {
    Pack result;
    __builtin_memcpy(&result.lanes, from, sizeof(Vector));
    return result;
  }
  CGL_INLINE void store(Real* to) const { __builtin_memcpy(to, &lanes, sizeof(Vector)); }

  friend CGL_INLINE Pack operator+(Pack a, Pack b) { return of(a.lanes + b.lanes); }
  friend CGL_INLINE Pack operator-(Pack a, Pack b) { return of(a.lanes - b.lanes); }
  friend CGL_INLINE Pack operator*(Pack a, Pack b) { return of(a.lanes * b.lanes); }
  friend CGL_INLINE Pack operator/(Pack a, Pack b) { return of(a.lanes / b.lanes); }
  friend CGL_INLINE Pack operator-(Pack a) { return of(-a.lanes); }
  friend CGL_INLINE Mask operator<(Pack a, Pack b) { return {a.lanes < b.lanes}; }
  friend CGL_INLINE Mask operator<=(Pack a, Pack b) { return {a.lanes <= b.lanes}; }
  friend CGL_INLINE Mask operator>(Pack a, Pack b) { return {a.lanes > b.lanes}; }
};

template <class Real, int Width>
CGL_INLINE Pack<Real, Width> select(typename Pack<Real, Width>::Mask mask, Pack<Real, Width> yes,
                                    Pack<Real, Width> no) {
  return Pack<Real, Width>::of(mask.lanes ? yes.lanes : no.lanes);
}
CGL_HD inline float select(bool mask, float yes, float no) {
  return mask ? yes : no;
}
CGL_HD inline double select(bool mask, double yes, double no) {
  return mask ? yes : no;
}

template <class Mask>
CGL_INLINE auto any_lane(Mask mask) -> decltype(mask.lanes[0], bool()) {
  bool any = false;
  for (std::size_t i = 0; i < sizeof(mask.lanes) / sizeof(mask.lanes[0]); ++i) any = any || mask.lanes[i] != 0;
  return any;
}
CGL_HD inline bool any_lane(bool mask) {
  return mask;
}

// A scalar function in every lane.
template <class Real, int Width, class Function>
CGL_INLINE Pack<Real, Width> each_lane(Pack<Real, Width> a, Function function) {
  Pack<Real, Width> result;
  for (int i = 0; i < Width; ++i) result.lanes[i] = function(a.lanes[i]);
  return result;
}

template <class Real, int Width>
CGL_INLINE Pack<Real, Width> root(Pack<Real, Width> a) {
  return each_lane(a, [](Real x) {
    if constexpr (sizeof(Real) == 4) return __builtin_sqrtf(x);
    return static_cast<Real>(__builtin_sqrt(x));
  });
}

// The instruction sets that host code is compiled for besides the baseline.
enum class SimdLevel { baseline, avx2, avx512 };

#if defined(__x86_64__) && defined(__GNUC__)
inline SimdLevel best_simd_level() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("fma")) {
    return SimdLevel::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) {
    return SimdLevel::avx2;
  }
  return SimdLevel::baseline;
}
#define CGL_TARGET_AVX2 __attribute__((target("arch=x86-64-v3"), flatten, noinline))
#define CGL_TARGET_AVX512 __attribute__((target("arch=x86-64-v4"), flatten, noinline))
#else
inline SimdLevel best_simd_level() {
  return SimdLevel::baseline;
}
#define CGL_TARGET_AVX2
#define CGL_TARGET_AVX512
#endif

template <class Real, class Body>
CGL_TARGET_AVX512 void call_with_avx512_packs(Body& body) {
  body.template operator()<Pack<Real, 64 / sizeof(Real)>>();
}
template <class Real, class Body>
CGL_TARGET_AVX2 void call_with_avx2_packs(Body& body) {
  body.template operator()<Pack<Real, 32 / sizeof(Real)>>();
}

// Calls body.operator()<Pack<Real, Width>>() with the width of the registers, compiled for them. All that the body
// calls is inlined into it; what cannot be (a function of another file) is compiled for the baseline.
//   with_packs<double>([&]<class Number>() { for (...; i += Number::width) kernel(Number::load(a + i)).store(b + i);
//   });
template <class Real, class Body>
void with_packs(Body&& body, SimdLevel level = best_simd_level()) {
  switch (level) {
    case SimdLevel::avx512: return call_with_avx512_packs<Real>(body);
    case SimdLevel::avx2: return call_with_avx2_packs<Real>(body);
    case SimdLevel::baseline: return body.template operator()<Pack<Real, 16 / sizeof(Real)>>();
  }
}

}  // namespace cingulum::numerics
