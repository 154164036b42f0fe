#include "oct/run/tile_stage.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/first_failure.hpp"
#include "base/hash.hpp"
#include "oct/tiles/galvo_band.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// The hash of a tile is taken by such pieces.
constexpr std::uint64_t piece_values = TileStage::piece_bytes / sizeof(float);

VolumeShape shape_of(const HostVolume& volume) {
  return {static_cast<std::uint32_t>(volume.planes), static_cast<std::uint32_t>(volume.rows),
          static_cast<std::uint32_t>(volume.columns)};
}

std::uint32_t narrow(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

std::size_t pieces_of(std::uint64_t values) {
  return static_cast<std::size_t>((values + piece_values - 1) / piece_values);
}

std::string hash_of_pieces(const std::vector<std::string>& hashes) {
  Hash128 hash;
  for (const std::string& one : hashes) hash.add(one);
  return hash.hex();
}

}  // namespace

Result<std::unique_ptr<TileStage>> TileStage::create(Device& device, const InterfaceOptions& interface) {
  auto stage = std::unique_ptr<TileStage>(new TileStage());
  CGL_TRY_ASSIGN(stage->kernels_, OctKernels::create(device));
  CGL_TRY_ASSIGN(stage->queue_, device.create_queue());
  CGL_TRY_ASSIGN(stage->transfers_, device.create_queue());
  stage->staging_ = std::make_unique<PinnedPool>(
      device, device.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable);
  stage->interface_ = interface;
  return stage;
}

bool TileStage::in_host_memory() const {
  return device().description().backend == Backend::cpu;
}

bool TileStage::reserve_tile(std::uint64_t bytes) {
  if (bytes > tile_budget_) return false;
  tile_budget_ -= bytes;
  return true;
}

Result<DeviceVolume> TileStage::next_slot(VolumeShape shape) {
  slot_ ^= 1U;
  std::unique_ptr<Buffer>& slot = slots_[slot_];
  if (slot == nullptr || slot->bytes() < shape.bytes()) {
    slot.reset();
    CGL_TRY_ASSIGN(slot, device().allocate(shape.bytes()));
  }
  // The stage owns it.
  return DeviceVolume{std::shared_ptr<Buffer>(std::shared_ptr<void>(), slot.get()), shape};
}

// Memory through which a thread sends pieces to the device or fetches them: two, so that one is filled or emptied while
// the other is on its way.
class TileStage::PieceStaging {
 public:
  explicit PieceStaging(TileStage& stage) : stage_(stage) {}
  PieceStaging(const PieceStaging&) = delete;
  PieceStaging& operator=(const PieceStaging&) = delete;
  // Memory goes back when nothing moves in it.
  ~PieceStaging() {
    for (StagingBuffer& buffer : buffers_) static_cast<void>(arrive(buffer));
  }

  // The other one of the two memories, once what it held has arrived.
  [[nodiscard]] Result<std::span<float>> next(std::uint64_t count) {
    current_ ^= 1U;
    StagingBuffer& buffer = buffers_[current_];
    CGL_TRY(arrive(buffer));
    if (!buffer.block || (*buffer.block)->bytes.size() < count * sizeof(float)) {
      buffer.block.reset();
      CGL_TRY_ASSIGN(buffer.block, stage_.staging_->acquire(count * sizeof(float)));
    }
    return std::span(reinterpret_cast<float*>((*buffer.block)->bytes.data()), count);
  }
  // Calls move(queue), which sets the bytes of next() in motion.
  template <class Move>
  [[nodiscard]] Status start(const Move& move) {
    const std::lock_guard lock(stage_.transfers_mutex_);
    CGL_TRY(move(*stage_.transfers_));
    CGL_TRY_ASSIGN(buffers_[current_].arrived, stage_.transfers_->record());
    return {};
  }
  // wait_for_last() waits for the memory that next() gave before the current one, wait() for both.
  [[nodiscard]] Status wait_for_last() { return arrive(buffers_[current_ ^ 1U]); }
  [[nodiscard]] Status wait() {
    CGL_TRY(wait_for_last());
    return arrive(buffers_[current_]);
  }

 private:
  struct StagingBuffer {
    std::optional<PooledBlock<PinnedBlock>> block;
    std::unique_ptr<Event> arrived;  // absent: nothing moves
  };
  [[nodiscard]] static Status arrive(StagingBuffer& buffer) {
    if (buffer.arrived == nullptr) return {};
    const std::unique_ptr<Event> arrived = std::move(buffer.arrived);
    return arrived->wait();
  }

  TileStage& stage_;
  std::array<StagingBuffer, 2> buffers_;
  std::size_t current_ = 0;
};

// Calls work(staging, next, piece), by as many threads as the pool has, each with staging memory of its own. next()
// gives the numbers of pieces that no other thread has, and nothing when there are no more; `piece` is set to that
// which is worked at. Of several failures that of the first piece is the answer: whoever meets it has met none before.
template <class Work>
Status TileStage::share_pieces(std::size_t pieces, ThreadPool* pool, const Work& work) {
  std::atomic<std::size_t> taken = 0;
  const auto next = [&]() -> std::optional<std::size_t> {
    const std::size_t piece = taken++;
    return piece < pieces ? std::optional(piece) : std::nullopt;
  };
  FirstFailure failure;
  const std::size_t threads = pool != nullptr ? static_cast<std::size_t>(pool->threads()) : 1;
  for_each_index(pool, std::min(pieces, threads), [&](std::size_t) {
    std::size_t piece = 0;  // at which it fails
    const auto work_all = [&]() -> Status {
      PieceStaging staging(*this);
      CGL_TRY(work(staging, next, piece));
      return staging.wait();
    };
    failure.note(piece, catch_out_of_memory(work_all));
  });
  return failure.take();
}

Status TileStage::fill(const DeviceVolume& to, ThreadPool* pool, const FillPiece& fill_piece) {
  const std::uint64_t values = to.shape.voxels();
  const std::size_t pieces = pieces_of(values);
  const auto count_of = [&](std::size_t piece) { return std::min(piece_values, values - piece * piece_values); };
  if (in_host_memory()) {
    FirstFailure failure;
    for_each_index(pool, pieces, [&](std::size_t piece) {
      float* const first = static_cast<float*>(to.buffer->device_pointer()) + piece * piece_values;
      failure.note(piece, catch_out_of_memory([&] {
                     return fill_piece(piece, piece * piece_values, {first, count_of(piece)});
                   }));
    });
    return failure.take();
  }
  return share_pieces(pieces, pool, [&](PieceStaging& staging, const auto& next, std::size_t& piece) -> Status {
    while (const auto number = next()) {
      piece = *number;
      const std::uint64_t first = piece * piece_values;
      CGL_TRY_ASSIGN(const std::span<float> staged, staging.next(count_of(piece)));
      CGL_TRY(fill_piece(piece, first, staged));
      CGL_TRY(staging.start(
          [&](Queue& queue) { return queue.upload(*to.buffer, first * sizeof(float), std::as_bytes(staged)); }));
    }
    return {};
  });
}

Result<ReadTile> TileStage::read(const TileSource& source, const TileRecord& record) {
  return catch_out_of_memory([&]() -> Result<ReadTile> {
    const TileSet& set = *source.set;
    if (!set.raw || set.repeats > 1) {
      std::uint64_t replaced = 0;
      CGL_TRY_ASSIGN(HostVolume tile, read_tile(set, record, replaced, source.cancel, source.pool));
      if (set.extra_lines > 0) tile = without_band(tile, set.extra_lines, source.last_line);
      CGL_TRY_ASSIGN(ReadTile read, lend(tile, source.pool));
      read.replaced = replaced;
      std::vector<std::string> hashes(pieces_of(tile.values.size()));
      for_each_index(source.pool, hashes.size(), [&](std::size_t piece) {
        const std::size_t first = piece * piece_values;
        const std::size_t count = std::min<std::size_t>(piece_values, tile.values.size() - first);
        hashes[piece] = hash_hex(std::as_bytes(std::span(tile.values).subspan(first, count)));
      });
      read.voxels = hash_of_pieces(hashes);
      return read;
    }
    ReadTile read;
    read.as_acquired = true;
    const std::size_t lines = set.shape[2] + set.extra_lines;
    if (set.extra_lines > 0) read.first_line = narrow((source.last_line + 1 + set.extra_lines) % lines);
    CGL_TRY(check_raw_tile(set, record));
    CGL_TRY_ASSIGN(read.volume, next_slot({narrow(set.shape[1]), narrow(lines), narrow(set.shape[0])}));
    const std::size_t pieces = pieces_of(read.volume.shape.voxels());
    std::vector<std::string> hashes(pieces);
    std::vector<std::uint64_t> replaced(pieces, 0);
    const auto read_piece = [&](std::size_t piece, std::uint64_t first, std::span<float> to) -> Status {
      CGL_TRY(source.cancel.check());
      CGL_TRY(read_raw_values(record, first, to));
      replaced[piece] = replace_non_finite(to);
      hashes[piece] = hash_hex(std::as_bytes(to));
      return {};
    };
    CGL_TRY(fill(read.volume, source.pool, read_piece));
    for (const std::uint64_t count : replaced) read.replaced += count;
    read.voxels = hash_of_pieces(hashes);
    return read;
  });
}

Result<ReadTile> TileStage::lend(const HostVolume& tile, ThreadPool* pool) {
  ReadTile read;
  CGL_TRY_ASSIGN(read.volume, next_slot(shape_of(tile)));
  const auto copy_piece = [&](std::size_t, std::uint64_t first, std::span<float> to) -> Status {
    std::copy_n(tile.values.data() + first, to.size(), to.begin());
    return {};
  };
  CGL_TRY(fill(read.volume, pool, copy_piece));
  return read;
}

Result<DeviceVolume> TileStage::order(const ReadTile& read, const TileSet& set) {
  CGL_TRY_ASSIGN(DeviceVolume tile,
                 kernels_->allocate({narrow(set.shape[0]), narrow(set.shape[1]), narrow(set.shape[2])}));
  if (read.as_acquired) {
    CGL_TRY(kernels_->order_lines(*queue_, read.volume, read.first_line, tile));
  } else {
    CGL_TRY(queue_->copy(*tile.buffer, 0, *read.volume.buffer, 0, tile.shape.bytes()));
  }
  return tile;
}

Result<TileSummary> TileStage::summarise(const DeviceVolume& tile, bool find_surface, ThreadPool* pool) {
  const VolumeShape map{1, tile.shape.y, tile.shape.x};
  if (!find_surface) {
    CGL_TRY_ASSIGN(DeviceVolume mean, kernels_->allocate(map));
    CGL_TRY(kernels_->project(*queue_, tile, mean, Projection::mean));
    CGL_TRY_ASSIGN(const std::vector<float> values, kernels_->download(*queue_, mean));
    return summary_without_surface(values, map.y, map.x);
  }
  CGL_TRY_ASSIGN(const DeviceVolume surface, kernels_->find_interface(*queue_, tile, interface_));
  const std::size_t layers = layers_of(tile.shape.z);
  CGL_TRY_ASSIGN(DeviceVolume sums, kernels_->allocate({narrow(layers + 2), map.y, map.x}));
  CGL_TRY(kernels_->sum_layers(*queue_, tile, surface, narrow(projected_planes(tile.shape.z)), sums));
  CGL_TRY_ASSIGN(const std::vector<float> planes, kernels_->download(*queue_, surface));
  CGL_TRY_ASSIGN(const std::vector<float> values, kernels_->download(*queue_, sums));
  return summary_of_sums({planes, values, tile.shape.z, map.y, map.x, layers}, pool);
}

Result<DeviceVolume> TileStage::upload_map(const HostImage& image, double more) {
  std::vector<float> values(image.values.size());
  std::transform(image.values.begin(), image.values.end(), values.begin(),
                 [&](double value) { return static_cast<float>(value + more); });
  return kernels_->upload(*queue_, {1, narrow(image.rows), narrow(image.columns)}, values);
}

Result<DeviceVolume> TileStage::make(DeviceVolume tile, const TileChange& change) {
  if (change.curvature != nullptr) {
    CGL_TRY_ASSIGN(const DeviceVolume by, upload_map(*change.curvature, change.depth));
    CGL_TRY_ASSIGN(DeviceVolume rolled, kernels_->allocate(tile.shape));
    CGL_TRY(kernels_->roll_lines(*queue_, tile, by, rolled, {.circular = false}));
    // What is let go of is used again in the order of the queue.
    tile = std::move(rolled);
  }
  const VolumeShape kept{narrow(change.planes), tile.shape.y, tile.shape.x};
  if (change.light != nullptr) {
    CGL_TRY_ASSIGN(const DeviceVolume light, upload_map(*change.light, 0));
    CGL_TRY_ASSIGN(DeviceVolume even, kernels_->allocate(kept));
    CGL_TRY(kernels_->divide_by_map(*queue_, tile, narrow(change.first_plane), light, even));
    tile = std::move(even);
  } else if (kept != tile.shape) {
    CGL_TRY_ASSIGN(DeviceVolume cropped, kernels_->allocate(kept));
    CGL_TRY(kernels_->crop_planes(*queue_, tile, narrow(change.first_plane), cropped));
    tile = std::move(cropped);
  }
  const VolumeShape shape{narrow(change.shape[0]), narrow(change.shape[1]), narrow(change.shape[2])};
  if (shape == tile.shape) return tile;
  CGL_TRY_ASSIGN(DeviceVolume resized, kernels_->allocate(shape));
  CGL_TRY(kernels_->resize(*queue_, tile, resized, {}));
  return resized;
}

Status TileStage::take_planes(const DeviceVolume& volume, ThreadPool* pool, const TakePlanes& take) {
  CGL_TRY(queue_->synchronise());
  const std::uint64_t plane = volume.shape.plane();
  const auto planes = static_cast<std::size_t>(std::max<std::uint64_t>(1, piece_values / plane));
  const std::size_t pieces = (volume.shape.z + planes - 1) / planes;
  const auto count_of = [&](std::size_t piece) {
    return std::min<std::uint64_t>(planes, volume.shape.z - piece * planes) * plane;
  };
  if (in_host_memory()) {
    FirstFailure failure;
    for_each_index(pool, pieces, [&](std::size_t piece) {
      const float* const first = static_cast<const float*>(volume.buffer->device_pointer()) + piece * planes * plane;
      const auto take_one = [&]() -> Status {
        take(piece * planes, {first, count_of(piece)});
        return {};
      };
      failure.note(piece, catch_out_of_memory(take_one));
    });
    return failure.take();
  }
  return share_pieces(pieces, pool, [&](PieceStaging& staging, const auto& next, std::size_t& piece) -> Status {
    std::span<const float> before;  // is taken while the next piece comes
    while (const auto number = next()) {
      CGL_TRY_ASSIGN(const std::span<float> staged, staging.next(count_of(*number)));
      CGL_TRY(staging.start([&](Queue& queue) {
        return queue.download(std::as_writable_bytes(staged), *volume.buffer, *number * planes * plane * sizeof(float));
      }));
      if (!before.empty()) {
        CGL_TRY(staging.wait_for_last());
        take(piece * planes, before);
      }
      before = staged;
      piece = *number;
    }
    CGL_TRY(staging.wait());
    if (!before.empty()) take(piece * planes, before);
    return {};
  });
}

Result<HostVolume> TileStage::copy_to_host(const DeviceVolume& volume, ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    HostVolume copy(volume.shape.z, volume.shape.y, volume.shape.x);
    CGL_TRY(take_planes(volume, pool, [&](std::size_t first, std::span<const float> planes) {
      std::copy(planes.begin(), planes.end(), copy.values.data() + first * copy.plane_size());
    }));
    return copy;
  });
}

}  // namespace cingulum::oct
