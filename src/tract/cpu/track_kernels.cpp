#include "tract/cpu/track_kernels.hpp"

namespace cingulum {

const CpuKernels* compiled_avx2_kernels();
const CpuKernels* compiled_avx512_kernels();

const CpuKernels* avx2_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return compiled_avx2_kernels();
#endif
  return nullptr;
}

const CpuKernels* avx512_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return compiled_avx512_kernels();
  }
#endif
  return nullptr;
}

const CpuKernels& best_cpu_kernels() {
  if (const CpuKernels* kernels = avx512_kernels(); kernels != nullptr) return *kernels;
  if (const CpuKernels* kernels = avx2_kernels(); kernels != nullptr) return *kernels;
  return *portable_kernels();
}

}  // namespace cingulum
