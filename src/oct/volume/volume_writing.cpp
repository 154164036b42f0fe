#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "base/side_task.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/volume_file.hpp"
#include "zarr/array.hpp"
#include "zarr/element_source.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/level_file.hpp"
#include "zarr/new_array.hpp"
#include "zarr/ome_zarr.hpp"
#include "zarr/pyramid.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using zarr::Json;

zarr::NewArray new_volume(zarr::Shape shape) {
  zarr::NewArray wanted;
  wanted.shape = std::move(shape);
  wanted.type = element_type_of<float>();
  wanted.dimension_names = {"z", "y", "x"};
  return wanted;
}

// Shards no larger than what is made at a time: each is written once.
Result<zarr::ArrayMetadata> describe_boxes(const std::array<std::size_t, 3>& shape) {
  zarr::NewArray wanted = new_volume({shape[0], shape[1], shape[2]});
  wanted.chunk_shape = {planes_at_a_time, chunk_rows, chunk_columns};
  wanted.shard_shape = {planes_at_a_time, rows_at_a_time, 1024};
  return zarr::describe_new_array(wanted);
}

std::string name_of(const fs::path& path, const VolumeWriteOptions& options) {
  return options.name == "oct" ? path.stem().stem().native() : options.name;
}

zarr::OmeLevel finest_level(const VoxelSize& voxel_um) {
  return {.path = "0", .scale = {voxel_um.begin(), voxel_um.end()}, .translation = {0, 0, 0}};
}

// Name and levels are the caller's.
Status write_image_group(zarr::OmeMultiscale multiscale, const Json& attributes, zarr::StoreOutput& output) {
  for (const char* axis : {"z", "y", "x"}) multiscale.axes.push_back({axis, "space", "micrometer"});
  if (multiscale.levels.size() > 1) multiscale.type = "mean";
  zarr::OmeImage image;
  image.multiscales = {std::move(multiscale)};
  if (!attributes.empty()) image.others["cingulum"] = attributes;
  CGL_TRY_ASSIGN(const Json group, zarr::ome_attributes(image, zarr::OmeVersion::v0_5, image.multiscales.front().name));
  return zarr::write_group("", 3, group, output);
}

// Chunks in which the finest level is kept until the next level is made of it: small, so that a chunk of the next one
// overlaps few of them.
constexpr std::size_t kept_rows = 64;
constexpr std::size_t kept_columns = 256;
static_assert(rows_at_a_time % kept_rows == 0);

Status keep_box(zarr::LevelFile& level, const PlaneBox& box, std::span<const float> made, ThreadPool* pool) {
  const auto columns = static_cast<std::size_t>(level.shape()[2]);
  FirstFailure failure;
  for_each_index(pool, box.planes, [&](std::size_t z) {
    const auto keep_plane = [&]() -> Status {
      std::vector<float> tile;
      for (std::size_t row = 0; row < box.rows; row += kept_rows) {
        const std::size_t rows = std::min(kept_rows, box.rows - row);
        for (std::size_t column = 0; column < columns; column += kept_columns) {
          const std::size_t width = std::min(kept_columns, columns - column);
          tile.resize(rows * width);
          for (std::size_t r = 0; r < rows; ++r) {
            const auto line = made.subspan((z * box.rows + row + r) * columns + column, width);
            std::copy(line.begin(), line.end(), tile.begin() + static_cast<std::ptrdiff_t>(r * width));
          }
          CGL_TRY(level.write_tile(zarr::Shape{box.first_plane + z, box.first_row + row, column},
                                   std::as_bytes(std::span(tile))));
        }
      }
      return {};
    };
    failure.note(z, catch_out_of_memory(keep_plane));
  });
  return failure.take();
}

// Boxes that are written while further ones are made, each by a thread of its own: that thread waits for the disk, and
// makes a piece of a shard just before it writes it. one caller at a time
class BoxesBehind {
 public:
  BoxesBehind(zarr::Array array, zarr::StoreOutput& output, std::size_t largest_box, const VolumeWriteOptions& options)
      : array_(std::move(array)),
        output_(output),
        largest_box_(largest_box),
        cancel_(options.cancel),
        // An archive takes its keys one behind the other.
        boxes_(output.ordered() ? 1 : std::max<std::size_t>(1, options.boxes_behind)) {}

  // Memory for the next box: of one that was written, where there is such a one.
  [[nodiscard]] BulkVector<float> take_buffer(std::size_t voxels) {
    BulkVector<float> buffer = std::exchange(spare_, {});
    buffer.reserve(largest_box_);
    buffer.resize(voxels);
    return buffer;
  }

  // Waits for the oldest box where as many are being written as may be. The failure may be that of an earlier box.
  [[nodiscard]] Status write(const PlaneBox& box, BulkVector<float> voxels) {
    if (begun_ - ended_ == boxes_.size()) CGL_TRY(end_oldest());
    auto write_box = [this, box, made = std::move(voxels)]() mutable -> Result<BulkVector<float>> {
      const zarr::Region region{{box.first_plane, box.first_row, 0},
                                {box.planes, box.rows, array_.metadata().shape[2]}};
      const auto written =
          zarr::write_region(array_, output_, region, std::as_bytes(std::span(made)), {.cancel = cancel_});
      if (!written) return tl::make_unexpected(written.error());
      return std::move(made);
    };
    boxes_[begun_++ % boxes_.size()].begin(std::move(write_box));
    return {};
  }

  [[nodiscard]] Status finish() {
    while (ended_ < begun_) CGL_TRY(end_oldest());
    return {};
  }

 private:
  [[nodiscard]] Status end_oldest() {
    CGL_TRY_ASSIGN(spare_, boxes_[ended_++ % boxes_.size()].end());
    return {};
  }

  zarr::Array array_;
  zarr::StoreOutput& output_;
  std::size_t largest_box_;
  CancelToken cancel_;
  BulkVector<float> spare_;
  std::vector<SideTask<BulkVector<float>>> boxes_;  // taken in turn; ending waits for them
  std::size_t begun_ = 0, ended_ = 0;               // boxes, so far
};

// The finest level, as it is made; `kept` (may be null) takes its voxels, too.
Status write_boxes(const zarr::ArrayMetadata& finest, const MakeBox& make, zarr::LevelFile* kept,
                   zarr::StoreOutput& output, const VolumeWriteOptions& options) {
  CGL_TRY(zarr::write_array_metadata("0", finest, output));
  const std::size_t planes = finest.shape[0], rows = finest.shape[1], columns = finest.shape[2];
  const std::size_t largest_box = std::min(planes_at_a_time, planes) * std::min(rows_at_a_time, rows) * columns;
  BoxesBehind behind(zarr::Array::describe(nullptr, "0", finest), output, largest_box, options);
  for (std::size_t first = 0; first < planes; first += planes_at_a_time) {
    for (std::size_t row = 0; row < rows; row += rows_at_a_time) {
      CGL_TRY(options.cancel.check());
      const PlaneBox box = {first, std::min(planes_at_a_time, planes - first), row,
                            std::min(rows_at_a_time, rows - row)};
      BulkVector<float> made = behind.take_buffer(box.planes * box.rows * columns);
      CGL_TRY(make(box, made));
      if (kept != nullptr) CGL_TRY(keep_box(*kept, box, made, options.pool));
      CGL_TRY(behind.write(box, std::move(made)));
    }
  }
  return behind.finish();
}

// Makes a level of a volume in memory: each voxel is the mean of eight of the level before.
Status make_coarser(std::span<const float> finer, const zarr::Shape& finer_shape, const zarr::Shape& shape,
                    ThreadPool* pool, std::vector<float>& made) {
  const std::size_t plane = shape[1] * shape[2];
  made.resize(shape[0] * plane);
  const zarr::MemorySource source(finer_shape, element_type_of<float>(), std::as_bytes(finer));
  FirstFailure failure;
  for_each_index(pool, shape[0], [&](std::size_t z) {
    const auto place = std::as_writable_bytes(std::span(made).subspan(z * plane, plane));
    failure.note(
        z, zarr::downsample(source, shape, zarr::Downsampling::mean, {{z, 0, 0}, {1, shape[1], shape[2]}}, place));
  });
  return failure.take();
}

}  // namespace

Status write_volume(const HostVolume& volume, const VoxelSize& voxel_um, const Json& attributes,
                    zarr::StoreOutput& output, const VolumeWriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    CGL_TRY_ASSIGN(const zarr::ArrayMetadata finest,
                   zarr::describe_new_array(new_volume({volume.planes, volume.rows, volume.columns})));
    const std::vector<zarr::Shape> shapes =
        zarr::pyramid_shapes(finest.shape, {true, true, true}, options.levels, finest.leaf_shape());
    zarr::OmeMultiscale multiscale;
    multiscale.name = options.name;
    const zarr::OmeLevel first = finest_level(voxel_um);
    std::vector<float> kept;  // of the level before
    std::span<const float> finer = volume.values;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(new_volume(shapes[k])));
      std::vector<float> made;
      std::span<const float> elements = finer;
      if (k > 0) {
        CGL_TRY(make_coarser(finer, shapes[k - 1], shapes[k], options.pool, made));
        elements = made;
      }
      const std::string path = std::to_string(k);
      CGL_TRY(zarr::write_array_metadata(path, metadata, output));
      const auto written =
          zarr::write_region(zarr::Array::describe(nullptr, path, metadata), output, zarr::whole(metadata),
                             std::as_bytes(elements), {.pool = options.pool, .cancel = options.cancel});
      if (!written) return tl::make_unexpected(written.error());
      multiscale.levels.push_back(k == 0 ? first : zarr::level_of_size(first, shapes[0], shapes[k], path));
      if (k > 0) {
        kept = std::move(made);
        finer = kept;
      }
    }
    return write_image_group(std::move(multiscale), attributes, output);
  });
}

Status write_volume_by_boxes(const fs::path& path, const std::array<std::size_t, 3>& shape, const VoxelSize& voxel_um,
                             const Json& attributes, const MakeBox& make, const WriteOptions& write,
                             const VolumeWriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    CGL_TRY_ASSIGN(const zarr::ArrayMetadata finest, describe_boxes(shape));
    const std::vector<zarr::Shape> shapes =
        zarr::pyramid_shapes(finest.shape, {true, true, true}, options.levels, finest.leaf_shape());
    WriteOptions writing = write;
    writing.expected_bytes = finest.element_count() * sizeof(float);
    CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> output, zarr::new_hierarchy(path, writing));
    FileLayer& layer = write.layer != nullptr ? *write.layer : FileLayer::system();
    std::unique_ptr<zarr::LevelFile> finer;
    if (shapes.size() > 1) {
      CGL_TRY_ASSIGN(finer, zarr::LevelFile::create(layer, path.native(), finest.shape, {1, kept_rows, kept_columns},
                                                    finest.type));
    }
    CGL_TRY(write_boxes(finest, make, finer.get(), *output, options));
    zarr::OmeMultiscale multiscale;
    multiscale.name = name_of(path, options);
    const zarr::OmeLevel first = finest_level(voxel_um);
    multiscale.levels.push_back(first);
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(new_volume(shapes[k])));
      const std::string name = std::to_string(k);
      CGL_TRY(zarr::write_array_metadata(name, metadata, *output));
      std::unique_ptr<zarr::LevelFile> kept;
      if (k + 1 < shapes.size()) {
        CGL_TRY_ASSIGN(
            kept, zarr::LevelFile::create(layer, path.native(), metadata.shape, metadata.leaf_shape(), metadata.type));
      }
      CGL_TRY(zarr::write_level(*finer, zarr::Downsampling::mean, zarr::Array::describe(nullptr, name, metadata),
                                *output, kept.get(), {.pool = options.pool, .cancel = options.cancel}));
      finer = std::move(kept);
      multiscale.levels.push_back(zarr::level_of_size(first, shapes[0], shapes[k], name));
    }
    CGL_TRY(write_image_group(std::move(multiscale), attributes, *output));
    return output->commit();
  });
}

Status write_volume_from_memory(const fs::path& path, const HostVolume& volume, const VoxelSize& voxel_um,
                                const Json& attributes, const WriteOptions& write, const VolumeWriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, describe_boxes({volume.planes, volume.rows, volume.columns}));
    WriteOptions writing = write;
    writing.expected_bytes = metadata.element_count() * sizeof(float);
    CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> output, zarr::new_hierarchy(path, writing));
    CGL_TRY(zarr::write_array_metadata("0", metadata, *output));
    std::uint64_t shards = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      shards *= (metadata.shape[d] + metadata.chunk_shape[d] - 1) / metadata.chunk_shape[d];
    }
    // Where threads have less than a shard each, shards would be copied before they are written.
    ThreadPool* const pool = options.pool != nullptr && shards >= static_cast<std::uint64_t>(options.pool->threads())
                                 ? options.pool
                                 : nullptr;
    const auto written =
        zarr::write_region(zarr::Array::describe(nullptr, "0", metadata), *output, zarr::whole(metadata),
                           std::as_bytes(std::span(volume.values)), {.pool = pool, .cancel = options.cancel});
    if (!written) return tl::make_unexpected(written.error());
    zarr::OmeMultiscale multiscale;
    multiscale.name = name_of(path, options);
    multiscale.levels.push_back(finest_level(voxel_um));
    CGL_TRY(write_image_group(std::move(multiscale), attributes, *output));
    return output->commit();
  });
}

Status write_volume_file(const fs::path& path, const HostVolume& volume, const VoxelSize& voxel_um,
                         const Json& attributes, const WriteOptions& write, const VolumeWriteOptions& options) {
  WriteOptions writing = write;
  if (options.levels == std::optional<std::size_t>(1)) writing.expected_bytes = volume.values.size() * sizeof(float);
  CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> output, zarr::new_hierarchy(path, writing));
  VolumeWriteOptions described = options;
  described.name = name_of(path, options);
  CGL_TRY(add_file_context(write_volume(volume, voxel_um, attributes, *output, described), "writing", path.native()));
  return output->commit();
}

}  // namespace cingulum::oct
