// Simulated serial OCT with known truth: a mosaic of overlapping tiles of a textured sample for each slice of a series,
// with focal curvature, tilt, attenuation, speckle, uneven light, errors of the motors, and gains, turns and shifts of
// slices. Called by `cingulum oct simulate` and by tests, which compare what stages find with what is stated here.
// Every number is a function of the plan alone, whatever the device and the threads. tile_simulator.hpp makes the
// voxels, simulated_files.hpp writes them.
//
// Frames, in pixels: the stage's plane holds tiles at grid step x (row, column) + the slice's motor shift, turned and
// scaled by the motor's error, + the tile's jitter. A slice then lies in the sample turned by its angle about the
// mosaic's centre and moved by its shift. Plane z of slice i shows the sample's plane i interval + z.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "oct/kernel/simulated_voxel.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct SimulationPlan {
  std::uint64_t seed = 0;
  std::size_t grid_rows = 3, grid_columns = 4;
  std::size_t tile_planes = 96, tile_rows = 64, tile_columns = 64;
  double overlap = 0.2;  // share of a tile
  double surface_plane = 30;
  double curvature_planes = 6;
  double tilt_row_planes = 2, tilt_column_planes = -1;  // over the whole mosaic
  double attenuation = 0.010;                           // per plane
  std::uint32_t speckle_shape = 4;                      // 0: no speckle
  double water = 0.02, tissue = 1.0, agarose = 0.1;
  double depth_jitter_planes = 1.5;  // of each tile
  double texture_strength = 0.35;    // 0: a constant sample
  double flat_field = 0;             // share lost at distance 1 from the centre of a tile
  double focus_plane = 0;            // axial profile
  double rayleigh_planes = 0;        // 0: none
  double noise_floor = 0;
  double tissue_radius = 0;                              // of half the mosaic; outside is agarose. 0: tissue everywhere
  std::size_t galvo_lines = 0;                           // extra A-lines of the mirror's way back
  double motor_jitter_px = 0;                            // standard deviation of true positions, unknown to the stage
  double motor_angle_deg = 0;                            // of the stage's axes against the image's
  double motor_scale = 1;                                // true step over the stage's
  std::vector<std::array<std::size_t, 3>> missing = {};  // slice, row, column
  std::size_t slices = 1;
  std::size_t interval_planes = 40;  // between slices
  double slice_gain_low = 1, slice_gain_high = 1;
  double slice_rotation_deg = 0;  // standard deviation
  double slice_shift_px = 0;      // standard deviation, unknown to the stage
  double motor_shift_px = 0;      // standard deviation, known to the stage
  double axial_step_um = 3.5;
  double lateral_step_um = 10;

  [[nodiscard]] std::size_t tiles_of_slice() const { return grid_rows * grid_columns; }
  [[nodiscard]] std::size_t step_rows() const;
  [[nodiscard]] std::size_t step_columns() const;
};
[[nodiscard]] Status check_simulation(const SimulationPlan& plan);

struct SliceTruth {
  std::array<double, 2> motor_shift_px = {0, 0};  // row, column
  std::array<double, 2> shift_px = {0, 0};
  double rotation_deg = 0;
  double gain = 1;
};

struct TileTruth {
  std::size_t slice = 0, row = 0, column = 0;
  std::array<double, 2> stage_px = {0, 0};  // what the motors say: row, column
  std::array<double, 2> place_px = {0, 0};  // of the first pixel, in the plane of the slice
  double depth_offset_planes = 0;
  bool missing = false;
};

struct SimulatedScene {
  SimulationPlan plan;
  std::vector<SliceTruth> slices;
  std::vector<TileTruth> tiles;              // by slice, row, column
  std::array<double, 2> extent_px = {0, 0};  // of a mosaic without errors
  std::size_t galvo_last_line = 0;           // the last good A-line before the band, in raw tiles

  [[nodiscard]] std::size_t tile_number(std::size_t slice, std::size_t row, std::size_t column) const {
    return (slice * plan.grid_rows + row) * plan.grid_columns + column;
  }
};
[[nodiscard]] Result<SimulatedScene> make_scene(const SimulationPlan& plan);

// A box of the sample's lattice.
struct SampleBox {
  std::int32_t plane = 0, row = 0, column = 0;
  std::size_t planes = 0, rows = 0, columns = 0;
};

// A tile's model, and the box of texture that it reads.
struct PreparedTile {
  TileModel model;
  SampleBox box;
};
[[nodiscard]] PreparedTile prepare_tile(const SimulatedScene& scene, std::size_t tile);

// Windows along planes, rows and columns that make the sample's texture of white noise: Gaussians whose squares add to
// 1, so that the variance stays.
[[nodiscard]] std::array<std::vector<float>, 3> texture_windows();

// The plane at which the interface appears, for each pixel of a tile; and its part that is curvature alone.
[[nodiscard]] HostImage true_interface(const SimulatedScene& scene, std::size_t tile);
[[nodiscard]] HostImage true_curvature(const SimulationPlan& plan);
[[nodiscard]] HostImage true_flat_field(const SimulationPlan& plan);  // mean 1

}  // namespace cingulum::oct
