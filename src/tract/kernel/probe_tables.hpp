// What ptt on amplitudes reads where a thread follows a probe: tables that a tracker makes of its input (ProbeView),
// and the amplitude at a position along a tangent from them, with the bits of amplitudes_along in ptt.hpp. Called by
// ptt_in_registers.hpp; the tables are filled by cuda/ptt_kernels.cu and, on the host, by tests and for WebGPU.
//
// Equal to: amplitudes_along and nearest_slots of ptt.hpp. Gain: part of that of ptt_in_registers.hpp. Held by: the
// tests named there and ProbeWords.have_the_nearest_slot_among_those_of_its_cell.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

struct alignas(16) FourWords {
  std::uint32_t word[4];
};
struct alignas(16) FourFloats {
  float number[4];
};

// How many cells ProbeView has, and the records of one.
CGL_HD constexpr std::size_t probe_cell_count(numerics::GridSize size) {
  return (std::size_t{size.x} + 1u) * (std::size_t{size.y} + 1u) * (std::size_t{size.z} + 1u);
}
CGL_HD inline void write_probe_cell(const TrackingInput& input, std::size_t cell, std::uint32_t* cells) {
  const numerics::GridSize size = input.plan.size;
  const std::size_t row = cell / (size.x + 1u);
  const auto corner_of = [](std::size_t at, std::uint32_t extent, bool high) {
    const std::size_t index = high ? at : (at == 0u ? 0u : at - 1u);
    return index < extent ? index : extent - 1u;
  };
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const std::size_t x = corner_of(cell % (size.x + 1u), size.x, (corner & 1u) != 0u);
    const std::size_t y = corner_of(row % (size.y + 1u), size.y, (corner & 2u) != 0u);
    const std::size_t z = corner_of(row / (size.y + 1u), size.z, (corner & 4u) != 0u);
    cells[8u * cell + corner] = input.field.record_of_voxel[x + size.x * (y + size.y * z)] * (input.field.stride / 4u);
  }
}

// What slots are sorted by: the face of a cube that the direction meets, and where along a curve through that face.
CGL_HD inline std::uint32_t curve_place(numerics::Vec3 v) {
  const float x = __builtin_fabsf(v.x);
  const float y = __builtin_fabsf(v.y);
  const float z = __builtin_fabsf(v.z);
  const std::uint32_t face = x >= y && x >= z ? 0u : (y >= z ? 1u : 2u);
  const float major = face == 0u ? v.x : (face == 1u ? v.y : v.z);
  const std::uint32_t i = static_cast<std::uint32_t>(((face == 0u ? v.y : v.x) / major + 1.0f) * 15.9f);
  const std::uint32_t j = static_cast<std::uint32_t>(((face == 2u ? v.y : v.z) / major + 1.0f) * 15.9f);
  std::uint32_t rank = face << 10u;
  for (std::uint32_t bit = 0; bit < 5u; ++bit) {
    rank |= (((i >> bit) & 1u) << (2u * bit)) | (((j >> bit) & 1u) << (2u * bit + 1u));
  }
  return rank;
}
// ProbeView::ranks of one slot.
CGL_HD inline std::uint32_t rank_of_slot(const TrackingInput& input, std::uint32_t slot) {
  const auto key = [&](std::uint32_t of) {
    return curve_place({input.sphere.x[of], input.sphere.y[of], input.sphere.z[of]});
  };
  const std::uint32_t own = key(slot);
  std::uint32_t before = 0;
  for (std::uint32_t other = 0; other < input.field.channels; ++other) {
    const std::uint32_t its = key(other);
    if (its < own || (its == own && other < slot)) ++before;
  }
  return before;
}

// The numbers of one slot at the corners of a cell, side by side; slot `channels` is the stopping map.
CGL_HD inline void write_corners(const TrackingInput& input, std::size_t cell, std::uint32_t slot, FourFloats* to) {
  const std::uint32_t* const records = input.probes.cells + 8u * cell;
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    to[corner / 4u].number[corner % 4u] = input.field.records[4u * static_cast<std::size_t>(records[corner]) + slot];
  }
}

inline constexpr std::uint32_t ranks_of_group = 16;
inline constexpr std::uint32_t most_groups = numerics::lane_count;
// What ProbeView::greatest has of a group whose corners begin at `corners`. A weighted mean is rounded up by less than
// is added.
CGL_HD inline float greatest_of_group(const TrackingInput& input, const FourFloats* corners, std::uint32_t group) {
  float greatest = 0.0f;
  for (std::uint32_t rank = ranks_of_group * group; rank < ranks_of_group * (group + 1u) && rank < input.field.channels;
       ++rank) {
    for (std::uint32_t corner = 0; corner < 8u; ++corner) {
      const float value = corners[2u * rank + corner / 4u].number[corner % 4u];
      greatest = value > greatest ? value : greatest;
    }
  }
  return greatest > 0.0f ? greatest * (1.0f + 0x1p-16f) + 0x1p-120f : 0.0f;
}

inline constexpr std::uint32_t packed_slot_bits = 10;
inline constexpr std::uint32_t packed_slot_mask = (1u << packed_slot_bits) - 1u;
// This bit is set where a cell has more than three slots, which are in NearestView.
inline constexpr std::uint32_t packed_too_many = 1u << 31u;
// Cells along an edge: a whole number of those of NearestView each. With so few most cells have several slots, but the
// table is small, and 32 threads would rarely all have one.
inline constexpr std::uint32_t packed_cells = 32;
inline constexpr std::uint32_t packed_nearest_words = 3u * packed_cells * packed_cells;

// Up to three slots, ascending, the first again where there are fewer: all that the cells of NearestView within this
// one have.
CGL_HD inline std::uint32_t packed_nearest(const NearestView& nearest, std::uint32_t cell) {
  const std::uint32_t times = nearest.cells / packed_cells;
  const std::uint32_t face = cell / (packed_cells * packed_cells);
  const std::uint32_t j = cell / packed_cells % packed_cells;
  const std::uint32_t i = cell % packed_cells;
  std::uint32_t slots[3] = {0u, 0u, 0u};
  std::uint32_t count = 0;
  // The next slot in ascending order, until there is none.
  for (;;) {
    std::uint32_t next = 0xffffffffu;
    for (std::uint32_t n = 0; n < times * times * nearest.capacity; ++n) {
      const std::uint32_t inner = n / nearest.capacity;
      const std::uint32_t row = (face * packed_cells + j) * times + inner / times;
      const std::uint32_t at = row * nearest.cells + i * times + inner % times;
      const std::uint32_t slot = nearest.slots[static_cast<std::size_t>(at) * nearest.capacity + n % nearest.capacity];
      if ((count == 0u || slot > slots[count - 1u]) && slot < next) next = slot;
    }
    if (next == 0xffffffffu) break;
    if (count == 3u) return packed_too_many;
    slots[count++] = next;
  }
  for (std::uint32_t n = count; n < 3u; ++n) slots[n] = slots[0];
  return slots[0] | slots[1] << packed_slot_bits | slots[2] << (2u * packed_slot_bits);
}

// The cell on a cube's face with twice `half_edge` cells along its edge: a component over the largest is multiplied by
// short_scale, a little short of half the cells, so that 1 falls into the last; rounded_middle is added, half less than
// the face's middle, because the sum is rounded to a whole number instead of cut.
CGL_HD constexpr float short_scale(float half_edge) {
  return half_edge * 0.999999f;
}
CGL_HD constexpr float rounded_middle(float half_edge) {
  return half_edge - 0.5f;
}

// nearest_slots of one vector; with `ranked` the slot's rank.
template <bool ranked>
CGL_HD inline std::uint32_t nearest_slot(const TrackingInput& input, numerics::Vec3 v) {
  const float x = __builtin_fabsf(v.x);
  const float y = __builtin_fabsf(v.y);
  const float z = __builtin_fabsf(v.z);
  const bool along_x = x >= y && x >= z;
  const bool along_y = y >= z;
  const float major = along_x ? v.x : (along_y ? v.y : v.z);
  const float first = along_x ? v.y : v.x;
  const float second = along_x || along_y ? v.z : v.y;
  const std::uint32_t face = along_x ? 0u : (along_y ? 1u : 2u);
  // One division where nearest_slots has two, and a sum with 1.5 2^23, which rounds, instead of the whole part:
  // the point moves by less than 10^-4 of a cell, up to which the lists of both cells at a border have what may be
  // nearest (cpu/tables.cpp).
  const float inverse = 1.0f / major;
  const auto cell_index = [&](float half_edge, std::uint32_t cells) {
    constexpr float whole_numbers = 0x1.8p23f;
    const float scale = short_scale(half_edge) * inverse;
    const auto cell = [&](float minor) {
      return numerics::float_bits((minor * scale + rounded_middle(half_edge)) + whole_numbers) -
             numerics::float_bits(whole_numbers);
    };
    return (face * cells + cell(second)) * cells + cell(first);
  };
  const std::uint32_t packed = input.probes.nearest[cell_index(0.5f * packed_cells, packed_cells)];
  const FourFloats* const directions = reinterpret_cast<const FourFloats*>(input.probes.directions);
  std::uint32_t best = 0;
  float best_cosine = 0.0f;
  const auto compare = [&](std::uint32_t slot, bool is_first) {
    const FourFloats d = directions[slot];
    const float cosine = __builtin_fabsf((d.number[0] * v.x + d.number[1] * v.y) + d.number[2] * v.z);
    if (is_first || cosine > best_cosine) {
      best = ranked ? numerics::float_bits(d.number[3]) : slot;
      best_cosine = cosine;
    }
  };
  if ((packed & packed_too_many) == 0u) {
    compare(packed & packed_slot_mask, true);
    compare((packed >> packed_slot_bits) & packed_slot_mask, false);
    compare((packed >> (2u * packed_slot_bits)) & packed_slot_mask, false);
  } else {
    const NearestView& nearest = input.nearest;
    const std::uint32_t* const list =
        nearest.slots + static_cast<std::size_t>(cell_index(0.5f * static_cast<float>(nearest.cells), nearest.cells)) *
                            nearest.capacity;
    compare(list[0], true);
    for (std::uint32_t n = 1; n < nearest.capacity && list[n] > list[0]; ++n) compare(list[n], false);
  }
  return best;
}

struct GridCell {
  std::int32_t x, y, z;
  numerics::Vec3 below;
};

CGL_HD inline GridCell grid_cell(numerics::Vec3 position) {
  const numerics::Vec3 below{numerics::floor_of(position.x), numerics::floor_of(position.y),
                             numerics::floor_of(position.z)};
  return {static_cast<std::int32_t>(below.x), static_cast<std::int32_t>(below.y), static_cast<std::int32_t>(below.z),
          below};
}

// Whether the cell lies between voxel centres; then its position is inside of the image, whatever is rounded.
CGL_HD inline bool between_centres(const GridCell& grid, numerics::GridSize size) {
  return static_cast<std::uint32_t>(grid.x) < size.x - 1u && static_cast<std::uint32_t>(grid.y) < size.y - 1u &&
         static_cast<std::uint32_t>(grid.z) < size.z - 1u;
}

CGL_HD inline std::uint32_t cell_number(const GridCell& grid, numerics::GridSize size) {
  const std::uint32_t row =
      static_cast<std::uint32_t>(grid.z + 1) * (size.y + 1u) + static_cast<std::uint32_t>(grid.y + 1);
  return row * (size.x + 1u) + static_cast<std::uint32_t>(grid.x + 1);
}

struct CornerWeights {
  float weight[8];
};

CGL_HD inline CornerWeights corner_weights(const GridCell& grid, numerics::Vec3 position) {
  const float x1 = position.x - grid.below.x;
  const float y1 = position.y - grid.below.y;
  const float z1 = position.z - grid.below.z;
  const float x0 = 1.0f - x1;
  const float y0 = 1.0f - y1;
  const float z0 = 1.0f - z1;
  const float xy[4] = {x0 * y0, x1 * y0, x0 * y1, x1 * y1};
  CornerWeights result;
  CGL_UNROLL
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    result.weight[corner] = xy[corner % 4u] * (corner < 4u ? z0 : z1);
  }
  return result;
}

// The records of the corners of a cell.
struct CellRecords {
  FourWords words[2];

  CGL_HD std::uint32_t record(std::uint32_t corner) const { return words[corner / 4u].word[corner % 4u]; }
};
CGL_HD inline CellRecords cell_records(const TrackingInput& input, std::uint32_t cell) {
  const FourWords* const from = reinterpret_cast<const FourWords*>(input.probes.cells) + 2u * std::size_t{cell};
  return {{from[0], from[1]}};
}

// The same, kept by the compiler as it is: it would put it together anew wherever it is used.
CGL_HD inline const char* one_address(const float* at) {
  const char* address = reinterpret_cast<const char*>(at);
#if defined(__CUDA_ARCH__)
  asm("" : "+l"(address));
#endif
  return address;
}
CGL_HD inline std::uint32_t one_number(std::uint32_t number) {
#if defined(__CUDA_ARCH__)
  asm("" : "+r"(number));
#endif
  return number;
}

// The numbers of a cell's corners where they lie side by side.
CGL_HD inline const FourFloats* corners_of(const TrackingInput& input, std::uint32_t number) {
  const std::uint32_t first = number * (input.field.channels + 1u);
  return reinterpret_cast<const FourFloats*>(input.probes.corners) + 2u * std::size_t{first};
}
CGL_HD inline float interpolated(const FourFloats* corners, std::uint32_t rank, const CornerWeights& weights) {
  const FourFloats low = corners[2u * rank];
  const FourFloats high = corners[2u * rank + 1u];
  float sum = weights.weight[0] * low.number[0];
  CGL_UNROLL
  for (std::uint32_t corner = 1; corner < 8u; ++corner) {
    sum = sum + weights.weight[corner] * (corner < 4u ? low.number[corner] : high.number[corner - 4u]);
  }
  return sum;
}

// Where they do not: number `slot` of the records at the corners.
CGL_HD inline float interpolated(const TrackingInput& input, const CellRecords& records, std::uint32_t slot,
                                 const CornerWeights& weights) {
  const char* const column = one_address(input.field.records + slot);
  float value[8];
  CGL_UNROLL
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    value[corner] = *reinterpret_cast<const float*>(column + sizeof(FourFloats) * records.record(corner));
  }
  float sum = weights.weight[0] * value[0];
  CGL_UNROLL
  for (std::uint32_t corner = 1; corner < 8u; ++corner) sum = sum + weights.weight[corner] * value[corner];
  return sum;
}

// amplitudes_along of one position and tangent.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline float amplitude_along(const TrackingInput& input, numerics::Vec3 position, numerics::Vec3 tangent) {
  const GridCell grid = grid_cell(position);
  if (!between_centres(grid, input.plan.size) && numerics::is_outside(position, input.plan.size)) return 0.0f;
  const std::uint32_t cell = cell_number(grid, input.plan.size);
  float sum;
  if constexpr (Warp::corners_side_by_side) {
    const std::uint32_t first = input.probes.corners_of_cell[cell] * (input.field.channels + 1u);
    const std::uint32_t at = first + nearest_slot<true>(input, tangent);
    sum = interpolated(reinterpret_cast<const FourFloats*>(input.probes.corners) + 2u * std::size_t{at}, 0u,
                       corner_weights(grid, position));
  } else {
    const CellRecords records = cell_records(input, cell);
    const std::uint32_t slot = nearest_slot<false>(input, tangent);
    sum = interpolated(input, records, slot, corner_weights(grid, position));
  }
  return sum > 0.0f ? sum : 0.0f;
}

// The largest amplitude over the sphere, or 0: of the groups of ranks only those that may have it are read, two at a
// time. All threads of a warp together, for one point.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline float greatest_amplitude(const TrackingInput& input, std::uint32_t number, const CornerWeights& weights) {
  const std::uint32_t lane = Warp::lane_index();
  const FourFloats* const corners = corners_of(input, number);
  // Each thread holds the bound of one group, 0 once that was read. Numbers from 0 on are in the order of their bits.
  std::uint32_t bound = numerics::float_bits(input.probes.greatest[most_groups * std::size_t{number} + lane]);
  std::uint32_t best = 0;
  for (;;) {
    const std::uint32_t first_bound = Warp::greatest_integer(bound);
    if (first_bound <= best) return numerics::bits_float(best);
    const std::uint32_t first = numerics::lowest_set_bit(Warp::ballot(bound == first_bound));
    if (lane == first) bound = 0u;
    const std::uint32_t second_bound = Warp::greatest_integer(bound);
    const std::uint32_t second = numerics::lowest_set_bit(Warp::ballot(bound == second_bound));
    if (lane == second) bound = 0u;
    const std::uint32_t group = lane < ranks_of_group ? first : second;
    const std::uint32_t rank = ranks_of_group * group + lane % ranks_of_group;
    const float value = rank < input.field.channels ? interpolated(corners, rank, weights) : 0.0f;
    const std::uint32_t greatest = Warp::greatest_integer(value > 0.0f ? numerics::float_bits(value) : 0u);
    best = greatest > best ? greatest : best;
  }
}

}  // namespace cingulum::kernel
