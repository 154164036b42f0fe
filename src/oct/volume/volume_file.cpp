#include "oct/volume/volume_file.hpp"

#include <algorithm>
#include <deque>
#include <fstream>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/argument_name.hpp"
#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "base/quantity.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "numerics/classify.hpp"
#include "oct/volume/shared_loop.hpp"
#include "zarr/array.hpp"
#include "zarr/element_numbers.hpp"
#include "zarr/element_source.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/level_file.hpp"
#include "zarr/new_array.hpp"
#include "zarr/ome_units.hpp"
#include "zarr/ome_zarr.hpp"
#include "zarr/pyramid.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using zarr::Json;

bool names_nifti_volume(const fs::path& path) {
  return path.native().ends_with(".nii") || path.native().ends_with(".nii.gz");
}

struct OpenVolume {
  zarr::Array array;
  VolumeDescription description;
};

Result<OpenVolume> open_ome_volume(const fs::path& path, const VolumeReadOptions& options) {
  CGL_TRY_ASSIGN(const std::shared_ptr<const zarr::Store> store, zarr::Store::open(path));
  CGL_TRY_ASSIGN(const zarr::Node node, zarr::open_node(*store, ""));
  CGL_TRY_ASSIGN(const Json attributes, parse_json(node.attributes));
  CGL_TRY_ASSIGN(const std::optional<zarr::OmeImage> image, zarr::parse_ome_image(attributes, path.native()));
  if (!image) {
    return fail_file(path.native(), ErrorKind::invalid_argument, "{}: no OME-Zarr image is at its root", path.native());
  }
  zarr::OmeMultiscale finest = image->multiscales.front();
  finest.levels.resize(1);
  CGL_TRY_ASSIGN(const std::vector<zarr::Array> arrays, zarr::open_levels(store, "", finest));
  OpenVolume open{arrays.front(), {}};
  const zarr::ArrayMetadata& metadata = open.array.metadata();
  std::vector<std::string> names;
  for (const zarr::OmeAxis& axis : finest.axes) names.push_back(axis.name);
  if (names != std::vector<std::string>{"z", "y", "x"}) {
    return fail_file(path.native(), ErrorKind::invalid_argument,
                     "{}: an OCT volume has the axes z, y, x; this one has {}", path.native(),
                     fmt::format("{}", fmt::join(names, ", ")));
  }
  if (metadata.type.code == ElementType::Code::complex) {
    return fail_file(path.native(), ErrorKind::unavailable, "{}: {} voxels; take their magnitude first", path.native(),
                     metadata.type.name());
  }
  for (std::size_t d = 0; d < 3; ++d) {
    const std::string unit = finest.axes[d].unit.empty() ? options.unit.value_or("") : finest.axes[d].unit;
    if (unit.empty()) {
      return fail_file(path.native(), ErrorKind::corrupt, "{}: axis {} has no unit of length; name it by {}",
                       path.native(), finest.axes[d].name, argument_name("unit"));
    }
    CGL_TRY_ASSIGN(const double mm, add_file_context(zarr::length_unit_in_mm(unit), "reading", path.native()));
    open.description.shape[d] = metadata.shape[d];
    open.description.voxel_um[d] = finest.levels.front().scale[d] * (mm * 1000.0);
  }
  if (const auto kept = image->others.find("cingulum"); kept != image->others.end() && kept->is_object()) {
    open.description.attributes = *kept;
  }
  return open;
}

VolumeDescription describe_nifti(const NiftiHeader& header) {
  VolumeDescription description;
  const auto voxel_mm = header.geometry.voxel_mm();
  for (std::size_t d = 0; d < 3; ++d) {
    description.shape[d] = static_cast<std::uint64_t>(header.geometry.size[2 - d]);
    description.voxel_um[d] = voxel_mm[2 - d] * 1000.0;
  }
  return description;
}

Result<HostVolume> read_open_box(const fs::path& path, const OpenVolume& open, const PlaneBox& box,
                                 const VolumeReadOptions& options) {
  if (open.array.metadata().type != element_type_of<float>()) {
    return fail_file(path.native(), ErrorKind::corrupt, "{}: {} voxels; float32 is expected", path.native(),
                     open.array.metadata().type.name());
  }
  HostVolume volume = HostVolume::unset(box.planes, box.rows, open.description.shape[2]);
  const auto report =
      zarr::read_region(open.array, {{box.first_plane, box.first_row, 0}, {box.planes, box.rows, volume.columns}},
                        std::as_writable_bytes(std::span(volume.values)),
                        {.pool = options.pool, .cancel = options.cancel, .complete = options.complete});
  if (!report) return tl::make_unexpected(report.error());
  return volume;
}

Result<NiftiReader> open_nifti_volume(const fs::path& path, const VolumeReadOptions& options) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path, options.cancel));
  if (reader.header().volume_count() != 1) {
    return fail_file(path.native(), ErrorKind::invalid_argument, "{}: {} volumes; an OCT volume is one", path.native(),
                     reader.header().volume_count());
  }
  return reader;
}

// Shards no larger than what is made at a time: each is written once.
Result<zarr::ArrayMetadata> describe_boxes(const std::array<std::size_t, 3>& shape) {
  zarr::NewArray wanted;
  wanted.shape = {shape[0], shape[1], shape[2]};
  wanted.type = element_type_of<float>();
  wanted.dimension_names = {"z", "y", "x"};
  wanted.chunk_shape = {planes_at_a_time, chunk_rows, chunk_columns};
  wanted.shard_shape = {planes_at_a_time, rows_at_a_time, 1024};
  return zarr::describe_new_array(wanted);
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
        most_(output.ordered() ? 1 : std::max<std::size_t>(1, options.boxes_behind)) {}

  // Memory for the next box: of one that was written, where there is such a one.
  [[nodiscard]] BulkVector<float> take_buffer(std::size_t voxels) {
    BulkVector<float> buffer = std::exchange(spare_, {});
    buffer.reserve(largest_box_);
    buffer.resize(voxels);
    return buffer;
  }

  // Waits for the oldest box where as many are being written as may be. The failure may be that of an earlier box.
  [[nodiscard]] Status write(const PlaneBox& box, BulkVector<float> voxels) {
    if (boxes_.size() == most_) CGL_TRY(end_oldest());
    const auto write_box = [this, box](BulkVector<float> made) -> Result<BulkVector<float>> {
      const zarr::Region region{{box.first_plane, box.first_row, 0},
                                {box.planes, box.rows, array_.metadata().shape[2]}};
      const auto written =
          zarr::write_region(array_, output_, region, std::as_bytes(std::span(made)), {.cancel = cancel_});
      if (!written) return tl::make_unexpected(written.error());
      return made;
    };
    boxes_.push_back(std::async(std::launch::async, write_box, std::move(voxels)));
    return {};
  }

  [[nodiscard]] Status finish() {
    while (!boxes_.empty()) CGL_TRY(end_oldest());
    return {};
  }

 private:
  [[nodiscard]] Status end_oldest() {
    Result<BulkVector<float>> written = boxes_.front().get();
    boxes_.pop_front();
    CGL_TRY(written);
    spare_ = std::move(*written);
    return {};
  }

  zarr::Array array_;
  zarr::StoreOutput& output_;
  std::size_t largest_box_;
  CancelToken cancel_;
  std::size_t most_;
  BulkVector<float> spare_;
  std::deque<std::future<Result<BulkVector<float>>>> boxes_;  // the oldest first; ending waits for them
};

}  // namespace

std::uint64_t replace_non_finite(std::span<float> values) {
  // Nearly always there are none: counted first, by whole vectors.
  std::uint32_t some = 0;
  for (const float value : values) some |= numerics::is_finite(value) ? 0U : 1U;
  if (some == 0) return 0;
  std::uint64_t replaced = 0;
  for (float& value : values) {
    if (numerics::is_finite(value)) continue;
    value = 0.0f;
    ++replaced;
  }
  return replaced;
}

std::optional<std::uint64_t> free_host_memory() {
  std::ifstream facts("/proc/meminfo");
  std::string word;
  while (facts >> word) {
    if (word != "MemAvailable:") continue;
    std::uint64_t kib = 0;
    facts >> kib;
    return kib * 1024;
  }
  return std::nullopt;
}

Status check_host_memory(std::string_view doing, std::uint64_t needed_bytes) {
  const std::optional<std::uint64_t> available = free_host_memory();
  if (!available || needed_bytes <= *available) return {};  // a system that does not say is no obstacle
  return fail(ErrorKind::out_of_memory, "{}: {} of memory needed, {} free", doing, format_bytes(needed_bytes),
              format_bytes(*available));
}

Result<VolumeDescription> describe_volume(const fs::path& path, const VolumeReadOptions& options) {
  if (names_nifti_volume(path)) {
    CGL_TRY_ASSIGN(const NiftiReader reader, open_nifti_volume(path, options));
    return describe_nifti(reader.header());
  }
  CGL_TRY_ASSIGN(OpenVolume open, open_ome_volume(path, options));
  return std::move(open.description);
}

Result<VolumeFile> read_volume(const fs::path& path, const VolumeReadOptions& options) {
  return catch_out_of_memory([&]() -> Result<VolumeFile> {
    VolumeFile file;
    if (names_nifti_volume(path)) {
      CGL_TRY_ASSIGN(NiftiReader reader, open_nifti_volume(path, options));
      const VolumeDescription description = describe_nifti(reader.header());
      file.volume = HostVolume(description.shape[0], description.shape[1], description.shape[2]);
      file.voxel_um = description.voxel_um;
      CGL_TRY(reader.next_volume(std::span(file.volume.values)));
      file.replaced_values = replace_non_finite(file.volume.values);
      return file;
    }
    CGL_TRY_ASSIGN(OpenVolume open, open_ome_volume(path, options));
    const auto& shape = open.description.shape;
    const zarr::ArrayMetadata& metadata = open.array.metadata();
    CGL_TRY(check_host_memory(fmt::format("reading {}", path.native()), metadata.element_count() * 4));
    file.volume = HostVolume(shape[0], shape[1], shape[2]);
    file.voxel_um = open.description.voxel_um;
    file.attributes = std::move(open.description.attributes);
    const zarr::ReadOptions reading{.pool = options.pool, .cancel = options.cancel, .complete = options.complete};
    if (metadata.type == element_type_of<float>()) {
      const auto report = zarr::read_region(open.array, zarr::whole(metadata),
                                            std::as_writable_bytes(std::span(file.volume.values)), reading);
      if (!report) return tl::make_unexpected(report.error());
    } else {
      std::vector<std::byte> elements(file.volume.plane_size() * metadata.type.bytes());
      std::vector<double> numbers(file.volume.plane_size());
      for (std::size_t z = 0; z < file.volume.planes; ++z) {
        const auto report =
            zarr::read_region(open.array, {{z, 0, 0}, {1, shape[1], shape[2]}}, std::span(elements), reading);
        if (!report) return tl::make_unexpected(report.error());
        zarr::decode_numbers(metadata.type, elements, numbers);
        std::transform(numbers.begin(), numbers.end(), file.volume.plane(z).begin(),
                       [](double value) { return static_cast<float>(value); });
      }
    }
    file.replaced_values = replace_non_finite(file.volume.values);
    return file;
  });
}

Status write_volume(const HostVolume& volume, const VoxelSize& voxel_um, const Json& attributes,
                    zarr::StoreOutput& output, const VolumeWriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    zarr::NewArray wanted;
    wanted.shape = {volume.planes, volume.rows, volume.columns};
    wanted.type = element_type_of<float>();
    wanted.dimension_names = {"z", "y", "x"};
    CGL_TRY_ASSIGN(const zarr::ArrayMetadata finest, zarr::describe_new_array(wanted));
    const std::vector<zarr::Shape> shapes =
        zarr::pyramid_shapes(finest.shape, {true, true, true}, options.levels, finest.leaf_shape());
    zarr::OmeMultiscale multiscale;
    multiscale.name = options.name;
    const zarr::OmeLevel first = finest_level(voxel_um);
    std::vector<float> kept;  // of the level before
    std::span<const float> finer = volume.values;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      wanted.shape = shapes[k];
      CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(wanted));
      std::vector<float> made;
      std::span<const float> elements = finer;
      if (k > 0) {
        made.resize(metadata.element_count());
        const zarr::MemorySource source(shapes[k - 1], metadata.type, std::as_bytes(finer));
        const std::size_t plane = metadata.element_count() / shapes[k][0];
        FirstFailure failure;
        for_each_index(options.pool, shapes[k][0], [&](std::size_t z) {
          const zarr::Region box{{z, 0, 0}, {1, shapes[k][1], shapes[k][2]}};
          const auto place = std::as_writable_bytes(std::span(made).subspan(z * plane, plane));
          failure.note(z, zarr::downsample(source, shapes[k], zarr::Downsampling::mean, box, place));
        });
        CGL_TRY(failure.take());
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

Result<HostVolume> read_box(const fs::path& path, const PlaneBox& box, const VolumeReadOptions& options) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    CGL_TRY_ASSIGN(const OpenVolume open, open_ome_volume(path, options));
    return read_open_box(path, open, box, options);
  });
}

Result<HostVolume> read_planes(const fs::path& path, std::size_t first, std::size_t count,
                               const VolumeReadOptions& options) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    CGL_TRY_ASSIGN(const OpenVolume open, open_ome_volume(path, options));
    return read_open_box(path, open, {first, count, 0, open.description.shape[1]}, options);
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
    CGL_TRY(zarr::write_array_metadata("0", finest, *output));
    {
      const std::size_t largest_box =
          std::min(planes_at_a_time, shape[0]) * std::min(rows_at_a_time, shape[1]) * shape[2];
      BoxesBehind behind(zarr::Array::describe(nullptr, "0", finest), *output, largest_box, options);
      const auto make_box = [&](const PlaneBox& box) -> Status {
        CGL_TRY(options.cancel.check());
        const std::size_t plane = box.rows * shape[2];
        BulkVector<float> made = behind.take_buffer(box.planes * plane);
        CGL_TRY(make(box, made));
        if (finer) CGL_TRY(keep_box(*finer, box, made, options.pool));
        return behind.write(box, std::move(made));
      };
      for (std::size_t first = 0; first < shape[0]; first += planes_at_a_time) {
        const std::size_t planes = std::min(planes_at_a_time, shape[0] - first);
        for (std::size_t row = 0; row < shape[1]; row += rows_at_a_time) {
          CGL_TRY(make_box({first, planes, row, std::min(rows_at_a_time, shape[1] - row)}));
        }
      }
      CGL_TRY(behind.finish());
    }
    zarr::OmeMultiscale multiscale;
    multiscale.name = options.name == "oct" ? path.stem().stem().native() : options.name;
    const zarr::OmeLevel first = finest_level(voxel_um);
    multiscale.levels.push_back(first);
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      zarr::NewArray coarser;
      coarser.shape = shapes[k];
      coarser.type = finest.type;
      coarser.dimension_names = {"z", "y", "x"};
      CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(coarser));
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
    multiscale.name = options.name == "oct" ? path.stem().stem().native() : options.name;
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
  if (described.name == "oct") described.name = path.stem().stem().native();
  CGL_TRY(add_file_context(write_volume(volume, voxel_um, attributes, *output, described), "writing", path.native()));
  return output->commit();
}

}  // namespace cingulum::oct
