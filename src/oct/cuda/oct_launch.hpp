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
[[nodiscard]] cudaError_t launch_log_box(const CudaCall& call);
[[nodiscard]] cudaError_t launch_compress_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_derivative_peak(const CudaCall& call);
[[nodiscard]] cudaError_t launch_roll_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_project_depth(const CudaCall& call);
[[nodiscard]] cudaError_t launch_order_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_layer_sums(const CudaCall& call);
[[nodiscard]] cudaError_t launch_divide_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_product_rows(const CudaCall& call);
[[nodiscard]] cudaError_t launch_product_fold(const CudaCall& call);
[[nodiscard]] cudaError_t launch_sample_volume(const CudaCall& call);
[[nodiscard]] cudaError_t launch_count_keys(const CudaCall& call);
[[nodiscard]] cudaError_t launch_blend_add(const CudaCall& call);
[[nodiscard]] cudaError_t launch_blend_finish(const CudaCall& call);
[[nodiscard]] cudaError_t launch_median_box(const CudaCall& call);
[[nodiscard]] cudaError_t launch_attenuation_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_compensate_lines(const CudaCall& call);
[[nodiscard]] cudaError_t launch_texture_noise(const CudaCall& call);
[[nodiscard]] cudaError_t launch_exponentiate(const CudaCall& call);
[[nodiscard]] cudaError_t launch_tile_voxels(const CudaCall& call);

}  // namespace cingulum::oct
