// A slice from the tiles of a run: each is changed on its device into what it is in its slice, and blended with its
// neighbours, in memory or, a few planes at a time, through temporary files. The bytes are the same. Called by
// slice_maker.cpp; where tiles lie and how they are weighed was decided before.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "oct/placement/blend.hpp"
#include "oct/run/run_state.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/slab_volume.hpp"

namespace cingulum::oct {

// The mosaic and the slice are in memory both, and the slice before while it is written.
[[nodiscard]] Result<HostVolume> blend_in_memory(RunState& run, std::size_t s, const TileGrid& grid,
                                                 const TileBlend& blend);
// Tiles go to a temporary file as they come, and from there a few planes of all of them at a time into another one that
// holds the slice.
[[nodiscard]] Result<SlabVolume> blend_through_files(RunState& run, std::size_t s, const TileGrid& grid,
                                                     const TileBlend& blend);

}  // namespace cingulum::oct
