// The tiles of a run on one device. A tile goes there straight from its file, in pieces that the threads of a pool read
// at once; its summary comes back (tile_summary.hpp); it may stay there until all tiles were summarised, and is changed
// there into what it is in its slice. The kernels have the same bits on every device. Called by shared_tiles.cpp, which
// decides which tiles stay, and by what is done with them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "device/device.hpp"
#include "device/memory_pool.hpp"
#include "oct/device_volume.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/run/tile_summary.hpp"
#include "oct/tiles/tile_set.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// Where tiles come from, and who reads them.
struct TileSource {
  const TileSet* set = nullptr;
  std::size_t last_line = 0;   // raw tiles with extra lines: the last good one (galvo_band.hpp)
  ThreadPool* pool = nullptr;  // needed
  CancelToken cancel = {};
};

// A tile that was read and not yet ordered.
struct ReadTile {
  DeviceVolume volume;           // lent by the stage
  bool as_acquired = false;      // (y, line, z); else (z, y, x)
  std::uint32_t first_line = 0;  // as acquired: that of the first column
  std::string voxels;            // their hash, by pieces
  std::uint64_t replaced = 0;    // were not finite
};

// What a tile becomes in its slice.
struct TileChange {
  const HostImage* curvature = nullptr;  // A-lines come up by so many planes, and by `depth` more; null: they stay
  double depth = 0;
  const HostImage* light = nullptr;              // that is divided out; null: none
  std::size_t first_plane = 0, planes = 0;       // that are kept of it
  std::array<std::size_t, 3> shape = {0, 0, 0};  // to which these are resampled
};

// One thread reads ahead while another one works: `read` and `lend` may run beside the others. They use two pieces of
// memory in turn, so what was read before last is worked up when they are called.
class TileStage {
 public:
  // Bytes that one thread moves at a time from a file to the device, or back.
  static constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

  [[nodiscard]] static Result<std::unique_ptr<TileStage>> create(Device& device, const InterfaceOptions& interface);

  [[nodiscard]] Device& device() const { return kernels_->device(); }
  [[nodiscard]] bool in_host_memory() const;

  [[nodiscard]] Result<ReadTile> read(const TileSource& source, const TileRecord& record);
  // A tile that is in the host's memory; its hash is not taken again.
  [[nodiscard]] Result<ReadTile> lend(const HostVolume& tile, ThreadPool* pool);

  // (z, y, x), without extra lines.
  [[nodiscard]] Result<DeviceVolume> order(const ReadTile& read, const TileSet& set);
  // The summary of an ordered tile; the caller takes its hash and its replaced values from read().
  [[nodiscard]] Result<TileSummary> summarise(const DeviceVolume& tile, bool find_surface, ThreadPool* pool);
  [[nodiscard]] Result<DeviceVolume> make(DeviceVolume tile, const TileChange& change);

  // Calls take(first plane, voxels of whole planes) for all planes, by the threads of the pool.
  using TakePlanes = std::function<void(std::size_t first, std::span<const float> planes)>;
  [[nodiscard]] Status take_planes(const DeviceVolume& volume, ThreadPool* pool, const TakePlanes& take);
  [[nodiscard]] Result<HostVolume> copy_to_host(const DeviceVolume& volume, ThreadPool* pool);

  // Bytes of tiles that may stay on the device, beside what it works with.
  void set_tile_budget(std::uint64_t bytes) { tile_budget_ = bytes; }
  // False where the budget has less left. Called by the working thread alone, never by the reading one.
  [[nodiscard]] bool reserve_tile(std::uint64_t bytes);
  void release_tile(std::uint64_t bytes) { tile_budget_ += bytes; }
  // Gives the memory of released tiles back to the device.
  [[nodiscard]] Status trim() { return kernels_->trim(); }

 private:
  TileStage() = default;
  using FillPiece = std::function<Status(std::size_t piece, std::uint64_t first, std::span<float> to)>;
  class PieceStaging;
  template <class Work>
  [[nodiscard]] Status share_pieces(std::size_t pieces, ThreadPool* pool, const Work& work);
  [[nodiscard]] Result<DeviceVolume> next_slot(VolumeShape shape);
  [[nodiscard]] Status fill(const DeviceVolume& to, ThreadPool* pool, const FillPiece& fill_piece);
  [[nodiscard]] Result<DeviceVolume> upload_map(const HostImage& image, double more);

  std::unique_ptr<OctKernels> kernels_;
  std::unique_ptr<Queue> queue_;
  InterfaceOptions interface_;
  std::mutex transfers_mutex_;        // guards transfers_
  std::unique_ptr<Queue> transfers_;  // of voxels, by way of `staging_`
  std::unique_ptr<PinnedPool> staging_;
  std::array<std::unique_ptr<Buffer>, 2> slots_;
  std::size_t slot_ = 0;
  std::uint64_t tile_budget_ = 0;
};

}  // namespace cingulum::oct
