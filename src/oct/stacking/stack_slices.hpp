// Slices as one volume, by the decisions of stack_decisions.hpp: each slice is turned and shifted by linear
// interpolation, multiplied by its gain, and mixed with its neighbours over the planes that both have. Two slices are
// in memory at a time, and the volume. Zero means that nothing is there: it weighs nothing.
#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// Slice `number` of the plan, as it was stitched.
using SliceSource = std::function<Result<HostVolume>(std::size_t number)>;

// One slice in the frame of the volume, without its gain.
[[nodiscard]] HostVolume place_slice(const HostVolume& slice, const SliceDecision& decision, std::size_t rows,
                                     std::size_t columns, ThreadPool* pool = nullptr);

// The ratio of medians of neighbouring slices where both have voxels: of the upper over the lower.
[[nodiscard]] double overlap_ratio(const HostVolume& upper, const SliceDecision& upper_decision,
                                   const HostVolume& lower, const SliceDecision& lower_decision,
                                   std::size_t first_plane);

// Reads every slice twice: for the gains, which `plan` gets, and for the volume.
[[nodiscard]] Result<HostVolume> stack_slices(StackPlan& plan, const SliceSource& source, const StackOptions& options,
                                              ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
