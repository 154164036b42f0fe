// Peaks of the voxels of one slice, as short lines that a page can draw. From the field that is tracked: the directions
// in which streamlines begin there. Called by the server of `cingulum view`.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

// The message of a batch (view_messages.hpp) of request 0: a line of two points through the centre of its voxel for
// each peak, the voxel's strongest as long as the shortest edge, others in proportion; seeds are places among the
// voxels of the slice (field_slice.hpp). Of harmonics and amplitudes the peaks of the field's sphere (peaks.hpp, the
// usual thresholds), of tensors the principal direction. Other fields have none.
[[nodiscard]] Result<std::vector<std::byte>> peaks_of_slice(const Field& field, int axis, double mm, ThreadPool& pool);

}  // namespace cingulum
