#include "oct/volume/volume_file.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "base/argument_name.hpp"
#include "base/quantity.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "numerics/classify.hpp"
#include "zarr/array.hpp"
#include "zarr/element_numbers.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/ome_units.hpp"
#include "zarr/ome_zarr.hpp"

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

}  // namespace cingulum::oct
