// The kernels on two registers of sixteen lanes; compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl, called only
// where the CPU has these.
#define numerics numerics_avx512
#define kernel kernel_avx512

#include "numerics/lanes_avx512.hpp"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define CGL_LANES numerics::Avx512Lanes
#define CGL_KERNELS_NAME "avx512"
#define CGL_KERNELS_FUNCTION compiled_avx512_kernels
#include "tract/cpu/track_kernels.inc"
#else
#include "tract/cpu/track_kernels.hpp"
namespace cingulum {
const CpuKernels* compiled_avx512_kernels() {
  return nullptr;
}
}  // namespace cingulum
#endif
