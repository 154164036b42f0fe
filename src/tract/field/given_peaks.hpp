// Which of the peaks that a file gives are tracked: the rules that peaks found on a spherical function have, applied to
// given ones once, voxel by voxel, while their field is made. Called by file_field.cpp.
#pragma once

#include <cstddef>
#include <span>

namespace cingulum {

// A rule of 0 does nothing.
struct PeakSelection {
  double relative_threshold = 0;  // shorter than this share of the voxel's longest
  double absolute_threshold = 0;  // shorter than this
  double min_separation_deg = 0;  // nearer than this to a longer one that stays, either way round
};

// `values` has x y z of `peaks` peaks per voxel, length = amplitude; those that do not count become zero, and so do
// those that are not finite.
void keep_peaks(std::span<float> values, std::size_t peaks, const PeakSelection& selection);

}  // namespace cingulum
