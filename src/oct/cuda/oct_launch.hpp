// The launchers of the OCT kernels that nvcc compiles ahead. Pointers are of device memory; `threads` is the least
// extent of the grid.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "oct/kernel/kernel_pointers.hpp"

namespace cingulum::oct {

struct CudaCall {
  KernelPointers pointers;
  std::array<std::uint32_t, 3> threads;
  cudaStream_t stream;
};

// launch_filter_axis and so on: each is beside its kernel.
#define CGL_DECLARE(name) [[nodiscard]] cudaError_t launch_##name(const CudaCall& call);
CGL_OCT_KERNELS(CGL_DECLARE)
#undef CGL_DECLARE

}  // namespace cingulum::oct
