// The kernels on four registers of eight lanes; compiled with -mavx2, called only where the CPU has it.
#define numerics numerics_avx2
#define kernel kernel_avx2

#include "numerics/lanes_avx2.hpp"

#if defined(__AVX2__)
#define CGL_LANES numerics::Avx2Lanes
#define CGL_KERNELS_NAME "avx2"
#define CGL_KERNELS_FUNCTION compiled_avx2_kernels
#include "tract/cpu/track_kernels.inc"
#else
#include "tract/cpu/track_kernels.hpp"
namespace cingulum {
const CpuKernels* compiled_avx2_kernels() {
  return nullptr;
}
}  // namespace cingulum
#endif
