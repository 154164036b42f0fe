// A diffusion series small enough to fit in a moment: one fibre in each voxel, along the direction that a test gives,
// with noise. For tests of what fields are made from.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tract/field/series_field.hpp"

namespace cingulum::test {

struct SmallSeries {
  SeriesHead head;
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  std::vector<float> stop_map;
};

struct SmallSeriesShape {
  std::array<std::int64_t, 3> size;
  std::array<double, 12> voxel_to_world;
  std::size_t every_direction;  // of the sphere "small": each third, say
  double noise;
};

// `along(voxel, gradient)` is the cosine between the voxel's fibre and the gradient. Mask and stopping map are the
// test's to fill.
template <class Along>
SmallSeries make_small_series(const SmallSeriesShape& shape, std::mt19937& random, Along&& along) {
  SmallSeries series;
  series.head.geometry.size = shape.size;
  series.head.geometry.voxel_to_world.rows = shape.voxel_to_world;
  const auto sphere = named_sphere("small").value();
  GradientTable& table = series.head.table;
  table.b_values = {0};
  table.vectors = {{0, 0, 0}};
  for (std::size_t i = 0; i < sphere.size(); i += shape.every_direction) {
    table.b_values.push_back(1500);
    table.vectors.push_back(sphere.directions[i]);
  }
  const auto voxels = static_cast<std::size_t>(series.head.geometry.voxel_count());
  std::normal_distribution<double> noise(0, shape.noise);
  for (std::size_t volume = 0; volume < table.size(); ++volume) {
    for (std::size_t v = 0; v < voxels; ++v) {
      const double cosine = along(v, table.vectors[volume]);
      const double signal = 1000 * std::exp(-table.b_values[volume] * (0.2e-3 + 1.5e-3 * cosine * cosine));
      series.values.push_back(static_cast<float>(std::abs(signal + noise(random))));
    }
  }
  return series;
}

}  // namespace cingulum::test
