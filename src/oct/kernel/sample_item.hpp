// A volume read at a coordinate, by splines of order 0, 1 or 3; coordinates are a whole number and a fraction, so that
// precision does not depend on the size of the volume. Mirrored by webgpu/sample_volume.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/line_index.hpp"

namespace cingulum::oct {

struct AxisPosition {
  std::int32_t whole;
  float fraction;
};

// Further than any volume reaches; sums of four stay within 32 bits.
inline constexpr std::int32_t farthest_whole = 1 << 28;

CGL_HD inline std::int32_t limited_whole(std::int32_t whole) {
  return whole < -farthest_whole ? -farthest_whole : (whole > farthest_whole ? farthest_whole : whole);
}

CGL_HD inline AxisPosition position_of(float coordinate) {
  // Cutting off is rounding down here: the same bits by fewer operations.
  if (coordinate >= 0.0f && coordinate < static_cast<float>(farthest_whole)) {
    const auto whole = static_cast<std::int32_t>(coordinate);
    return {whole, coordinate - static_cast<float>(whole)};
  }
  const float below = numerics::floor_of(coordinate);
  return {limited_whole(numerics::float_to_int32(below)), coordinate - below};
}

// One input axis of an affine transform: three parts, of the output's z, y and x.
CGL_HD inline AxisPosition joined(AxisPosition z, AxisPosition y, AxisPosition x) {
  const float fraction = (z.fraction + y.fraction) + x.fraction;
  const float carried = numerics::floor_of(fraction);
  return {((z.whole + y.whole) + x.whole) + static_cast<std::int32_t>(carried), fraction - carried};
}

CGL_HD inline bool lies_outside(AxisPosition at, std::int32_t count) {
  return at.whole < 0 || at.whole >= count || (at.whole == count - 1 && at.fraction > 0.0f);
}

// Whether both samples beside it are in the line.
CGL_HD inline bool is_between(AxisPosition at, std::int32_t count) {
  return static_cast<std::uint32_t>(at.whole) < static_cast<std::uint32_t>(count - 1);
}

// Taps of one axis: their samples and weights, from `whole` on for order 1, from the one before for order 3.
struct AxisWeights {
  std::int32_t index[4];
  float weight[4];
};

CGL_HD inline AxisWeights axis_weights(AxisPosition at, std::int32_t count, std::uint32_t order, Boundary boundary) {
  AxisWeights taps;
  const float f = at.fraction;
  const float g = 1.0f - f;
  if (order == 0u) {
    taps.index[0] = tap_index(at.whole + (f >= 0.5f ? 1 : 0), count, boundary);
    taps.weight[0] = 1.0f;
  } else if (order == 1u) {
    for (std::int32_t i = 0; i < 2; ++i) taps.index[i] = tap_index(at.whole + i, count, boundary);
    taps.weight[0] = g;
    taps.weight[1] = f;
  } else {
    constexpr float sixth = 0x1.555556p-3f;
    constexpr float two_thirds = 0x1.555556p-1f;
    for (std::int32_t i = 0; i < 4; ++i) taps.index[i] = tap_index(at.whole - 1 + i, count, boundary);
    taps.weight[0] = ((g * g) * g) * sixth;
    taps.weight[1] = (f * f) * (0.5f * f - 1.0f) + two_thirds;
    taps.weight[2] = (g * g) * (0.5f * g - 1.0f) + two_thirds;
    taps.weight[3] = ((f * f) * f) * sixth;
  }
  return taps;
}

// Whether all eight neighbours are in the volume: then `cell_sum` is what order 1 gives.
CGL_HD inline bool lies_in_cell(const SampleVolumeRecord& record, AxisPosition z, AxisPosition y, AxisPosition x) {
  return is_between(z, static_cast<std::int32_t>(record.in_z)) &&
         is_between(y, static_cast<std::int32_t>(record.in_y)) && is_between(x, static_cast<std::int32_t>(record.in_x));
}

// Corners x fastest, then y, then z; weight (wx wy) wz; in sequence. `Index` counts the voxels of the volume.
template <class Index>
CGL_HD inline float cell_sum(const float* volume, const SampleVolumeRecord& record, AxisPosition z, AxisPosition y,
                             AxisPosition x) {
  const Index row_step = record.in_x;
  const Index plane_step = row_step * record.in_y;
  const Index corner = (static_cast<Index>(z.whole) * record.in_y + static_cast<Index>(y.whole)) * record.in_x +
                       static_cast<Index>(x.whole);
  const float wx[2] = {1.0f - x.fraction, x.fraction};
  const float wy[2] = {1.0f - y.fraction, y.fraction};
  const float wz[2] = {1.0f - z.fraction, z.fraction};
  float sum = 0.0f;
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 2; ++j) {
      const float* const line = volume + (corner + i * plane_step + j * row_step);
      sum = sum + ((wx[0] * wy[j]) * wz[i]) * line[0];
      sum = sum + ((wx[1] * wy[j]) * wz[i]) * line[1];
    }
  }
  return sum;
}

CGL_HD inline float sampled(const float* volume, const SampleVolumeRecord& record, AxisPosition z, AxisPosition y,
                            AxisPosition x) {
  if (record.order == 1u && lies_in_cell(record, z, y, x)) return cell_sum<std::size_t>(volume, record, z, y, x);
  const auto boundary = static_cast<Boundary>(record.boundary);
  const auto depth = static_cast<std::int32_t>(record.in_z);
  const auto height = static_cast<std::int32_t>(record.in_y);
  const auto width = static_cast<std::int32_t>(record.in_x);
  if (boundary == Boundary::constant && (lies_outside(z, depth) || lies_outside(y, height) || lies_outside(x, width))) {
    return record.value;
  }
  const AxisWeights tz = axis_weights(z, depth, record.order, boundary);
  const AxisWeights ty = axis_weights(y, height, record.order, boundary);
  const AxisWeights tx = axis_weights(x, width, record.order, boundary);
  const auto row = [&](std::int32_t iz, std::int32_t iy) {
    return volume + (static_cast<std::size_t>(iz) * record.in_y + static_cast<std::size_t>(iy)) * record.in_x;
  };
  if (record.order == 0u) return row(tz.index[0], ty.index[0])[tx.index[0]];
  if (record.order == 1u) {
    // The sum of a cell, whose corners beyond an end are others.
    float sum = 0.0f;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        const float* const line = row(tz.index[i], ty.index[j]);
        for (int k = 0; k < 2; ++k) {
          sum = sum + ((tx.weight[k] * ty.weight[j]) * tz.weight[i]) * line[tx.index[k]];
        }
      }
    }
    return sum;
  }
  float total = 0.0f;
  for (int i = 0; i < 4; ++i) {
    float plane = 0.0f;
    for (int j = 0; j < 4; ++j) {
      const float* const line = row(tz.index[i], ty.index[j]);
      float sum = 0.0f;
      for (int k = 0; k < 4; ++k) sum = sum + tx.weight[k] * line[tx.index[k]];
      plane = plane + ty.weight[j] * sum;
    }
    total = total + tz.weight[i] * plane;
  }
  return total;
}

// Where output voxel (z, y, x) of the range reads. The table of an affine transform for an output axis of `count`
// indices has six rows: whole numbers and fractions for each of the input's three axes.
CGL_HD inline AxisPosition table_position(const std::uint32_t* table, std::uint32_t count, std::uint32_t index,
                                          std::uint32_t axis) {
  const std::uint32_t* const entry = table + 2 * std::size_t{axis} * count + index;
  return {static_cast<std::int32_t>(entry[0]), numerics::bits_float(entry[count])};
}

CGL_HD inline float sampled_output(const float* volume, const float* const (&coordinates)[3],
                                   const SampleVolumeRecord& record, std::uint32_t z, std::uint32_t y,
                                   std::uint32_t x) {
  AxisPosition at[3];
  const auto source = static_cast<CoordinateSource>(record.source);
  if (source == CoordinateSource::affine) {
    const auto* const of_z = reinterpret_cast<const std::uint32_t*>(coordinates[0]);
    const auto* const of_y = reinterpret_cast<const std::uint32_t*>(coordinates[1]);
    const auto* const of_x = reinterpret_cast<const std::uint32_t*>(coordinates[2]);
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      at[axis] = joined(table_position(of_z, record.all_z, record.out_first_z + z, axis),
                        table_position(of_y, record.out_y, y, axis), table_position(of_x, record.out_x, x, axis));
    }
  } else {
    const std::size_t voxel = (std::size_t{z} * record.out_y + y) * record.out_x + x;
    for (std::uint32_t axis = 0; axis < 3; ++axis) at[axis] = position_of(coordinates[axis][voxel]);
    if (source == CoordinateSource::displacement) {
      at[0].whole += static_cast<std::int32_t>(record.out_first_z + z);
      at[1].whole += static_cast<std::int32_t>(y);
      at[2].whole += static_cast<std::int32_t>(x);
    }
  }
  return sampled(volume, record, at[0], at[1], at[2]);
}

}  // namespace cingulum::oct
