// Reading the field at a point: one gather of the eight records around it serves the stopping map and the choice of a
// direction. Each channel has the bits of numerics/trilinear.hpp. Called by the loop of a half and by the getters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

struct Corners {
  const float* record[8];
  float weight[8];
};

CGL_HD inline Corners corners_at(const FieldView& field, numerics::GridSize size, numerics::Vec3 position) {
  const numerics::TrilinearCell cell = numerics::trilinear_cell(position, size);
  Corners corners;
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const std::uint32_t record = field.record_of_voxel[numerics::corner_voxel(cell, size, corner)];
    corners.record[corner] = field.records + static_cast<std::size_t>(record) * field.stride;
    corners.weight[corner] = numerics::corner_weight(cell, corner);
  }
  return corners;
}

// One channel alone.
CGL_HD inline float interpolate_channel(const Corners& corners, std::uint32_t channel) {
  float sum = corners.weight[0] * corners.record[0][channel];
  for (int corner = 1; corner < 8; ++corner) sum = sum + corners.weight[corner] * corners.record[corner][channel];
  return sum;
}

// Channels first .. first + count - 1 into `result`; up to 31 further numbers, which mean nothing, are written as well.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline void interpolate_channels(const Corners& corners, std::uint32_t first, std::uint32_t count,
                                        float* result) {
  for (std::uint32_t row = 0; row < numerics::row_count(count); ++row) {
    const std::uint32_t at = first + numerics::lane_count * row;
    typename Lanes::Float sum =
        Lanes::multiply(Lanes::broadcast(corners.weight[0]), Lanes::load(corners.record[0] + at));
    for (int corner = 1; corner < 8; ++corner) {
      sum = Lanes::add(
          sum, Lanes::multiply(Lanes::broadcast(corners.weight[corner]), Lanes::load(corners.record[corner] + at)));
    }
    Lanes::store(result + numerics::lane_count * row, sum);
  }
  Lanes::barrier();
}

// The record of the voxel that contains the position.
CGL_HD inline const float* nearest_record(const FieldView& field, numerics::GridSize size, numerics::Vec3 position) {
  const numerics::AxisCell x = numerics::axis_cell(numerics::floor_of(position.x + 0.5f), size.x);
  const numerics::AxisCell y = numerics::axis_cell(numerics::floor_of(position.y + 0.5f), size.y);
  const numerics::AxisCell z = numerics::axis_cell(numerics::floor_of(position.z + 0.5f), size.z);
  const std::uint32_t voxel = x.low + size.x * (y.low + size.y * z.low);
  return field.records + static_cast<std::size_t>(field.record_of_voxel[voxel]) * field.stride;
}

// Asks for the records around a position that is likely to be read next, while there is other work to do. A hint: it
// changes no result, and a backend may leave it out.
CGL_HD inline void expect_records(const FieldView& field, numerics::GridSize size, numerics::Vec3 now,
                                  numerics::Vec3 next) {
#if !defined(__CUDA_ARCH__)
  constexpr std::uint32_t line_floats = 16;
  if (field.channels < 8u * line_floats || numerics::is_outside(next, size)) return;
  const Corners here = corners_at(field, size, now);
  const Corners there = corners_at(field, size, next);
  for (int corner = 0; corner < 8; ++corner) {
    bool read_already = false;
    for (int other = 0; other < 8; ++other) read_already = read_already || there.record[corner] == here.record[other];
    if (read_already) continue;
    for (std::uint32_t at = 0; at <= field.channels; at += line_floats) {
      __builtin_prefetch(there.record[corner] + at, 0, 2);
    }
  }
#endif
}

// Fills slab.record and returns the stopping value. Peaks are not interpolated: the record is the nearest voxel's, as
// FACT has it (Mori et al., Ann. Neurol. 45, 1999).
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float read_record(const TrackingInput& input, const Slab& slab, numerics::Vec3 position) {
  const FieldView& field = input.field;
  const Corners corners = corners_at(field, input.plan.size, position);
  Lanes::barrier();
  if (field.kind == field_of_peaks) {
    const float* nearest = nearest_record(field, input.plan.size, position);
    for (std::uint32_t row = 0; row < numerics::row_count(field.channels); ++row) {
      const std::uint32_t at = numerics::lane_count * row;
      Lanes::store(slab.record + at, Lanes::load(nearest + at));
    }
    Lanes::barrier();
    return interpolate_channel(corners, field.channels);
  }
  interpolate_channels<Lanes>(corners, 0u, field.channels + 1u, slab.record);
  return slab.record[field.channels];
}

}  // namespace cingulum::kernel
