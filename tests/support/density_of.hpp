// Small tractograms and their density maps, for tests of both.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "streamlines/density_map.hpp"

namespace cingulum {

inline TractogramBatch batch_of(const std::vector<std::vector<numerics::Vec3d>>& lines) {
  TractogramBatch batch;
  for (const auto& line : lines) {
    for (const numerics::Vec3d point : line) {
      for (const double value : {point.x, point.y, point.z}) batch.positions.push_back(static_cast<float>(value));
    }
    batch.offsets.push_back(batch.positions.size() / 3);
  }
  return batch;
}

inline DensityMap density_of(const ImageGeometry& grid, const TractogramBatch& batch, int thread_count = 1) {
  auto map = DensityMap::create(grid);
  EXPECT_TRUE(map.has_value());
  const std::vector<std::uint8_t> skipped(batch.streamline_count(), 0);
  map->add(batch, skipped, **ThreadPool::create(thread_count));
  return std::move(*map);
}

inline ImageGeometry grid_of(std::int64_t i, std::int64_t j, std::int64_t k) {
  ImageGeometry grid;
  grid.size = {i, j, k};
  return grid;
}

}  // namespace cingulum
