// A simulated scene as files: folders of raw tiles as a scanner leaves them, or a table of OME-Zarr tiles, and the
// truth as JSON and CSV; on request the sample itself. Devices make tiles while others are written, so that a few of
// them are in memory at a time. The folder appears whole. Called by `cingulum oct simulate`.
#pragma once

#include <filesystem>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "oct/simulate/simulation.hpp"
#include "oct/simulate/tile_simulator.hpp"

namespace cingulum::oct {

enum class SimulatedLayout : std::uint8_t { raw, table };

struct SimulatedFilesOptions {
  SimulatedLayout layout = SimulatedLayout::raw;
  std::size_t files_per_tile = 1;               // raw: image_*.bin that share the B-scans
  bool sample_volume = false;                   // truth.ome.zarr, the reflectivity under the mosaic of all slices
  std::vector<TileSimulator*> simulators = {};  // at least one; a tile is made by whichever is free
  ThreadPool* pool = nullptr;
  RunContext run = {};
};

struct SimulatedFiles {
  std::size_t tiles = 0;
  std::uint64_t bytes = 0;
};

[[nodiscard]] Result<SimulatedFiles> write_simulation(const std::filesystem::path& folder, const SimulatedScene& scene,
                                                      const WriteOptions& write, const SimulatedFilesOptions& options);

}  // namespace cingulum::oct
