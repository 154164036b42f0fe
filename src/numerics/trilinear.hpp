// Trilinear interpolation in a grid whose voxel centres have integer coordinates, as every sampler of every backend
// does it: both indices clamped at the faces, corners x fastest, then y, then z, weight (wx wy) wz, sums in sequence.
// Called by the direction getters and stopping rules. It does not choose what happens outside: callers ask is_outside
// first. Mirrored by wgsl/trilinear.wgsl, where the caller reads the eight values from its own buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::numerics {

struct GridSize {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
};

// The voxels cover [-0.5, dim - 0.5) along each axis.
CGL_HD inline bool is_outside(Vec3 position, GridSize size) {
  const bool x_inside = position.x >= -0.5f && position.x + 0.5f < static_cast<float>(size.x);
  const bool y_inside = position.y >= -0.5f && position.y + 0.5f < static_cast<float>(size.y);
  const bool z_inside = position.z >= -0.5f && position.z + 0.5f < static_cast<float>(size.z);
  return !(x_inside && y_inside && z_inside);
}

// One axis of the cell around a position: its two voxels, which coincide at a face, and their weights.
struct AxisCell {
  std::uint32_t low;
  std::uint32_t high;
  float low_weight;
  float high_weight;
};

CGL_HD inline AxisCell axis_cell(float position, std::uint32_t size) {
  const float below = floor_of(position);
  const float high_weight = position - below;
  const std::int32_t index = float_to_int32(below);
  const std::int32_t last = static_cast<std::int32_t>(size) - 1;
  // index + 1 could overflow; comparing before adding cannot.
  const std::int32_t low = index < 0 ? 0 : (index < last ? index : last);
  const std::int32_t high = index < -1 ? 0 : (index < last ? index + 1 : last);
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high), 1.0f - high_weight, high_weight};
}

struct TrilinearCell {
  AxisCell x;
  AxisCell y;
  AxisCell z;
};

CGL_HD inline TrilinearCell trilinear_cell(Vec3 position, GridSize size) {
  return {axis_cell(position.x, size.x), axis_cell(position.y, size.y), axis_cell(position.z, size.z)};
}

// The same for positions that are not outside, where fewer cases occur.
CGL_HD inline TrilinearCell cell_inside(Vec3 position, GridSize size) {
  const auto along = [](float at, std::uint32_t count) -> AxisCell {
    const float below = floor_of(at);
    const float high_weight = at - below;
    const std::int32_t index = static_cast<std::int32_t>(below);
    const std::int32_t last = static_cast<std::int32_t>(count) - 1;
    const std::int32_t high = index < last ? index + 1 : last;
    return {static_cast<std::uint32_t>(index < 0 ? 0 : index), static_cast<std::uint32_t>(high), 1.0f - high_weight,
            high_weight};
  };
  return {along(position.x, size.x), along(position.y, size.y), along(position.z, size.z)};
}

// Corners 0..7: bit 0 is high in x, bit 1 in y, bit 2 in z. Voxels are numbered x fastest; a grid has below 2^32.
CGL_HD inline std::uint32_t corner_voxel(const TrilinearCell& cell, GridSize size, std::uint32_t corner) {
  const std::uint32_t x = (corner & 1u) != 0u ? cell.x.high : cell.x.low;
  const std::uint32_t y = (corner & 2u) != 0u ? cell.y.high : cell.y.low;
  const std::uint32_t z = (corner & 4u) != 0u ? cell.z.high : cell.z.low;
  return x + size.x * (y + size.y * z);
}

// Multiplied x, y, z in this order on every backend; parity depends on it.
CGL_HD inline float corner_weight(const TrilinearCell& cell, std::uint32_t corner) {
  const float x = (corner & 1u) != 0u ? cell.x.high_weight : cell.x.low_weight;
  const float y = (corner & 2u) != 0u ? cell.y.high_weight : cell.y.low_weight;
  const float z = (corner & 4u) != 0u ? cell.z.high_weight : cell.z.low_weight;
  return (x * y) * z;
}

// Sum of weight * value over the corners, in sequence.
CGL_HD inline float combine_corners(const float (&weights)[8], const float (&values)[8]) {
  float sum = weights[0] * values[0];
  for (int corner = 1; corner < 8; ++corner) sum = sum + weights[corner] * values[corner];
  return sum;
}

// `volume` has one value per voxel.
CGL_HD inline float sample_trilinear(const float* volume, GridSize size, Vec3 position) {
  const TrilinearCell cell = trilinear_cell(position, size);
  float weights[8];
  float values[8];
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    weights[corner] = corner_weight(cell, corner);
    values[corner] = volume[corner_voxel(cell, size, corner)];
  }
  return combine_corners(weights, values);
}

// `records` has `channels` contiguous values per voxel; writes one interpolated value per channel. Each has the bits
// that sample_trilinear would give for that channel alone.
CGL_HD inline void sample_trilinear_channels(const float* records, GridSize size, std::uint32_t channels, Vec3 position,
                                             float* result) {
  const TrilinearCell cell = trilinear_cell(position, size);
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const float weight = corner_weight(cell, corner);
    const float* record = records + static_cast<std::size_t>(corner_voxel(cell, size, corner)) * channels;
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      const float term = weight * record[channel];
      result[channel] = corner == 0u ? term : result[channel] + term;
    }
  }
}

}  // namespace cingulum::numerics
