// The stopping map of a field from a file that has none: the greatest amplitude of each voxel, tracked where it is
// above a cutoff. Called by `cingulum track` for amplitudes, harmonics and peaks; tensors have their FA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/sphere/sphere.hpp"
#include "tract/field/file_field.hpp"

namespace cingulum {

// One number per voxel, zero where the file has none and never below zero: of harmonics on the directions of `sphere`,
// of peaks their length. Not for tensors.
[[nodiscard]] Result<std::vector<float>> greatest_amplitudes(const FieldFile& file, const Sphere& sphere,
                                                             ThreadPool& pool);

struct CutoffReach {
  std::size_t voxels = 0;      // with an amplitude above zero, in the mask; everywhere where it is empty
  std::size_t above = 0;       // of them above the cutoff
  double median_greatest = 0;  // of them
};
// Fails where fewer than a tenth of the voxels are above the cutoff: the file is then in other units. Voxels where it
// has no amplitude say nothing of its units, and a mask may have many of them.
[[nodiscard]] Result<CutoffReach> check_cutoff(const FieldFile& file, std::span<const float> greatest,
                                               std::span<const std::uint8_t> mask, double cutoff);

}  // namespace cingulum
