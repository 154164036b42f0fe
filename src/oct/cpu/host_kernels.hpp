// The OCT kernels on the CPU: each says into how many pieces it falls and runs one of them. Pieces share nothing, so
// that any number of threads gives the same bits. Called by host_backend.cpp.
#pragma once

#include <cstdint>

#include "oct/kernel_backend.hpp"

namespace cingulum::oct {

struct HostKernel {
  std::uint32_t (*pieces)(const KernelPointers&);
  void (*run)(const KernelPointers&, std::uint32_t piece);
};

[[nodiscard]] HostKernel host_filter_axis();
[[nodiscard]] HostKernel host_spline_axis();
[[nodiscard]] HostKernel host_log_box();
[[nodiscard]] HostKernel host_compress_lines();
[[nodiscard]] HostKernel host_derivative_peak();
[[nodiscard]] HostKernel host_roll_lines();
[[nodiscard]] HostKernel host_project_depth();
[[nodiscard]] HostKernel host_order_lines();
[[nodiscard]] HostKernel host_layer_sums();
[[nodiscard]] HostKernel host_divide_lines();
[[nodiscard]] HostKernel host_product_rows();
[[nodiscard]] HostKernel host_product_fold();
[[nodiscard]] HostKernel host_sample_volume();
[[nodiscard]] HostKernel host_count_keys();
[[nodiscard]] HostKernel host_blend_add();
[[nodiscard]] HostKernel host_blend_finish();
[[nodiscard]] HostKernel host_median_box();
[[nodiscard]] HostKernel host_attenuation_lines();
[[nodiscard]] HostKernel host_compensate_lines();
[[nodiscard]] HostKernel host_texture_noise();
[[nodiscard]] HostKernel host_exponentiate();
[[nodiscard]] HostKernel host_tile_voxels();

}  // namespace cingulum::oct
