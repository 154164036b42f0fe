// A whole reconstruction: from tiles to the slices of one volume, and to that volume. Called by `cingulum oct run`.
//
// Tiles are read twice: once for what is small of each (projections, interfaces, the hash of its voxels), from which
// light, curvature and places are fitted over all slices, and once for the slices themselves. A slice is stitched in
// memory and kept in a work folder under a key of all that decides it: a run that was stopped, whatever by, finds those
// that are done and gives the bytes of one that was not. Memory is that of one mosaic and the slice made of it; for the
// volume, of that and one slice.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/placement/blend.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/tile_set.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

// The tissue interface of every A-line of a tile, in planes; and a tile whose A-lines are rolled by so many. On
// whatever device: the kernels have the same bits on each. any thread
using FindInterface = std::function<Result<HostImage>(const HostVolume& tile)>;
using RollLines = std::function<Status(HostVolume& tile, const HostImage& by)>;

struct ReconstructionOptions {
  std::size_t last_line = 0;  // raw tiles with extra lines: the last good one (galvo_band.hpp)
  bool flat_field = true;     // fitted over all slices, and divided out
  // Focal curvature, fitted over all slices, rolled back. Both or none.
  FindInterface find_interface = {};
  RollLines roll_lines = {};
  PlacementOptions placement = {};
  Blending blending = Blending::cosine;
  // Of stitched slices, in this order.
  bool axial_profile = false;
  std::optional<AttenuationOptions> attenuation = {};
  bool normalise = false;
  RegistrationOptions registration = {};           // expected planes and start are the run's own
  std::optional<double> slicing_interval_mm = {};  // absent: as the stage moved
  double search_range_mm = 0.1;                    // of the interval, to either side
  StackOptions stack = {};
  ThreadPool* pool = nullptr;  // needed
  RunContext run = {};
};

struct SliceReport {
  TileGrid grid;
  Placement placement;
  std::uint64_t replaced_values = 0;   // were not finite
  std::uint64_t uncovered_pixels = 0;  // of a plane
  bool found = false;                  // from an earlier run
};
struct Reconstruction {
  HostVolume volume;
  VoxelSize voxel_um = {1, 1, 1};
  std::vector<SliceReport> slices;
  HostImage light;                                              // the flat field; empty: none was fitted
  HostImage curvature;                                          // in planes; empty: none
  std::vector<std::optional<SliceRegistration>> registrations;  // of each slice to the one before it
  StackPlan plan;
};

// `work` holds the slices; it is made, and left to the caller. One slice alone is the volume.
[[nodiscard]] Result<Reconstruction> reconstruct(const TileSet& set, const std::filesystem::path& work,
                                                 const ReconstructionOptions& options);

}  // namespace cingulum::oct
