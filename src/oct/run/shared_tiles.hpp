// The tiles of a run, shared among its devices: each takes the next tile that no other one has, and reads the one after
// it meanwhile. A tile that was read stays on its device or in memory until its slice is made, as long as the budget of
// its device or of memory allows it; others are read again. Called by reconstruction.cpp and slice_blend.cpp, which say
// what is done with a tile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/run/tile_stage.hpp"

namespace cingulum::oct {

class SharedTiles {
 public:
  SharedTiles(const TileSet& set, const ReconstructionOptions& options, const RunNeeds& needs)
      : set_(set), options_(options), needs_(needs), kept_(set.slices().size()) {}

  // Starts the threads that wait for files, beside those that compute.
  [[nodiscard]] Status start_readers();
  // Devices keep as many tiles as memory would, as far as what they work with leaves memory for them: besides what
  // stages take, `other_bytes`.
  [[nodiscard]] Status set_budgets(std::uint64_t other_bytes) const;

  // Calls body(stage, number in the grid, what was read) for the tiles of slice s, by the threads of all stages. The
  // first failure in the order of the grid is the answer.
  using Body = std::function<Status(TileStage& stage, std::size_t t, const ReadTile& read)>;
  [[nodiscard]] Status for_each(const TileGrid& grid, std::size_t s, const Body& body);

  // Keeps a tile while the budget allows it: on its device, else in memory. Called from a body.
  [[nodiscard]] Status keep(TileStage& stage, DeviceVolume tile, std::size_t s, std::size_t t);
  // The tile if it is on the device, else one without a buffer: what was read is then to be ordered. Called from a
  // body, which is the last one to see the tile.
  [[nodiscard]] DeviceVolume take(std::size_t s, std::size_t t);
  // Releases the tiles of a finished slice.
  [[nodiscard]] Status forget(std::size_t s);

 private:
  // A tile that is kept until its slice is made. One that is neither on the device nor on the host is read again.
  struct KeptTile {
    TileStage* stage = nullptr;  // that still has it
    DeviceVolume on_device = {};
    HostVolume on_host = {};
  };
  struct TileToDo {
    std::size_t number = 0;  // in the grid
    const TileRecord* record = nullptr;
    KeptTile* kept = nullptr;
  };
  class Round;

  [[nodiscard]] std::vector<TileToDo> tiles_of(const TileGrid& grid, std::vector<KeptTile>& kept) const;
  [[nodiscard]] Result<ReadTile> read(TileStage& stage, const TileToDo& tile) const;

  const TileSet& set_;
  const ReconstructionOptions& options_;
  const RunNeeds& needs_;
  std::unique_ptr<ThreadPool> readers_;
  std::vector<std::vector<KeptTile>> kept_;  // by slice, as in its grid
  std::atomic<std::uint64_t> kept_bytes_ = 0;
};

}  // namespace cingulum::oct
