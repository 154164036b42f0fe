// A brain mask from the unweighted volumes where the user gives none: repeated median filter, then Otsu's threshold
// (IEEE Trans. Syst. Man Cybern. 9, 1979), with the meaning and the defaults of DIPY's median_otsu. Called by the verbs
// that need a mask, which write it beside their output and say so. The medians are exact, so masks are equal to DIPY's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

struct MedianOtsuOptions {
  int median_radius = 4;  // voxels, 0 to 15: the window is a cube of edge 2 r + 1, the image mirrored at its faces
  int passes = 4;
  int dilations = 0;      // by the six neighbours, each
  bool finalise = false;  // keep the largest island (six neighbours), then fill all background but its largest part
};

struct BrainMask {
  std::vector<std::uint8_t> mask;  // 0 or 1 per voxel, x fastest
  std::size_t voxels = 0;          // that are 1
  double threshold = 0;            // of the filtered image; voxels above it are brain
};

// `volume` is the mean of the b0 volumes (mean_of_volumes), x fastest, values finite. Fails where all voxels have one
// value or nothing is left.
[[nodiscard]] Result<BrainMask> median_otsu(std::span<const double> volume, const std::array<std::int64_t, 3>& size,
                                            const MedianOtsuOptions& options, ThreadPool& pool,
                                            const CancelToken& cancel = {});

// What median_otsu does first: `passes` times the median of the cube around each voxel.
[[nodiscard]] Result<std::vector<double>> median_filtered(std::span<const double> volume,
                                                          const std::array<std::int64_t, 3>& size, int radius,
                                                          int passes, ThreadPool& pool, const CancelToken& cancel = {});

// Adds a volume to the sum (empty at first), values that are not finite as 0; at the end divide_sum makes it the mean.
void add_to_sum(std::vector<double>& sum, std::span<const float> volume);
void divide_sum(std::vector<double>& sum, std::size_t count);

}  // namespace cingulum
