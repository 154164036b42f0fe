#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "oct/run/pair_products.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/run/tile_summary.hpp"
#include "oct/volume/slab_volume.hpp"

namespace cingulum::oct {
namespace {

// What the stages of a run hold at a time, in bytes, but for slices in memory.
struct StageBytes {
  std::uint64_t always = 0;           // whatever the stage
  std::uint64_t placing = 0;          // tiles of one slice by their layers
  std::uint64_t correcting = 0;       // images of a slice, a band of it, and what is written at a time
  std::uint64_t registering = 0;      // images of two slices
  std::uint64_t stacking = 0;         // boxes of slices and of the volume, or the sample that gives gains
  std::uint64_t plane = 0;            // of a slice or of its mosaic
  std::size_t registered_planes = 0;  // that are compared at once
};

std::size_t device_count(const ReconstructionOptions& options) {
  return options.stages.empty() ? options.devices : options.stages.size();
}

StageBytes stage_bytes(const TileSet& set, const ReconstructionOptions& options, const RunNeeds& needs,
                       std::uint64_t lines, std::uint64_t lines_of_slice, std::size_t widest_px,
                       std::size_t slice_depth) {
  StageBytes bytes;
  const auto threads = static_cast<std::uint64_t>(options.pool->threads());
  // What devices work with, each counted as if in the host's memory; of a tile that the host reads the file and the
  // voxels; pieces on their way to a device; of all A-lines surface, mean and its logarithm in float64.
  const std::uint64_t devices = device_count(options);
  const std::uint64_t by_host = set.raw && set.repeats == 1 ? 0 : 2 * needs.tile_bytes;
  bytes.always =
      devices * (needs.device_bytes + by_host) + 2 * threads * TileStage::piece_bytes + 3 * sizeof(double) * lines;
  double lateral = 1;
  for (std::size_t d = 1; d < 3 && options.resolution_um; ++d) lateral *= set.voxel_um[d] / *options.resolution_um;
  const auto pixels = static_cast<std::uint64_t>(static_cast<double>(lines_of_slice) * lateral);
  bytes.plane = sizeof(float) * pixels;
  // The layers and maps of one slice, which is placed while the next is read.
  bytes.placing =
      lines_of_slice * (layers_of(set.shape[0]) * (2 * sizeof(double) + sizeof(float)) + 2 * sizeof(double));
  const std::uint64_t box = sizeof(float) * planes_at_a_time * rows_at_a_time * widest_px;
  // A projection, smoothed by way of another one; where levels of planes are evened out, a plane of each thread and its
  // darker part; where lines are corrected one by one, bands of the slice and of its medians.
  bytes.correcting = pixels * 4 * sizeof(double) + 2 * std::min<std::uint64_t>(box, bytes.plane * planes_at_a_time) +
                     needs.boxes_behind * writer_bytes;
  if (options.corrections.normalise) bytes.correcting += threads * pixels * 3 * sizeof(double);
  if (options.corrections.attenuation && options.corrections.attenuation->block_px == 0) {
    bytes.correcting += 2 * sizeof(float) * slice_depth * SlabVolume::rows_of_band * widest_px + threads * bytes.plane;
  }
  // Fixed, moving, moving stretched, and a level's copy of two of them, each with what is seen of it; two warped ones;
  // and a candidate of each thread, which is smoothed and whose percentiles are taken.
  bytes.registering = pixels * (5 * 16 + 2 * 9 + threads * 64);
  if (!needs.slices_in_files) {
    // The middle halves of all candidates, which are compared twice.
    const double plane_um = options.resolution_um.value_or(set.voxel_um[0]);
    const auto searched = static_cast<std::uint64_t>(2 * std::ceil(options.search_range_mm * 1000.0 / plane_um) + 1);
    bytes.registering += std::min<std::uint64_t>(searched, slice_depth) * pixels / 4 * 9;
  }
  bytes.registered_planes = 2 * options.registration.planes;
  // Canvases grow by what slices are displaced and turned.
  const auto canvas = [&](std::uint64_t rows) {
    const std::uint64_t part = sizeof(float) * planes_at_a_time * rows * widest_px;
    return std::min<std::uint64_t>(part, bytes.plane * planes_at_a_time) * 5 / 4;
  };
  // What is made and what is written meanwhile; of the rows that are stacked at a time the weights, and a slice as it
  // was read. Before that the sample that gives gains, and two slices of it.
  bytes.stacking = (1 + needs.boxes_behind) * canvas(rows_at_a_time) + 2 * canvas(needs.stacked_rows) +
                   needs.boxes_behind * writer_bytes;
  const std::uint64_t sample = std::min<std::uint64_t>(2 * gain_sample_voxels, pixels * slice_depth);
  bytes.stacking = std::max(bytes.stacking, sample * 2 * sizeof(float) + 2 * canvas(needs.stacked_rows));
  return bytes;
}

}  // namespace

Result<RunNeeds> run_needs(const TileSet& set, const ReconstructionOptions& options) {
  RunNeeds needs;
  const auto [planes, rows, columns] = set.shape;
  needs.tile_bytes = sizeof(float) * planes * rows * (columns + set.extra_lines);
  needs.tiles_in_flight = 2 * device_count(options);
  double shrunk = 1;  // voxels after --resolution of one before
  for (std::size_t d = 0; d < 3 && options.resolution_um; ++d) shrunk *= set.voxel_um[d] / *options.resolution_um;
  const double finer = options.resolution_um ? set.voxel_um[2] / *options.resolution_um : 1;
  std::uint64_t lines = 0, lines_of_slice = 0;  // A-lines of all slices, and of the largest
  std::size_t widest_px = 0;
  for (const std::size_t id : set.slices()) {
    CGL_TRY_ASSIGN(const TileGrid grid, grid_of_slice(set, id));
    needs.tiles_of_slice = std::max(needs.tiles_of_slice, grid.count());
    lines += grid.count() * rows * columns;
    lines_of_slice = std::max<std::uint64_t>(lines_of_slice, grid.count() * rows * columns);
    const auto width = static_cast<double>(grid.columns * columns) * finer;
    widest_px = std::max(widest_px, static_cast<std::size_t>(width) + 1);
    needs.work_bytes += grid.count() * sizeof(float) * planes * rows * columns;
  }
  const double depth = options.resolution_um ? static_cast<double>(planes) * set.voxel_um[0] / *options.resolution_um
                                             : static_cast<double>(planes);
  const auto slice_depth = static_cast<std::size_t>(std::max(1.0, std::ceil(depth)));
  needs.work_bytes = static_cast<std::uint64_t>(static_cast<double>(needs.work_bytes) * shrunk);
  needs.volume_bytes = needs.work_bytes;
  // One that is read, one that was; ordered, its logarithm in a box, which rolled takes the place of, a wide box of it,
  // cropped; and resampled along one axis and another one.
  const double resampled = options.resolution_um ? 2 * std::max(1.0, shrunk) : 0;
  needs.device_bytes = static_cast<std::uint64_t>(static_cast<double>(needs.tile_bytes) * (6 + resampled));
  needs.comparing_device_bytes =
      DevicePairProducts::bytes_for(needs.tiles_of_slice, layers_of(planes), {rows, columns});
  needs.stacked_rows = rows_at_a_time;
  needs.boxes_behind = writers_at_a_time;
  StageBytes bytes = stage_bytes(set, options, needs, lines, lines_of_slice, widest_px, slice_depth);
  // A mosaic, the slice that is made of it, and the one before while it is written; instead of the mosaic later a copy
  // while attenuation is measured. Tiles that are kept lie where the slice will be that is made of them. The last slice
  // is written while others are registered.
  const auto slice = static_cast<std::uint64_t>(static_cast<double>(needs.tile_bytes * needs.tiles_of_slice) * shrunk);
  needs.slice_planes = slice_depth;
  needs.kept_bytes = slice + options.kept_tile_bytes;
  needs.memory_bytes =
      bytes.always + options.kept_tile_bytes +
      std::max({3 * slice + bytes.correcting, bytes.placing,
                bytes.registering + bytes.plane * slice_depth + slice + needs.boxes_behind * writer_bytes,
                bytes.stacking});
  if (!options.memory_bytes || needs.memory_bytes <= *options.memory_bytes) return needs;
  // Slices go through files: as many planes of a slice, and of its mosaic, are in memory as the limit allows.
  needs.slices_in_files = true;
  needs.stacked_rows = rows_at_a_time / 8;
  needs.boxes_behind = 1;
  bytes = stage_bytes(set, options, needs, lines, lines_of_slice, widest_px, slice_depth);
  const auto with_planes = [&](std::size_t planes_of_slice) {
    const std::uint64_t slab = bytes.plane * planes_of_slice;
    return bytes.always + std::max({bytes.correcting + 2 * slab, bytes.placing,
                                    bytes.registering + slab + bytes.plane * bytes.registered_planes, bytes.stacking});
  };
  needs.slice_planes = std::min(planes_at_a_time, slice_depth);
  while (needs.slice_planes > 1 && with_planes(needs.slice_planes) > *options.memory_bytes) --needs.slice_planes;
  needs.memory_bytes = with_planes(needs.slice_planes);
  const std::uint64_t budget =
      needs.memory_bytes < *options.memory_bytes ? *options.memory_bytes - needs.memory_bytes : 0;
  needs.kept_bytes = std::min(options.kept_tile_bytes, budget);
  needs.memory_bytes += needs.kept_bytes;
  // The tiles of a slice, the slice, and, where lines are corrected one by one, its medians.
  needs.work_bytes += 3 * slice;
  return needs;
}

}  // namespace cingulum::oct
