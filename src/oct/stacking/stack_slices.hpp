// Slices as one volume, by the decisions of stack_decisions.hpp: each slice is turned, shifted and moved in depth by
// linear interpolation, multiplied by its gain, and mixed with its neighbours over the planes that both have. The
// volume is made in boxes of a few planes and rows, whichever the caller asks for: what a voxel holds does not depend
// on them, and no slice is in memory as a whole. Zero means that nothing is there: it weighs nothing.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

// A box of slice `number` of the plan, as it was stitched.
using SliceSource = std::function<Result<HostVolume>(std::size_t number, const PlaneBox& box)>;

// About so many of the voxels that two slices share are compared, and less than twice as many, where they have more.
inline constexpr std::size_t gain_sample_voxels = std::size_t{1} << 22U;

// Gains from the medians of neighbouring slices where both have voxels; reads the planes that they share, so many rows
// at a time.
[[nodiscard]] Status find_gains(StackPlan& plan, const SliceSource& source, const StackOptions& options,
                                ThreadPool* pool = nullptr, std::size_t rows_at_once = rows_at_a_time);

// A box of the volume, into `to`, which need not be set; so many rows of it at a time.
[[nodiscard]] Status stack_box(const StackPlan& plan, const SliceSource& source, const PlaneBox& box,
                               std::span<float> to, ThreadPool* pool = nullptr,
                               std::size_t rows_at_once = rows_at_a_time);

}  // namespace cingulum::oct
