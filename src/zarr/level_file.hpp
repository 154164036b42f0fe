// A level of a pyramid between the moment it is made and the moment the next one is made of it: plain elements in a
// temporary file beside the output, which has no name any more, so that nothing is left of it whatever happens. Neither
// a folder nor an archive that is being written can be read back, and memory would not do. Elements lie tile by tile,
// so that a tile is one write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_layer.hpp"
#include "base/result.hpp"
#include "zarr/element_source.hpp"

namespace cingulum::zarr {

class LevelFile final : public ElementSource {
 public:
  // A temporary file beside `output`.
  [[nodiscard]] static Result<std::unique_ptr<LevelFile>> create(FileLayer& layer, const std::string& output,
                                                                 Shape shape, Shape tile, ElementType type);
  ~LevelFile() override;

  // Bytes on the disk of a level of this size.
  [[nodiscard]] static std::uint64_t bytes_of(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> tile,
                                              ElementType type);

  // The tile that begins at `origin`, cut off at the end of the level: its elements in row-major order. One that is
  // written again takes the place of what was there. any thread, one at a time for each tile
  [[nodiscard]] Status write_tile(std::span<const std::uint64_t> origin, std::span<const std::byte> elements);
  // Tiles that were written before. any thread
  Status read(const Region& box, std::span<std::byte> to) const override;

 private:
  LevelFile(FileLayer& layer, std::string output, int descriptor, Shape shape, Shape tile, ElementType type);
  // Where the tile with this index begins in the file.
  [[nodiscard]] std::uint64_t offset_of(std::span<const std::uint64_t> tile_index) const;
  [[nodiscard]] Shape tile_shape(std::span<const std::uint64_t> tile_index) const;

  FileLayer& layer_;
  std::string output_;
  int descriptor_;
  Shape tile_;
};

}  // namespace cingulum::zarr
