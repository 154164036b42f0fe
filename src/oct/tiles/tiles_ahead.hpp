// The first tiles of a run on their way while its devices are being opened, which takes a good part of a second. Called
// by `oct run`; reading itself is tile_set.hpp's.
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
