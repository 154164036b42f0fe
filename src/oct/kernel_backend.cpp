#include "oct/kernel_backend.hpp"

#include "oct/kernel/kernel_records.hpp"

namespace cingulum::oct {
namespace {

constexpr std::array<std::uint32_t, 3> flat_block = {64, 4, 1};
constexpr std::array<std::uint32_t, 3> line_block = {64, 1, 1};

// Facts of the kernels in the order of OctKernel.
constexpr std::array<KernelFacts, oct_kernel_count> facts = {{
    {"filter_axis", 3, {false, false, true}, flat_block},
    {"spline_axis", 1, {true}, line_block},
    {"log_box", 2, {false, true}, {log_box_threads, 1, 1}, log_box_window_word},
    {"compress_lines", 3, {true, false, true}, line_block},
    {"derivative_peak", 4, {false, false, false, true}, line_block, derivative_peak_odd_word},
    {"roll_lines", 3, {false, false, true}, line_block},
    {"project_depth", 2, {false, true}, line_block},
    {"order_lines", 2, {false, true}, {order_side, order_block_rows, 1}},
    {"layer_sums", 3, {false, false, true}, line_block},
    {"divide_lines", 3, {false, false, true}, flat_block},
    {"product_rows", 4, {false, false, false, true}, {32, 8, 1}},
    {"product_fold", 3, {false, false, true}, {32, 1, 1}},
    {"sample_volume", 5, {false, false, false, false, true}, flat_block},
    {"count_keys", 2, {false, true}, {256, 1, 1}},
    {"blend_add", 4, {false, false, true, true}, flat_block},
    {"blend_finish", 3, {false, false, true}, flat_block},
    {"median_box", 2, {false, true}, flat_block},
    {"attenuation_lines", 3, {false, false, true}, line_block},
    {"compensate_lines", 3, {false, false, true}, line_block},
    {"texture_noise", 1, {true}, flat_block},
    {"exponentiate", 1, {true}, flat_block},
    {"tile_voxels", 2, {false, true}, flat_block},
}};

}  // namespace

const KernelFacts& kernel_facts(OctKernel kernel) {
  return facts[static_cast<std::size_t>(kernel)];
}

KernelPointers pointers_of(const KernelLaunch& launch) {
  KernelPointers pointers;
  for (std::size_t i = 0; i < launch.ranges.size(); ++i) {
    pointers.at[i] = static_cast<float*>(launch.ranges[i].buffer->device_pointer()) + launch.ranges[i].first;
  }
  pointers.words = launch.words;
  return pointers;
}

}  // namespace cingulum::oct
