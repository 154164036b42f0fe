// Simulated tiles by their definition, a voxel after the other on the host: what tests of other stages use as input,
// and what the devices' tiles are compared with.
#pragma once

#include <array>
#include <filesystem>
#include <vector>

#include "base/thread_pool.hpp"
#include "numerics/trilinear.hpp"
#include "oct/kernel/simulated_voxel.hpp"
#include "oct/simulate/simulated_files.hpp"
#include "oct/simulate/simulation.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/shared_loop.hpp"
#include "support/each_device.hpp"

namespace cingulum::oct {

// Tiles of (planes, rows, columns) voxels on a grid of (rows, columns); the rest is as SimulationPlan has it.
inline SimulationPlan mosaic_plan(std::uint64_t seed, std::array<std::size_t, 2> grid, std::array<std::size_t, 3> tile,
                                  double surface_plane = SimulationPlan().surface_plane) {
  SimulationPlan plan;
  plan.seed = seed;
  plan.grid_rows = grid[0];
  plan.grid_columns = grid[1];
  plan.tile_planes = tile[0];
  plan.tile_rows = tile[1];
  plan.tile_columns = tile[2];
  plan.surface_plane = surface_plane;
  return plan;
}

// A mosaic under uneven light whose tiles lie a little off in depth.
inline SimulationPlan uneven_mosaic_plan(std::uint64_t seed, std::array<std::size_t, 2> grid,
                                         std::array<std::size_t, 3> tile) {
  SimulationPlan plan = mosaic_plan(seed, grid, tile, 4);
  plan.curvature_planes = 2;
  plan.depth_jitter_planes = 0.5;
  plan.flat_field = 0.3;
  return plan;
}

// A single tile whose surface is one plane, level.
inline SimulationPlan level_tile_plan(std::uint64_t seed, std::array<std::size_t, 3> tile,
                                      double surface_plane = SimulationPlan().surface_plane) {
  SimulationPlan plan = mosaic_plan(seed, {1, 1}, tile, surface_plane);
  plan.curvature_planes = plan.depth_jitter_planes = 0;
  plan.tilt_row_planes = plan.tilt_column_planes = 0;
  return plan;
}

// exp(strength * t), t Gaussian of variance 1: windows along z, then y, then x over white noise.
inline HostVolume simulate_texture(std::uint64_t seed, double strength, const SampleBox& box,
                                   ThreadPool* pool = nullptr) {
  const numerics::PhiloxKey key = numerics::philox_key(seed);
  const std::array<std::vector<float>, 3> taps = texture_windows();
  const std::array margin = {taps[0].size() / 2, taps[1].size() / 2, taps[2].size() / 2};
  const std::size_t wide_rows = box.rows + 2 * margin[1];
  const std::size_t wide_columns = box.columns + 2 * margin[2];
  const auto begin = [](std::int32_t at, std::size_t by) { return at - static_cast<std::int32_t>(by); };
  HostVolume noise(box.planes + 2 * margin[0], wide_rows, wide_columns);
  for_each_index(pool, noise.planes * noise.rows, [&](std::size_t line) {
    const auto plane = begin(box.plane, margin[0]) + static_cast<std::int32_t>(line / noise.rows);
    const auto row = begin(box.row, margin[1]) + static_cast<std::int32_t>(line % noise.rows);
    float* const to = noise.values.data() + line * noise.columns;
    for (std::size_t c = 0; c < noise.columns; ++c) {
      to[c] = texture_noise(key, plane, row, begin(box.column, margin[2]) + static_cast<std::int32_t>(c));
    }
  });
  // Windows along z, then y, then x: a fresh sum per element, taps ascending.
  HostVolume by_plane(box.planes, wide_rows, wide_columns);
  for_each_index(pool, by_plane.planes * by_plane.rows, [&](std::size_t line) {
    const std::size_t plane = line / wide_rows;
    const std::size_t row = line % wide_rows;
    float* const to = &by_plane.at(plane, row, 0);
    for (std::size_t tap = 0; tap < taps[0].size(); ++tap) {
      const float* const from = &noise.at(plane + tap, row, 0);
      const float weight = taps[0][tap];
      if (tap == 0) {
        for (std::size_t c = 0; c < wide_columns; ++c) to[c] = weight * from[c];
      } else {
        for (std::size_t c = 0; c < wide_columns; ++c) to[c] = to[c] + weight * from[c];
      }
    }
  });
  HostVolume result(box.planes, box.rows, box.columns);
  const float factor = static_cast<float>(strength);
  for_each_index(pool, result.planes * result.rows, [&](std::size_t line) {
    const std::size_t plane = line / box.rows;
    const std::size_t row = line % box.rows;
    std::vector<float> by_row(wide_columns);
    for (std::size_t tap = 0; tap < taps[1].size(); ++tap) {
      const float* const from = &by_plane.at(plane, row + tap, 0);
      const float weight = taps[1][tap];
      for (std::size_t c = 0; c < wide_columns; ++c) {
        by_row[c] = tap == 0 ? weight * from[c] : by_row[c] + weight * from[c];
      }
    }
    float* const to = &result.at(plane, row, 0);
    for (std::size_t tap = 0; tap < taps[2].size(); ++tap) {
      const float weight = taps[2][tap];
      for (std::size_t c = 0; c < box.columns; ++c) {
        to[c] = tap == 0 ? weight * by_row[c] : to[c] + weight * by_row[c + tap];
      }
    }
    for (std::size_t c = 0; c < box.columns; ++c) to[c] = numerics::exponential(factor * to[c]);
  });
  return result;
}

// (plane, row, column), without the galvo's band.
inline HostVolume simulate_tile(const SimulatedScene& scene, std::size_t tile, ThreadPool* pool = nullptr) {
  const SimulationPlan& plan = scene.plan;
  const PreparedTile prepared = prepare_tile(scene, tile);
  const SampleBox& box = prepared.box;
  const HostVolume texture = simulate_texture(plan.seed, plan.texture_strength, box, pool);
  const numerics::GridSize size{static_cast<std::uint32_t>(box.columns), static_cast<std::uint32_t>(box.rows),
                                static_cast<std::uint32_t>(box.planes)};
  const numerics::PhiloxKey key = numerics::philox_key(plan.seed);
  HostVolume result(plan.tile_planes, plan.tile_rows, plan.tile_columns);
  for_each_index(pool, result.planes * result.rows, [&](std::size_t line_number) {
    const auto plane = static_cast<std::uint32_t>(line_number / result.rows);
    const auto row = static_cast<std::uint32_t>(line_number % result.rows);
    for (std::uint32_t column = 0; column < result.columns; ++column) {
      const LineModel line = line_model(prepared.model, row, column);
      const float depth = sample_plane_of(prepared.model, line, plane);
      const float reflectivity =
          numerics::sample_trilinear(texture.values.data(), size, {line.column, line.row, depth});
      float value = mean_intensity(prepared.model, line.surface, line.flat, line.in_tissue, static_cast<float>(plane),
                                   reflectivity);
      const auto voxel = static_cast<std::uint32_t>(result.index(plane, row, column));
      if (plan.speckle_shape > 0) {
        value = value * gamma_speckle(key, voxel, static_cast<std::uint32_t>(tile), plan.speckle_shape);
      }
      result.values[voxel] = value;
    }
  });
  return result;
}

// As the scanner stores it: lines of the band among the others, which begin in the middle.
inline HostVolume with_galvo_band(const SimulatedScene& scene, const HostVolume& tile) {
  const std::size_t extra = scene.plan.galvo_lines;
  if (extra == 0) return tile;
  const std::size_t lines = tile.columns;
  const std::size_t last = scene.galvo_last_line;
  HostVolume raw(tile.planes, tile.rows, lines + extra);
  for (std::size_t line = 0; line < raw.planes * raw.rows; ++line) {
    const float* const from = tile.values.data() + line * lines;
    float* const to = raw.values.data() + line * raw.columns;
    for (std::size_t i = 0; i <= last; ++i) to[i] = from[lines - 1 - last + i];
    for (std::size_t i = last + 1 + extra; i < raw.columns; ++i) to[i] = from[i - last - 1 - extra];
    // The mirror flies back over the tile, faster and darker.
    for (std::size_t b = 0; b < extra; ++b) {
      const std::size_t back = (lines - 1) * (extra - b) / (extra + 1);
      to[last + 1 + b] = 0.5f * from[back];
    }
  }
  return raw;
}

// The files of a scene whose tiles the CPU makes, without a word.
inline Result<SimulatedFiles> write_simulation_by_cpu(const std::filesystem::path& path, const SimulatedScene& scene,
                                                      SimulatedFilesOptions options = {}) {
  CGL_TRY_ASSIGN(Device* const cpu, cingulum::testing::registry().select_one("cpu"));
  CGL_TRY_ASSIGN(const auto simulator, TileSimulator::create(*cpu));
  options.simulators = {simulator.get()};
  options.run.progress.style = ProgressStyle::silent;
  return write_simulation(path, scene, {}, options);
}

}  // namespace cingulum::oct
