// What the parts of a reconstruction share: its tiles, what was found out so far, and the seconds of its stages. Made
// by reconstruction.cpp, which calls the parts one after the other; it decides nothing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/elapsed.hpp"
#include "base/result.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/run/shared_tiles.hpp"
#include "oct/run/tile_summary.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

struct RunState {
  const TileSet& set;
  const std::filesystem::path& work;
  const ReconstructionOptions& options;
  const RunNeeds& needs;
  SharedTiles tiles{set, options, needs};
  Reconstruction result = {};
  std::vector<std::vector<TileSummary>> summaries = {};  // by slice, as in its grid
  std::size_t cropped_planes = 0;                        // of each slice, before they are resampled

  // Adds the seconds of a stage to those that its name already has.
  template <class Stage>
  [[nodiscard]] Status timed(const char* name, const Stage& stage) {
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY(stage());
    auto& stages = result.stage_seconds;
    auto found = std::find_if(stages.begin(), stages.end(), [&](const auto& one) { return one.first == name; });
    if (found == stages.end()) found = stages.insert(stages.end(), {name, 0.0});
    found->second += seconds_since(start);
    return {};
  }

  [[nodiscard]] Status check() const { return options.run.cancel.check(); }

  // The file of a slice, and how it is read.
  [[nodiscard]] std::filesystem::path path_of(std::size_t s) const {
    return work / fmt::format("slice_z{:02}.ome.zarr", result.slices[s].grid.slice);
  }
  [[nodiscard]] VolumeReadOptions reading() const {
    VolumeReadOptions reading;
    reading.pool = options.pool;
    reading.cancel = options.run.cancel;
    return reading;
  }

  // Depth of the first plane of a cropped slice, as the stage counts.
  [[nodiscard]] double first_plane_mm(std::size_t s) const {
    const SliceReport& slice = result.slices[s];
    const double stage_mm = options.slicing_interval_mm
                                ? *options.slicing_interval_mm * static_cast<double>(slice.grid.slice)
                                : slice.grid.stage_z_mm;
    return stage_mm + static_cast<double>(slice.first_plane) * set.voxel_um[0] / 1000.0;
  }
};

}  // namespace cingulum::oct
