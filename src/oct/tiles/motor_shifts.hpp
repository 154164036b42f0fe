// How far the stage moved the mosaic between slices, from the positions of tiles; steps that the stage took back at the
// next slice (spikes) are replaced. Written as the CSV that stacking reads.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oct/tiles/tile_set.hpp"

namespace cingulum::oct {

struct SliceShift {
  std::size_t fixed = 0, moving = 0;
  std::array<double, 2> shift_mm = {0, 0};  // row (y), column (x): fixed less moving
  bool reliable = true;                     // false: the grid's shape changed
  bool spike = false;                       // was replaced
};

// Shifts of neighbouring slices along each axis: that of the mosaic's smaller or larger edge, whichever is less.
[[nodiscard]] std::vector<SliceShift> motor_shifts(const TileSet& set);
// A step above 0.5 mm that a neighbour takes back becomes the median of up to four sound neighbours; the value is how
// many.
[[nodiscard]] std::size_t replace_spikes(std::span<SliceShift> shifts);

[[nodiscard]] std::string shifts_csv(std::span<const SliceShift> shifts, const VoxelSize& voxel_um);
// Only the columns in mm are read; doubled pairs and pairs that are not of neighbours in the file are refused.
[[nodiscard]] Result<std::vector<SliceShift>> parse_shifts(std::string_view text);

}  // namespace cingulum::oct
