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

// Where the records around a position begin. Those of a field in half precision hold float16 (and begin at multiples of
// four bytes, too): they are read by the functions here alone.
struct Corners {
  const float* record[8];
  float weight[8];
  std::uint32_t is_float16;
};

CGL_HD inline const std::uint16_t* float16_of(const float* record) {
  return reinterpret_cast<const std::uint16_t*>(record);
}

// The distance from record to record, in units of four bytes.
CGL_HD inline std::size_t stride_in_words(const FieldView& field) {
  return field.is_float16 != 0u ? field.stride / 2u : field.stride;
}

CGL_HD inline float record_number(const float* record, std::uint32_t channel, std::uint32_t is_float16) {
  return is_float16 != 0u ? numerics::finite_float16_to_float(float16_of(record)[channel]) : record[channel];
}

CGL_HD inline Corners corners_of_cell(const FieldView& field, numerics::GridSize size,
                                      const numerics::TrilinearCell& cell) {
  Corners corners;
  corners.is_float16 = field.is_float16;
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const std::uint32_t record = field.record_of_voxel[numerics::corner_voxel(cell, size, corner)];
    corners.record[corner] = field.records + static_cast<std::size_t>(record) * stride_in_words(field);
    corners.weight[corner] = numerics::corner_weight(cell, corner);
  }
  return corners;
}

CGL_HD inline Corners corners_at(const FieldView& field, numerics::GridSize size, numerics::Vec3 position) {
  return corners_of_cell(field, size, numerics::trilinear_cell(position, size));
}

// One channel alone.
CGL_HD inline float interpolate_channel(const Corners& corners, std::uint32_t channel) {
  float sum = corners.weight[0] * record_number(corners.record[0], channel, corners.is_float16);
  for (int corner = 1; corner < 8; ++corner) {
    sum = sum + corners.weight[corner] * record_number(corners.record[corner], channel, corners.is_float16);
  }
  return sum;
}

// Records that another streamline will read soon, asked for while this one works. A hint: it changes no result.
struct ExpectedRecords {
  std::uint32_t count;
  std::uint32_t is_float16;
  const float* record[8];  // the first `count`
};

CGL_HD inline ExpectedRecords nothing_expected() {
  return {0u, 0u, {}};
}

// The bits of the corners of `cell` whose voxels `known` does not have.
CGL_HD inline std::uint32_t new_corners(const numerics::TrilinearCell& known, const numerics::TrilinearCell& cell) {
  // `high` has the corners on the upper side of the axis.
  const auto along = [](const numerics::AxisCell& before, const numerics::AxisCell& after, std::uint32_t high) {
    const bool low_known = after.low == before.low || after.low == before.high;
    const bool high_known = after.high == before.low || after.high == before.high;
    return (low_known ? 0u : ~high & 0xffu) | (high_known ? 0u : high);
  };
  return along(known.x, cell.x, 0xaau) | along(known.y, cell.y, 0xccu) | along(known.z, cell.z, 0xf0u);
}

// Lists the records of the corners in `bits`. Without branches: which corners are new cannot be predicted.
CGL_HD inline ExpectedRecords expect_corners(const Corners& corners, std::uint32_t bits) {
  ExpectedRecords expected;
  expected.count = 0u;
  expected.is_float16 = corners.is_float16;
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    expected.record[expected.count] = corners.record[corner];
    expected.count = expected.count + ((bits >> corner) & 1u);
  }
  return expected;
}

// Asks for 32 numbers of each. A few at a time between other work: a core waits when it has asked for more lines than
// it can keep track of, a dozen or so.
CGL_HD inline void ask_for(const ExpectedRecords& expected, std::uint32_t at) {
#if !defined(__CUDA_ARCH__)
  constexpr std::uint32_t line_floats = 16;
  if (expected.is_float16 != 0u) at /= 2u;
  for (std::uint32_t i = 0; i < expected.count; ++i) {
    __builtin_prefetch(expected.record[i] + at, 0, 2);
    __builtin_prefetch(expected.record[i] + at + line_floats, 0, 2);
  }
#endif
}

// The 32 channels from `first` on.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float interpolate_float16(const Corners& corners, std::uint32_t first) {
  typename Lanes::Float sum =
      Lanes::multiply(Lanes::broadcast(corners.weight[0]), Lanes::load_float16(float16_of(corners.record[0]) + first));
  for (int corner = 1; corner < 8; ++corner) {
    sum = Lanes::add(sum, Lanes::multiply(Lanes::broadcast(corners.weight[corner]),
                                          Lanes::load_float16(float16_of(corners.record[corner]) + first)));
  }
  return sum;
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float interpolate_row(const Corners& corners, std::uint32_t first) {
  if (corners.is_float16 != 0u) return interpolate_float16<Lanes>(corners, first);
  typename Lanes::Float sum =
      Lanes::multiply(Lanes::broadcast(corners.weight[0]), Lanes::load(corners.record[0] + first));
  for (int corner = 1; corner < 8; ++corner) {
    sum = Lanes::add(
        sum, Lanes::multiply(Lanes::broadcast(corners.weight[corner]), Lanes::load(corners.record[corner] + first)));
  }
  return sum;
}

// Channels first .. first + count - 1 into `result`; up to 31 further numbers, which mean nothing, are written as well.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline void interpolate_channels(const Corners& corners, std::uint32_t first, std::uint32_t count, float* result,
                                        const ExpectedRecords& expected = nothing_expected()) {
  for (std::uint32_t row = 0; row < numerics::row_count(count); ++row) {
    const std::uint32_t at = first + numerics::lane_count * row;
    ask_for(expected, at);
    Lanes::store(result + numerics::lane_count * row, interpolate_row<Lanes>(corners, at));
  }
  Lanes::barrier();
}

// The record of the voxel that contains the position.
CGL_HD inline const float* nearest_record(const FieldView& field, numerics::GridSize size, numerics::Vec3 position) {
  const numerics::AxisCell x = numerics::axis_cell(numerics::floor_of(position.x + 0.5f), size.x);
  const numerics::AxisCell y = numerics::axis_cell(numerics::floor_of(position.y + 0.5f), size.y);
  const numerics::AxisCell z = numerics::axis_cell(numerics::floor_of(position.z + 0.5f), size.z);
  const std::uint32_t voxel = x.low + size.x * (y.low + size.y * z.low);
  return field.records + static_cast<std::size_t>(field.record_of_voxel[voxel]) * stride_in_words(field);
}

// Fills slab.record and returns the stopping value, asking for the expected records meanwhile. Peaks are not
// interpolated: the record is the nearest voxel's, as FACT has it (Mori et al., Ann. Neurol. 45, 1999).
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float read_record(const TrackingInput& input, const Slab& slab, numerics::Vec3 position,
                                const Corners& corners, const ExpectedRecords& expected) {
  const FieldView& field = input.field;
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

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float read_record(const TrackingInput& input, const Slab& slab, numerics::Vec3 position) {
  return read_record<Lanes>(input, slab, position, corners_at(input.field, input.plan.size, position),
                            nothing_expected());
}

}  // namespace cingulum::kernel
