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

[[nodiscard]] cudaError_t launch_filter_axis(const CudaCall& call);
[[nodiscard]] cudaError_t launch_spline_axis(const CudaCall& call);

}  // namespace cingulum::oct
