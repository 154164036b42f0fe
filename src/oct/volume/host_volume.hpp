// A float32 volume in host memory, (plane, row, column) with the column fastest, as the stages of OCT that run on the
// host hand it to each other. It knows nothing of files or units: volume_file.hpp does.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"

namespace cingulum::oct {

inline constexpr double radians_per_degree = 0x1.1df46a2529d39p-6;

// The length of (a, b). A root is rounded alike everywhere; hypot() is not.
[[nodiscard]] inline double length_of(double a, double b) {
  return std::sqrt(a * a + b * b);
}

struct HostVolume {
  std::size_t planes = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  BulkVector<float> values;

  HostVolume() = default;
  // All voxels are set to zero by one thread, which touches every page: for what is large and written as a whole
  // unset() is quicker.
  HostVolume(std::size_t plane_count, std::size_t row_count, std::size_t column_count)
      : planes(plane_count),
        rows(row_count),
        columns(column_count),
        values(plane_count * row_count * column_count, 0.0f) {}
  // Leaves the voxels unset, for callers that write all of them next, with threads that then touch their pages first.
  [[nodiscard]] static HostVolume unset(std::size_t plane_count, std::size_t row_count, std::size_t column_count) {
    HostVolume volume;
    volume.planes = plane_count;
    volume.rows = row_count;
    volume.columns = column_count;
    volume.values.resize(plane_count * row_count * column_count);
    return volume;
  }

  [[nodiscard]] std::size_t plane_size() const { return rows * columns; }
  [[nodiscard]] std::size_t index(std::size_t plane, std::size_t row, std::size_t column) const {
    return (plane * rows + row) * columns + column;
  }
  [[nodiscard]] float& at(std::size_t plane, std::size_t row, std::size_t column) {
    return values[index(plane, row, column)];
  }
  [[nodiscard]] float at(std::size_t plane, std::size_t row, std::size_t column) const {
    return values[index(plane, row, column)];
  }
  [[nodiscard]] std::span<const float> plane(std::size_t number) const {
    return std::span(values).subspan(number * plane_size(), plane_size());
  }
  [[nodiscard]] std::span<float> plane(std::size_t number) {
    return std::span(values).subspan(number * plane_size(), plane_size());
  }
};

// A float64 image, the column fastest: projections, fields, maps.
struct HostImage {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;

  HostImage() = default;
  HostImage(std::size_t row_count, std::size_t column_count, double value = 0.0)
      : rows(row_count), columns(column_count), values(row_count * column_count, value) {}

  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

}  // namespace cingulum::oct
