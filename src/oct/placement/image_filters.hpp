// Small filters of float64 images on the host: what fits need of projections. Voxels are filtered by kernels; these
// images have one value per A-line.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// The index inside an image that is mirrored at its edges, the edge pixel repeated.
[[nodiscard]] std::size_t mirrored_index(std::ptrdiff_t at, std::size_t size);

// The value between pixels by linear interpolation; false outside the image.
[[nodiscard]] bool sample_image(const HostImage& image, double row, double column, double& value);

// A Gaussian window of radius int(4 sigma + 0.5), the image mirrored. 0: a copy.
[[nodiscard]] HostImage smooth_image(const HostImage& image, double sigma, ThreadPool* pool = nullptr);

// The middle value; the mean of both middle ones where their number is even. 0 for none.
[[nodiscard]] double median(std::vector<double> values);
// The percentile by linear interpolation between order statistics, share 0 to 1.
[[nodiscard]] double percentile(std::vector<double> values, double share);
// Several of the same values, 0 for none.
[[nodiscard]] std::vector<double> percentiles(std::span<const double> values, std::span<const double> shares);
// Otsu 1979 over 256 equal bins between the extremes: values below it are the darker class.
[[nodiscard]] double otsu_threshold(const std::vector<double>& values);

// The mean over planes.
[[nodiscard]] HostImage mean_projection(const HostVolume& volume);

}  // namespace cingulum::oct
