// Launchers of the kernels that nvcc compiles ahead. Their .cu files hold the kernel and the launch, nothing else, so
// that nvcc sees no more of the host code than it must.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cingulum {

// The attributes of a kernel as it was loaded for the current device.
[[nodiscard]] cudaError_t read_probe_kernel_attributes(cudaFuncAttributes& attributes);

// The computation of device/selfcheck_item.hpp for `items` items.
[[nodiscard]] cudaError_t launch_selfcheck(std::uint32_t* output, std::uint32_t items, cudaStream_t stream);

}  // namespace cingulum
