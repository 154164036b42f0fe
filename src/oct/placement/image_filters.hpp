// Small filters of float64 images on the host: what fits need of projections. Voxels are filtered by kernels; these
// images have one value per A-line.
#pragma once

#include <vector>

#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// A Gaussian window of radius int(4 sigma + 0.5), the image mirrored at its edges (the edge pixel repeated). 0: a copy.
[[nodiscard]] HostImage smooth_image(const HostImage& image, double sigma);

// The middle value; the mean of both middle ones where their number is even. 0 for none.
[[nodiscard]] double median(std::vector<double> values);
// By linear interpolation between order statistics, share 0 to 1.
[[nodiscard]] double percentile(std::vector<double> values, double share);
// Otsu 1979 over 256 equal bins between the extremes: values below it are the darker class.
[[nodiscard]] double otsu_threshold(const std::vector<double>& values);

// The mean over planes.
[[nodiscard]] HostImage mean_projection(const HostVolume& volume);

}  // namespace cingulum::oct
