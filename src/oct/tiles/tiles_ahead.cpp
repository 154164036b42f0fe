#include "oct/tiles/tiles_ahead.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/byte_stream.hpp"

namespace cingulum::oct {

TilesAhead::TilesAhead(const TileSet& set) {
  if (!set.raw) return;
  std::vector<const TileRecord*> tiles;
  const std::size_t first_slice = set.slices().front();
  for (const TileRecord& tile : set.tiles) {
    if (tile.slice == first_slice) tiles.push_back(&tile);
  }
  std::sort(tiles.begin(), tiles.end(), [](const TileRecord* a, const TileRecord* b) {
    return std::pair(a->row, a->column) < std::pair(b->row, b->column);
  });
  std::vector<std::filesystem::path> images;
  for (const TileRecord* tile : tiles) images.insert(images.end(), tile->images.begin(), tile->images.end());
  const auto fetch = [this, images = std::move(images)] {
    constexpr std::uint64_t at_a_time = std::uint64_t{8} << 20;
    std::uint64_t left = std::uint64_t{4} << 30;  // more is not read before devices are there
    for (const std::filesystem::path& image : images) {
      const Result<InputFile> file = InputFile::open(image);
      if (!file) return;
      for (std::uint64_t first = 0; first < file->size(); first += at_a_time) {
        if (stopping_ || left < at_a_time) return;
        file->will_read(first, std::min(at_a_time, file->size() - first));
        left -= at_a_time;
      }
    }
  };
  try {
    thread_ = std::thread(fetch);
  } catch (const std::system_error&) {
    // Without a thread to spare nothing is fetched.
  }
}

TilesAhead::~TilesAhead() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace cingulum::oct
