// The eight records around a point, kept in the memory that the lanes of a warp share: a step of half a voxel needs two
// or three records that the step before did not have, so the others are not read again, and those that are new come
// without going through registers, all at the same time. A record lies in the place that the lowest bits of its voxel's
// coordinates name; of two voxels with the same place no cell has both. Called by prob_in_registers.hpp and, for
// getters that want the interpolated record in the slab, by StepsFromKept below.
//
// Equal to: read_record of sample.hpp. Gain on an H200, in M steps/s: prob on amplitudes 558 to 1114, det on amplitudes
// 418 to 901; det from series lost by it (259 to 168), closest lost a quarter, so neither uses it. Held by:
// PagedTracker.gives_the_bits_of_the_cpu_on_random_plans, DeviceTracking.default_shapes_have_the_bits_of_the_cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// The memory of a warp. Rows of lanes past a record's end read what lies behind it.
CGL_HD constexpr std::uint32_t kept_corner_words(std::uint32_t stride) {
  return 8u * stride + numerics::lane_count;
}

// The eight records around a point, of `stride` numbers each.
template <class Lanes, std::uint32_t stride>
struct KeptCorners {
  using Word = typename Lanes::Word;
  static_assert(stride % 4u == 0u);

  Word voxel;  // in lane l that of place l % 8

  CGL_HD_GENERIC
  static CGL_HD KeptCorners begin() { return {Lanes::broadcast(0xffffffffu)}; }

  // Brings the records of the corners of the cell to their places, unless they are there.
  CGL_HD_GENERIC
  CGL_HD void move_to(const FieldView& field, numerics::GridSize size, const numerics::TrilinearCell& cell,
                      float* memory) {
    // Each place gets that one of an axis's two voxels whose lowest bit it has; at a face, where both are the same, a
    // place may get a voxel that belongs in another and is not looked for there.
    const auto along = [](const numerics::AxisCell& axis, std::uint32_t odd_places) {
      const std::uint32_t even = axis.low & 1u ? axis.high : axis.low;
      const std::uint32_t odd = axis.low & 1u ? axis.low : axis.high;
      return Lanes::select(Lanes::mask_of_bits(odd_places), Lanes::broadcast(odd), Lanes::broadcast(even));
    };
    const Word y_and_z =
        Lanes::add(along(cell.y, 0xccccccccu), Lanes::multiply(Lanes::broadcast(size.y), along(cell.z, 0xf0f0f0f0u)));
    const Word wanted = Lanes::add(along(cell.x, 0xaaaaaaaau), Lanes::multiply(Lanes::broadcast(size.x), y_and_z));
    const std::uint32_t missing =
        Lanes::ballot(Lanes::less(Lanes::broadcast(0u), Lanes::bits_xor(wanted, voxel))) & 0xffu;
    if (missing == 0u) return;
    voxel = wanted;
    const Word record = Lanes::gather(field.record_of_voxel, wanted);
    Lanes::barrier();
    for (std::uint32_t left = missing; left != 0u; left &= left - 1u) {
      const std::uint32_t place = numerics::lowest_set_bit(left);
      Lanes::template begin_copy<stride>(memory + stride * place,
                                         field.records + static_cast<std::size_t>(Lanes::get(record, place)) * stride);
    }
    Lanes::await_copies();
  }

  // Where the records of the corners begin.
  static CGL_HD void find_corners(const numerics::TrilinearCell& cell, const float* memory, const float* (&record)[8]) {
    const std::uint32_t x[2] = {stride * (cell.x.low & 1u), stride * (cell.x.high & 1u)};
    const std::uint32_t y[2] = {2u * stride * (cell.y.low & 1u), 2u * stride * (cell.y.high & 1u)};
    const std::uint32_t z[2] = {4u * stride * (cell.z.low & 1u), 4u * stride * (cell.z.high & 1u)};
    CGL_UNROLL
    for (std::uint32_t corner = 0; corner < 8u; ++corner) {
      record[corner] = memory + (x[corner & 1u] + y[(corner >> 1) & 1u] + z[corner >> 2]);
    }
  }

  // The first rows of lanes of the record at a position that is not outside; each channel has the bits of sample.hpp.
  CGL_HD_GENERIC
  template <std::uint32_t rows>
  CGL_HD void interpolate(const TrackingInput& input, numerics::Vec3 position, float* memory,
                          typename Lanes::Float (&values)[rows]) {
    const numerics::TrilinearCell cell = numerics::cell_inside(position, input.plan.size);
    move_to(input.field, input.plan.size, cell, memory);
    const float* record[8];
    find_corners(cell, memory, record);
    float weight[8];
    CGL_UNROLL
    for (std::uint32_t corner = 0; corner < 8u; ++corner) weight[corner] = numerics::corner_weight(cell, corner);
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t at = numerics::lane_count * row;
      values[row] = Lanes::multiply(Lanes::broadcast(weight[0]), Lanes::load(record[0] + at));
      CGL_UNROLL
      for (std::uint32_t corner = 1; corner < 8u; ++corner) {
        values[row] = Lanes::add(values[row],
                                 Lanes::multiply(Lanes::broadcast(weight[corner]), Lanes::load(record[corner] + at)));
      }
    }
  }
};

// The steps of any getter on records of `channels` numbers and the stopping value; what is kept lies behind the slab.
template <std::uint32_t channels, std::uint32_t stride>
struct StepsFromKept {
  static constexpr std::uint32_t rows = numerics::row_count(channels + 1u);
  template <class Lanes>
  struct Held {
    KeptCorners<Lanes, stride> corners;

    CGL_HD_GENERIC
    static CGL_HD Held begin(const TrackingInput&) { return {KeptCorners<Lanes, stride>::begin()}; }
  };

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    typename Lanes::Float record[rows];
    held.corners.interpolate(input, position, slab.record + slab_layout(input, false).words, record);
    Lanes::barrier();
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      Lanes::store(slab.record + numerics::lane_count * row, record[row]);
    }
    Lanes::barrier();
    return Lanes::get(record[channels / numerics::lane_count], channels % numerics::lane_count);
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab& slab, const Held<Lanes>&,
                          const numerics::DrawCounter& counter, numerics::Vec3 position, numerics::Vec3 ahead) {
    return next_step<Lanes>(input, slab, counter, position, ahead);
  }
};

}  // namespace cingulum::kernel
