// Every kernel that can be chosen is in the program, and no other: needs the toolkit, no GPU.
#include "tract/cuda/track_kernels.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tract/paged/track_kernel_choice.hpp"

namespace cingulum::cuda_track_kernels_tests {
namespace {

TEST(CudaTrackKernels, there_is_a_kernel_of_every_name_and_each_is_another) {
  std::set<const void*> functions;
  std::size_t count = 0;
  for (std::uint32_t i = 1; i < track_kernel_count; ++i) {
    const auto id = static_cast<TrackKernelId>(i);
    const TrackKernel halves = track_kernel(id, false), seeds = track_kernel(id, true);
    EXPECT_NE(halves.function, nullptr) << track_kernel_name(id);
    EXPECT_EQ(seeds.function != nullptr, finds_directions(id)) << track_kernel_name(id);
    EXPECT_EQ(halves.derive != nullptr, id == TrackKernelId::amplitudes_ptt_probes) << track_kernel_name(id);
    EXPECT_EQ(halves.expanded != nullptr, id == TrackKernelId::amplitudes_ptt_probes) << track_kernel_name(id);
    for (const void* const function : {halves.function, seeds.function, halves.expanded}) {
      if (function == nullptr) continue;
      functions.insert(function);
      ++count;
    }
  }
  EXPECT_EQ(functions.size(), count) << "two names have one kernel";
  EXPECT_EQ(track_kernel(TrackKernelId::none, false).function, nullptr);
  EXPECT_EQ(track_kernel(TrackKernelId::none, true).function, nullptr);
}

}  // namespace
}  // namespace cingulum::cuda_track_kernels_tests
