#include "oct/simulate/tile_simulator.hpp"

#include <algorithm>
#include <cmath>

#include "device/memory_pool.hpp"
#include "oct/kernel/kernel_records.hpp"

namespace cingulum::oct {
namespace {

// What is made at a time needs four volumes of at most so many numbers: a tile of 400 x 512 x 512 voxels is one piece.
constexpr std::uint64_t most_working_elements = std::uint64_t{1} << 27;
constexpr std::uint64_t working_volumes = 4;

std::uint32_t narrow_count(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

std::size_t stored_lines(const SimulationPlan& plan, TileOrder order) {
  return plan.tile_columns + (order == TileOrder::acquired ? plan.galvo_lines : 0);
}

}  // namespace

std::uint64_t voxels_of(const SimulationPlan& plan, TileOrder order) {
  return std::uint64_t{plan.tile_planes} * plan.tile_rows * stored_lines(plan, order);
}

Result<std::unique_ptr<TileSimulator>> TileSimulator::create(Device& device, std::uint64_t most_elements) {
  auto simulator = std::unique_ptr<TileSimulator>(new TileSimulator());
  CGL_TRY_ASSIGN(simulator->kernels_, OctKernels::create(device, most_elements));
  CGL_TRY_ASSIGN(simulator->queue_, device.create_queue());
  return simulator;
}

std::uint64_t TileSimulator::most_elements() const {
  return std::min(kernels_->most_elements(), most_working_elements);
}

std::uint64_t TileSimulator::host_bytes(const SampleBox& box) const {
  if (device().description().backend != Backend::cpu) return 0;
  // Blocks of a pool are up to an eighth larger.
  const std::uint64_t volume =
      device_block_bytes(std::min(most_elements(), noise_voxels(box.planes, box.rows, box.columns)) * sizeof(float));
  return working_volumes * volume;
}

Result<TileMemory> TileSimulator::memory(std::uint64_t voxels) {
  TileMemory memory;
  // On the CPU kernels write there; elsewhere tiles are copied there from the device's memory.
  const bool in_place = device().description().backend == Backend::cpu;
  const HostMemoryKind kind = in_place                                     ? HostMemoryKind::mapped
                              : device().capabilities().pinned_host_memory ? HostMemoryKind::pinned
                                                                           : HostMemoryKind::pageable;
  CGL_TRY_ASSIGN(memory.host, device().allocate_host(voxels * sizeof(float), kind));
  if (in_place) {
    CGL_TRY_ASSIGN(memory.buffer, device().buffer_over(*memory.host));
  }
  return memory;
}

std::uint64_t TileSimulator::noise_voxels(std::uint64_t planes, std::uint64_t rows, std::uint64_t columns) const {
  return (planes + windows_[0].size() - 1) * (rows + windows_[1].size() - 1) * (columns + windows_[2].size() - 1);
}

Result<DeviceVolume> TileSimulator::texture_on_device(std::uint64_t seed, double strength, const SampleBox& box) {
  const VolumeShape shape{narrow_count(box.planes), narrow_count(box.rows), narrow_count(box.columns)};
  const auto wider = [&](std::uint32_t count, std::size_t axis) {
    return count + narrow_count(windows_[axis].size()) - 1;
  };
  const auto before = [&](std::int32_t at, std::size_t axis) {
    return at - static_cast<std::int32_t>(windows_[axis].size() / 2);
  };
  CGL_TRY_ASSIGN(DeviceVolume noise, kernels_->allocate({wider(shape.z, 0), wider(shape.y, 1), wider(shape.x, 2)}));
  CGL_TRY(
      kernels_->fill_noise(*queue_, seed, {before(box.plane, 0), before(box.row, 1), before(box.column, 2)}, noise));
  CGL_TRY_ASSIGN(DeviceVolume texture, kernels_->allocate(shape));
  CGL_TRY(kernels_->filter_inside(*queue_, noise, texture, windows_));
  CGL_TRY(kernels_->exponentiate(*queue_, texture, static_cast<float>(strength)));
  return texture;
}

Result<std::vector<TileSimulator::TilePiece>> TileSimulator::pieces_of(const SimulationPlan& plan,
                                                                       const PreparedTile& tile,
                                                                       TileOrder order) const {
  const SampleBox& box = tile.box;
  const TileModel& model = tile.model;
  // Rows of the box that rows [first, first + count) of the tile read, with a row to spare on either side.
  const auto rows_read = [&](std::size_t first, std::size_t count) -> std::array<std::uint32_t, 2> {
    double low = 1e9;
    double high = -1e9;
    for (const std::size_t r : {first, first + count - 1}) {
      for (const std::size_t c : {std::size_t{0}, plan.tile_columns - 1}) {
        const double at = static_cast<double>(model.sample_row) +
                          static_cast<double>(model.row_by_row) * static_cast<double>(r) +
                          static_cast<double>(model.row_by_column) * static_cast<double>(c);
        low = std::min(low, at);
        high = std::max(high, at);
      }
    }
    const double begin = std::max(0.0, std::floor(low) - 1);
    const double end = std::min(static_cast<double>(box.rows), std::floor(high) + 3);
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)};
  };
  // A voxel reads as many planes of the box above and below it as there are more of them.
  const std::size_t more_planes = box.planes - plan.tile_planes;
  const std::size_t lines = stored_lines(plan, order);
  const std::size_t whole = order == TileOrder::planes ? plan.tile_planes : plan.tile_rows;
  const auto pieces_by = [&](std::size_t step) {
    std::vector<TilePiece> pieces;
    for (std::size_t first = 0; first < whole; first += step) {
      const std::size_t size = std::min(step, whole - first);
      if (order == TileOrder::planes) {
        pieces.push_back({narrow_count(first), narrow_count(size), 0, narrow_count(plan.tile_rows), narrow_count(first),
                          narrow_count(size + more_planes), 0, narrow_count(box.rows)});
      } else {
        const auto [box_row, box_rows] = rows_read(first, size);
        pieces.push_back({0, narrow_count(plan.tile_planes), narrow_count(first), narrow_count(size), 0,
                          narrow_count(box.planes), box_row, box_rows});
      }
    }
    return pieces;
  };
  const auto fits = [&](const TilePiece& piece) {
    return std::uint64_t{piece.planes} * piece.rows * lines <= most_elements() &&
           noise_voxels(piece.box_planes, piece.box_rows, box.columns) <= most_elements();
  };
  for (std::size_t step = whole; step > 0; step -= (step + 7) / 8) {
    // The tile is cut into as many pieces as that takes, of equal size.
    const std::size_t count = (whole + step - 1) / step;
    std::vector<TilePiece> pieces = pieces_by((whole + count - 1) / count);
    if (std::all_of(pieces.begin(), pieces.end(), fits)) return pieces;
  }
  return fail(ErrorKind::device,
              "device {}: a {} of a tile of {} x {} x {} voxels with its neighbours is more than {} numbers, which it "
              "takes at once; use smaller tiles",
              device().id(), order == TileOrder::planes ? "plane" : "row", plan.tile_planes, plan.tile_rows,
              plan.tile_columns, most_elements());
}

Status TileSimulator::simulate(const SimulatedScene& scene, std::size_t tile, TileOrder order, const TileMemory& to,
                               const CancelToken& cancel) {
  const SimulationPlan& plan = scene.plan;
  const PreparedTile prepared = prepare_tile(scene, tile);
  const SampleBox& box = prepared.box;
  const numerics::PhiloxKey key = numerics::philox_key(plan.seed);
  const std::size_t lines = stored_lines(plan, order);
  CGL_TRY_ASSIGN(const std::vector<TilePiece> pieces, pieces_of(plan, prepared, order));
  std::uint64_t done = 0;
  for (const TilePiece& piece : pieces) {
    CGL_TRY(cancel.check());
    const SampleBox part{box.plane + static_cast<std::int32_t>(piece.box_plane),
                         box.row + static_cast<std::int32_t>(piece.box_row),
                         box.column,
                         piece.box_planes,
                         piece.box_rows,
                         box.columns};
    CGL_TRY_ASSIGN(const DeviceVolume texture, texture_on_device(plan.seed, plan.texture_strength, part));
    TileVoxelsRecord record{};
    record.model = prepared.model;
    record.key_low = key.low;
    record.key_high = key.high;
    record.tile = narrow_count(tile);
    record.speckle_shape = plan.speckle_shape;
    record.box_z = narrow_count(box.planes);
    record.box_y = narrow_count(box.rows);
    record.box_x = narrow_count(box.columns);
    record.part_first_z = piece.box_plane;
    record.part_first_y = piece.box_row;
    record.part_y = piece.box_rows;
    record.tile_y = narrow_count(plan.tile_rows);
    record.tile_x = narrow_count(plan.tile_columns);
    record.first_z = piece.first_plane;
    record.first_y = piece.first_row;
    record.z = piece.planes;
    record.y = piece.rows;
    record.lines = narrow_count(lines);
    record.last_line = narrow_count(scene.galvo_last_line);
    record.extra_lines = narrow_count(lines - plan.tile_columns);
    record.as_acquired = order == TileOrder::acquired ? 1 : 0;
    const std::uint64_t count = std::uint64_t{piece.planes} * piece.rows * lines;
    if (to.buffer != nullptr) {
      CGL_TRY(kernels_->simulate_voxels(*queue_, record, texture, *to.buffer, done));
    } else {
      CGL_TRY_ASSIGN(const DeviceVolume made, kernels_->allocate({piece.planes, piece.rows, narrow_count(lines)}));
      CGL_TRY(kernels_->simulate_voxels(*queue_, record, texture, *made.buffer, 0));
      CGL_TRY(download(*queue_, to.values().subspan(done, count), *made.buffer));
    }
    CGL_TRY(queue_->synchronise());
    done += count;
  }
  return {};
}

Status TileSimulator::texture(std::uint64_t seed, double strength, const SampleBox& box, std::span<float> to,
                              const CancelToken& cancel) {
  // Whole planes where some of them fit at once, else rows of them.
  constexpr std::size_t few = 16;
  std::size_t planes = box.planes;
  std::size_t rows = box.rows;
  while (noise_voxels(planes, rows, box.columns) > most_elements() && (planes > 1 || rows > 1)) {
    std::size_t& side = planes > few || (rows <= few && planes >= rows) || rows == 1 ? planes : rows;
    side = (side + 1) / 2;
  }
  std::vector<float> piece;
  for (std::size_t first = 0; first < box.planes; first += planes) {
    for (std::size_t row = 0; row < box.rows; row += rows) {
      CGL_TRY(cancel.check());
      SampleBox part = box;
      part.plane += static_cast<std::int32_t>(first);
      part.planes = std::min(planes, box.planes - first);
      part.row += static_cast<std::int32_t>(row);
      part.rows = std::min(rows, box.rows - row);
      CGL_TRY_ASSIGN(const DeviceVolume made, texture_on_device(seed, strength, part));
      const std::size_t run = part.rows * box.columns;
      const std::size_t stride = box.rows * box.columns;
      if (run == stride) {
        CGL_TRY(download(*queue_, to.subspan(first * stride, part.planes * stride), *made.buffer));
        CGL_TRY(queue_->synchronise());
        continue;
      }
      piece.resize(part.planes * run);
      CGL_TRY(download(*queue_, std::span(piece), *made.buffer));
      CGL_TRY(queue_->synchronise());
      for (std::size_t z = 0; z < part.planes; ++z) {
        std::copy_n(&piece[z * run], run, &to[(first + z) * stride + row * box.columns]);
      }
    }
  }
  return {};
}

}  // namespace cingulum::oct
