// Reads the first tiles of a run ahead, while its devices are being opened, which takes a good part of a second. Called
// by `oct run`; the tiles themselves are read by tile_set.hpp.
#pragma once

#include <atomic>
#include <thread>

#include "oct/tiles/tile_set.hpp"

namespace cingulum::oct {

// While it lives, the system fetches the raw tiles of the first slice into its memory, in the order of the grid.
// Advice: nothing fails.
class TilesAhead {
 public:
  explicit TilesAhead(const TileSet& set);
  TilesAhead(const TilesAhead&) = delete;
  TilesAhead& operator=(const TilesAhead&) = delete;
  ~TilesAhead();

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace cingulum::oct
