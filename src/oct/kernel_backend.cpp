#include "oct/kernel_backend.hpp"

namespace cingulum::oct {
namespace {

constexpr std::array<std::uint32_t, 3> flat_block = {64, 4, 1};
constexpr std::array<std::uint32_t, 3> line_block = {64, 1, 1};

// In the order of OctKernel.
constexpr std::array<KernelFacts, oct_kernel_count> facts = {{
    {"filter_axis", 3, {false, false, true}, flat_block},
    {"spline_axis", 1, {true}, line_block},
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
