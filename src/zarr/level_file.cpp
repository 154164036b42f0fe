#include "zarr/level_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/partial_file.hpp"
#include "base/quantity.hpp"
#include "zarr/row_major.hpp"

namespace cingulum::zarr {

Result<std::unique_ptr<LevelFile>> LevelFile::create(FileLayer& layer, const std::string& output, Shape shape,
                                                     Shape tile, ElementType type) {
  const auto failure = [&](int error) {
    return fail_file(output, ErrorKind::io, "writing {}: the temporary file beside it: {}", output,
                     system_error_text(error));
  };
  std::string partial;
  const int descriptor = create_partial_file(layer, output, 0600, partial);
  if (descriptor < 0) return failure(-descriptor);
  std::unique_ptr<LevelFile> file(new LevelFile(layer, output, descriptor, std::move(shape), std::move(tile), type));
  if (const int error = -uninterrupted([&] { return layer.unlink(partial.c_str()); }); error != 0) {
    (void)uninterrupted([&] { return layer.unlink(partial.c_str()); });
    return failure(error);
  }
  return file;
}

LevelFile::LevelFile(FileLayer& layer, std::string output, int descriptor, Shape shape, Shape tile, ElementType type)
    : ElementSource(std::move(shape), type),
      layer_(layer),
      output_(std::move(output)),
      descriptor_(descriptor),
      tile_(std::move(tile)) {}

LevelFile::~LevelFile() {
  (void)layer_.close(descriptor_);
}

std::uint64_t LevelFile::bytes_of(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> tile,
                                  ElementType type) {
  std::uint64_t bytes = type.bytes();
  for (std::size_t d = 0; d < shape.size(); ++d) bytes *= (shape[d] + tile[d] - 1) / tile[d] * tile[d];
  return bytes;
}

std::uint64_t LevelFile::offset_of(std::span<const std::uint64_t> tile_index) const {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < tile_.size(); ++d) {
    number = number * ((shape()[d] + tile_[d] - 1) / tile_[d]) + tile_index[d];
  }
  return number * elements_of(tile_) * type().bytes();
}

Shape LevelFile::tile_shape(std::span<const std::uint64_t> tile_index) const {
  Shape extent(tile_.size());
  for (std::size_t d = 0; d < tile_.size(); ++d) {
    extent[d] = std::min(tile_[d], shape()[d] - tile_index[d] * tile_[d]);
  }
  return extent;
}

Status LevelFile::write_tile(std::span<const std::uint64_t> origin, std::span<const std::byte> elements) {
  Shape index(tile_.size());
  for (std::size_t d = 0; d < tile_.size(); ++d) index[d] = origin[d] / tile_[d];
  std::uint64_t offset = offset_of(index);
  while (!elements.empty()) {
    const ssize_t written =
        uninterrupted([&] { return layer_.write_at(descriptor_, elements.data(), elements.size(), offset); });
    if (written <= 0) {
      return fail_file(output_, ErrorKind::io, "writing {}: the temporary file beside it: {} at {}", output_,
                       system_error_text(written == 0 ? EIO : static_cast<int>(-written)), format_bytes(offset));
    }
    elements = elements.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status LevelFile::read(const Region& box, std::span<std::byte> to) const {
  const std::size_t rank = tile_.size();
  const std::size_t element_bytes = type().bytes();
  if (elements_of(box.shape) == 0) return {};
  Shape first(rank), count(rank), begin(rank), extent(rank), in_tile(rank), in_box(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    first[d] = box.origin[d] / tile_[d];
    count[d] = (box.origin[d] + box.shape[d] - 1) / tile_[d] - first[d] + 1;
  }
  std::vector<std::byte> planes;
  Shape index = first;
  for (std::uint64_t number = 0; number < elements_of(count); ++number) {
    std::uint64_t rest = number;
    for (std::size_t d = rank; d-- > 0;) {
      index[d] = first[d] + rest % count[d];
      rest /= count[d];
      begin[d] = std::max(box.origin[d], index[d] * tile_[d]);
      const std::uint64_t end = std::min(box.origin[d] + box.shape[d], (index[d] + 1) * tile_[d]);
      extent[d] = end - begin[d];
      in_tile[d] = begin[d] - index[d] * tile_[d];
      in_box[d] = begin[d] - box.origin[d];
    }
    // The planes of the tile along its first dimension that the box meets are one piece of the file.
    Shape held = tile_shape(index);
    const std::uint64_t plane_bytes = elements_of(held) / held[0] * element_bytes;
    std::uint64_t offset = offset_of(index) + in_tile[0] * plane_bytes;
    held[0] = extent[0];
    in_tile[0] = 0;
    planes.resize(elements_of(held) * element_bytes);
    std::span<std::byte> rest_of_planes = planes;
    while (!rest_of_planes.empty()) {
      const ssize_t got =
          ::pread(descriptor_, rest_of_planes.data(), rest_of_planes.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return fail_file(output_, ErrorKind::io, "writing {}: reading the temporary file beside it: {} at {}", output_,
                         got < 0 ? system_error_text(errno) : std::string("its end"), format_bytes(offset));
      }
      rest_of_planes = rest_of_planes.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    copy_box(extent, element_bytes, planes.data(), held, in_tile, to.data(), box.shape, in_box);
  }
  return {};
}

}  // namespace cingulum::zarr
