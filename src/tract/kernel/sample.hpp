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

// Records that another streamline will read soon, asked for while this one works. A hint: it changes no result.
struct ExpectedRecords {
  std::uint32_t count;
  const float* record[8];
};

CGL_HD inline ExpectedRecords nothing_expected() {
  return {0u, {}};
}

// All records around a position.
CGL_HD inline ExpectedRecords records_around(const FieldView& field, numerics::GridSize size, numerics::Vec3 position) {
  ExpectedRecords expected = nothing_expected();
  if (numerics::is_outside(position, size)) return expected;
  const Corners corners = corners_at(field, size, position);
  for (std::uint32_t corner = 0; corner < 8u; ++corner) expected.record[corner] = corners.record[corner];
  expected.count = 8u;
  return expected;
}

// Those around `next` that are not around `now`, where the streamline read before it moved.
CGL_HD inline ExpectedRecords new_records_around(const FieldView& field, numerics::GridSize size, numerics::Vec3 now,
                                                 numerics::Vec3 next) {
  ExpectedRecords expected = nothing_expected();
  if (numerics::is_outside(next, size)) return expected;
  const numerics::TrilinearCell old_cell = numerics::trilinear_cell(now, size);
  const numerics::TrilinearCell cell = numerics::trilinear_cell(next, size);
  // Corners whose voxel the old cell does not have along this axis; `high` are the corners with the axis' bit.
  const auto fresh = [](const numerics::AxisCell& before, const numerics::AxisCell& after, std::uint32_t high) {
    const bool low_known = after.low == before.low || after.low == before.high;
    const bool high_known = after.high == before.low || after.high == before.high;
    return (low_known ? 0u : ~high & 0xffu) | (high_known ? 0u : high);
  };
  const std::uint32_t wanted =
      fresh(old_cell.x, cell.x, 0xaau) | fresh(old_cell.y, cell.y, 0xccu) | fresh(old_cell.z, cell.z, 0xf0u);
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    if (((wanted >> corner) & 1u) == 0u) continue;
    const std::uint32_t record = field.record_of_voxel[numerics::corner_voxel(cell, size, corner)];
    expected.record[expected.count] = field.records + static_cast<std::size_t>(record) * field.stride;
    expected.count = expected.count + 1u;
  }
  return expected;
}

// Asks for 32 numbers of each. A few at a time between other work: a core waits when it has asked for more lines than
// it can keep track of, a dozen or so.
CGL_HD inline void ask_for(const ExpectedRecords& expected, std::uint32_t at) {
#if !defined(__CUDA_ARCH__)
  constexpr std::uint32_t line_floats = 16;
  for (std::uint32_t i = 0; i < expected.count; ++i) {
    __builtin_prefetch(expected.record[i] + at, 0, 2);
    __builtin_prefetch(expected.record[i] + at + line_floats, 0, 2);
  }
#endif
}

// Channels first .. first + count - 1 into `result`; up to 31 further numbers, which mean nothing, are written as well.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline void interpolate_channels(const Corners& corners, std::uint32_t first, std::uint32_t count, float* result,
                                        const ExpectedRecords& expected = nothing_expected()) {
  for (std::uint32_t row = 0; row < numerics::row_count(count); ++row) {
    const std::uint32_t at = first + numerics::lane_count * row;
    ask_for(expected, at);
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

// Fills slab.record and returns the stopping value, asking for the expected records meanwhile. Peaks are not
// interpolated: the record is the nearest voxel's, as FACT has it (Mori et al., Ann. Neurol. 45, 1999).
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float read_record(const TrackingInput& input, const Slab& slab, numerics::Vec3 position,
                                const ExpectedRecords& expected = nothing_expected()) {
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
  interpolate_channels<Lanes>(corners, 0u, field.channels + 1u, slab.record, expected);
  return slab.record[field.channels];
}

}  // namespace cingulum::kernel
