// A whole reconstruction: from tiles to the slices of one volume, and to the plan by which they become one. Called by
// `cingulum oct run`, which writes the volume.
//
// Tiles are first read for their summaries (tile_summary.hpp), from which places, light, curvature and depths are
// fitted over all slices; then the slices are made of them. Devices share the tiles (tile_stage.hpp): each reads its
// next tile while it works at one. Tiles that fit into the budget of their device or of memory are kept and read once,
// the others twice. A slice is stitched in memory, or, where it would take more than is allowed, through temporary
// files a few planes at a time: the bytes are the same. It is cropped at its surface, written while the next one is
// made, and kept in a work folder under a key of all that decides it: a run that was stopped, whatever by, finds those
// that are done and gives the bytes of one that was not. run_needs() says how much memory a run takes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "oct/placement/blend.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/run/depth_corrections.hpp"
#include "oct/run/tile_stage.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/tile_set.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

struct ReconstructionOptions {
  std::size_t last_line = 0;  // raw tiles with extra lines: the last good one (galvo_band.hpp)
  bool flat_field = true;     // fitted over all slices, and divided out
  bool curvature = true;      // focal curvature, and tiles' depths: fitted, and rolled back
  bool basic = false;         // both fits by BaSiC, and tiles of one depth: as the scripts that this stands in for
  bool crop = true;           // at the surface
  std::optional<double> crop_depth_um = {};  // that is kept below it; absent: what all A-lines have
  std::optional<double> resolution_um = {};  // absent: voxels as they are
  PlacementOptions placement = {};
  Blending blending = Blending::cosine;
  DepthCorrections corrections = {};
  RegistrationOptions registration = {};           // expected planes and start are the run's own
  std::optional<double> slicing_interval_mm = {};  // absent: as the stage moved
  double search_range_mm = 0.1;                    // of the interval, to either side
  StackOptions stack = {};
  std::vector<TileStage*> stages = {};  // one at least, which outlive the run
  std::uint64_t kept_tile_bytes = 0;    // of tiles that stay in memory from one reading, besides those of one slice
  std::optional<std::uint64_t> memory_bytes = {};  // beyond which slices go through files; absent: none does
  std::string expected_voxels = {};                // of the tiles, their hash in a run that is repeated; empty: any
  std::size_t devices = 1;                         // stages, where they are not yet there: run_needs() alone
  ThreadPool* pool = nullptr;                      // needed
  RunContext run = {};
};

struct SliceReport {
  TileGrid grid;
  Placement placement;
  std::vector<double> depths;          // of tiles, in planes; empty: not looked for
  double surface_plane = 0;            // below which nine tenths of the surface lie no deeper
  std::size_t first_plane = 0;         // of a tile, that the slice begins with
  std::uint64_t replaced_values = 0;   // were not finite
  std::uint64_t uncovered_pixels = 0;  // of a plane
  CorrectedSlice corrected;
  bool found = false;  // from an earlier run
};
struct Reconstruction {
  VoxelSize voxel_um = {1, 1, 1};
  std::string voxels;  // the hash of all tiles' voxels, as they were read
  std::vector<SliceReport> slices;
  std::array<std::size_t, 3> tile = {0, 0, 0};                  // as it enters a slice: planes, rows, columns
  HostImage light;                                              // the flat field; empty: none was fitted
  HostImage curvature;                                          // in planes; empty: none
  std::vector<std::optional<SliceRegistration>> registrations;  // of each slice to the one before it
  std::vector<RunDecision> decisions;                           // of the run as a whole
  std::size_t spikes = 0;                                       // of the stage, replaced
  StackPlan plan;
  std::vector<std::filesystem::path> files;  // of slices, as they are stacked
  std::vector<std::pair<std::string, double>> stage_seconds;
};

// What a run takes at most.
struct RunNeeds {
  std::uint64_t tile_bytes = 0;     // with extra lines
  std::size_t tiles_in_flight = 0;  // read or worked at a time
  std::size_t tiles_of_slice = 0;   // of the largest one
  std::uint64_t kept_bytes = 0;     // of tiles that are read once, a part of the memory
  bool slices_in_files = false;     // else in memory
  std::size_t slice_planes = 0;     // of a slice in memory at a time
  std::size_t stacked_rows = 0;     // of the volume that are stacked at a time
  std::size_t boxes_behind = 0;     // of the volume that are written while the next is stacked
  std::uint64_t memory_bytes = 0;
  std::uint64_t device_bytes = 0;            // of each device at least; tiles stay there while it has room for them
  std::uint64_t comparing_device_bytes = 0;  // more of the first GPU, on which tiles are compared
  std::uint64_t work_bytes = 0;              // of the work folder, with the temporary files of a slice
  std::uint64_t volume_bytes = 0;            // of the finest level
};
// Where even a few planes at a time take more than `memory_bytes`, the least that the run takes.
[[nodiscard]] Result<RunNeeds> run_needs(const TileSet& set, const ReconstructionOptions& options);

// `work` holds the slices; it is made, and left to the caller. One slice alone is the volume.
[[nodiscard]] Result<Reconstruction> reconstruct(const TileSet& set, const std::filesystem::path& work,
                                                 const ReconstructionOptions& options);

}  // namespace cingulum::oct
