// Slices as one volume, by the decisions of stack_decisions.hpp: each slice is turned, shifted and moved in depth by
// linear interpolation, multiplied by its gain, and mixed with its neighbours over the planes that both have. The
// volume is made a few planes at a time, whichever the caller asks for: what a plane holds does not depend on it. Zero
// means that nothing is there: it weighs nothing.
#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// Planes [first, first + count) of slice `number` of the plan, as it was stitched.
using SliceSource = std::function<Result<HostVolume>(std::size_t number, std::size_t first, std::size_t count)>;

// Planes of one slice in the frame of the volume, without its gain, at the depth that they have.
[[nodiscard]] HostVolume place_slice(const HostVolume& slice, const SliceDecision& decision, std::size_t rows,
                                     std::size_t columns, ThreadPool* pool = nullptr);

// Gains from the medians of neighbouring slices where both have voxels; reads the planes that they share.
[[nodiscard]] Status find_gains(StackPlan& plan, const SliceSource& source, const StackOptions& options,
                                ThreadPool* pool = nullptr);

// Planes [first, first + count) of the volume.
[[nodiscard]] Result<HostVolume> stack_planes(const StackPlan& plan, const SliceSource& source, std::size_t first,
                                              std::size_t count, ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
