#include "tract/field/file_field.hpp"

#include <algorithm>
#include <array>

#include "base/bulk_memory.hpp"
#include "base/json_view.hpp"
#include "base/log.hpp"
#include "base/shared_pieces.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/models/tensor_kernel.hpp"
#include "formats/shared_image_reading.hpp"
#include "formats/sidecar.hpp"
#include "numerics/classify.hpp"
#include "numerics/elementary64.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using numerics::HarmonicConvention;

Result<HarmonicConvention> convention_of(const std::string& name) {
  if (name == "tournier07") return HarmonicConvention::tournier07;
  if (name == "descoteaux07") return HarmonicConvention::descoteaux07;
  if (name == "descoteaux07-legacy" || name == "descoteaux07_legacy") return HarmonicConvention::descoteaux07_legacy;
  return fail_argument("sh_basis", "SH basis '{}': accepted is tournier07, descoteaux07 or descoteaux07-legacy", name);
}

Result<DirectionFrame> frame_of(const std::string& name) {
  if (name == "image") return DirectionFrame::image;
  if (name == "world") return DirectionFrame::world;
  return fail_argument("frame", "frame '{}': accepted is image or world", name);
}

// Degree and kind of a series with this many coefficients. Up to the largest degree no number but 1, where both are
// the same constant, is that of an even and of a full basis: the count alone tells them apart.
Status find_series(FieldFile& file) {
  for (const bool full : {false, true}) {
    for (int degree = 0; degree <= numerics::largest_harmonic_degree; degree += full ? 1 : 2) {
      if (numerics::coefficient_count(degree, full) != file.image.volumes) continue;
      file.degree = degree;
      file.full_basis = full;
      return {};
    }
  }
  return fail_file(file.request.path.string(), ErrorKind::invalid_argument,
                   "reading {}: {} volumes are spherical harmonics neither of even degrees (1, 6, 15, 28, 45, 66, 91) "
                   "nor of all degrees (4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169)",
                   file.request.path.string(), file.image.volumes);
}

// Neighbours in the image that a thread takes at a time: of each volume a piece that is read as it lies.
constexpr std::size_t voxels_in_row = 2048;

// Numbers of the voxels that are stored, voxel by voxel.
struct Gathered {
  std::vector<std::uint32_t> voxels;
  MappedVector<float> values;
};

Gathered gather(const VolumeArray& numbers, std::span<const std::uint8_t> mask, std::span<const float> stop_map,
                ThreadPool& pool) {
  const std::size_t count = numbers.voxels();
  const std::size_t volumes = numbers.volumes();
  std::vector<std::uint8_t> stored(count);
  share_pieces(&pool, count, voxels_in_row, [&](std::size_t begin, std::size_t end) {
    std::array<float, voxels_in_row> row;
    for (std::size_t v = begin; v < end; ++v) stored[v] = stop_map[v] != 0.0f ? 1 : 0;
    for (std::size_t i = 0; i < volumes; ++i) {
      numbers.read(i, begin, std::span(row).first(end - begin));
      for (std::size_t v = begin; v < end; ++v) stored[v] = row[v - begin] != 0.0f ? 1 : stored[v];
    }
    for (std::size_t v = begin; v < end && !mask.empty(); ++v) stored[v] = mask[v] == 0 ? 0 : stored[v];
  });
  Gathered gathered;
  for (std::size_t v = 0; v < count; ++v) {
    if (stored[v] != 0) gathered.voxels.push_back(static_cast<std::uint32_t>(v));
  }
  gathered.values.resize(gathered.voxels.size() * volumes);
  // Records that stay in a core's cache while all volumes pass.
  constexpr std::size_t voxels_at_once = 128;
  pool.parallel_for(gathered.voxels.size(), voxels_at_once, [&](std::size_t begin, std::size_t end) {
    numbers.read_records(std::span(gathered.voxels).subspan(begin, end - begin),
                         std::span(gathered.values).subspan(begin * volumes, (end - begin) * volumes));
  });
  return gathered;
}

bool axes_are_those_of_the_world(const ImageGeometry& geometry) {
  const auto edges = geometry.voxel_mm();
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      const double cosine = geometry.voxel_to_world.at(row, column) / edges[static_cast<std::size_t>(column)];
      if (!(numerics::absolute(cosine - (row == column ? 1.0 : 0.0)) < 1e-6)) return false;
    }
  }
  return true;
}

// Non-finite numbers are counted and replaced by the builders; sampling comes before them.
void make_finite(std::span<float> values) {
  for (float& value : values) {
    if (!numerics::is_finite(value)) value = 0.0f;
  }
}

}  // namespace

Result<FieldFile> read_field_file(const FieldFileRequest& request, ThreadPool* pool) {
  CGL_TRY_ASSIGN(SharedImageReader reader, SharedImageReader::open(request.path, pool));
  CGL_TRY_ASSIGN(Image image, reader.read_all());
  Json sidecar = Json::object();
  if (std::filesystem::exists(sidecar_path(request.path))) {
    if (auto found = read_sidecar(request.path)) {
      sidecar = std::move(*found);
    } else {
      log_warning("{}", found.error());
    }
  }
  CGL_TRY_ASSIGN(FieldFile file, take_field_image(std::move(image), request, sidecar));
  file.oriented = reader.header().affine_source != AffineSource::pixdim;
  return file;
}

namespace {

// What the numbers of file.image or file.array mean.
Result<FieldFile> settle_meaning(FieldFile file, const FieldFileRequest& request, const Json& sidecar) {
  file.request = request;
  const auto text_of = [](const JsonView& json, const char* name) { return json[name].text_or(""); };
  const JsonView said(sidecar), harmonics = said["spherical_harmonics"];
  const auto choose = [](const std::optional<std::string>& given, std::initializer_list<std::string> others) {
    if (given) return *given;
    for (const std::string& other : others) {
      if (!other.empty()) return other;
    }
    return std::string();
  };
  if (request.kind == FieldFileKind::harmonics) CGL_TRY(find_series(file));
  // MRtrix3 has no odd degrees: they come from DIPY or scilpy, whose default basis this is.
  file.basis = choose(request.basis, {text_of(harmonics, "basis"), text_of(said, "sh_basis"),
                                      file.full_basis ? "descoteaux07-legacy" : "tournier07"});
  file.tensor_order = choose(request.tensor_order, {text_of(said, "tensor_order"), "mrtrix"});
  // MRtrix3 writes directions in world axes, DIPY and FSL in image axes.
  const bool mrtrix_like = request.kind == FieldFileKind::harmonics ? file.basis == "tournier07" && !file.full_basis
                           : request.kind == FieldFileKind::tensor  ? file.tensor_order == "mrtrix"
                                                                    : false;
  file.frame = choose(request.frame, {text_of(harmonics, "frame"), text_of(said, "frame")});
  if (file.frame.empty() && request.kind == FieldFileKind::peaks && !axes_are_those_of_the_world(file.image.geometry)) {
    if (!request.frame_of_silent_peaks) {
      return fail_argument("frame",
                           "{} {}: the axes of this image are not those of the world, and nothing says in which its "
                           "peaks are; give {} image (DIPY, FSL) or {} world (MRtrix3)",
                           argument_name("peaks"), request.path.string(), argument_name("frame"),
                           argument_name("frame"));
    }
    file.frame = *request.frame_of_silent_peaks;
  }
  if (file.frame.empty()) file.frame = mrtrix_like ? "world" : "image";

  const auto volumes = file.image.volumes;
  if (request.kind == FieldFileKind::peaks && (volumes < 3 || volumes % 3 != 0)) {
    return fail_file(request.path.string(), ErrorKind::invalid_argument,
                     "reading {}: {} volumes are not peaks, which have three each", request.path.string(), volumes);
  }
  if (request.kind == FieldFileKind::tensor && volumes != 6) {
    return fail_file(request.path.string(), ErrorKind::invalid_argument,
                     "reading {}: {} volumes are not tensors, which have six numbers", request.path.string(), volumes);
  }
  return file;
}

}  // namespace

Result<FieldFile> take_field_image(Image image, const FieldFileRequest& request, const Json& sidecar) {
  FieldFile file;
  file.image = std::move(image);
  return settle_meaning(std::move(file), request, sidecar);
}

Result<FieldFile> take_field_array(const ImageGeometry& geometry, const VolumeArray& array,
                                   const FieldFileRequest& request, const Json& sidecar) {
  FieldFile file;
  file.image.geometry = geometry;
  file.image.volumes = static_cast<std::int64_t>(array.volumes());
  file.array = array;
  return settle_meaning(std::move(file), request, sidecar);
}

Result<SampledHarmonics> harmonics_of_file(const FieldFile& file, const Sphere& sphere) {
  SampledHarmonics sampled;
  CGL_TRY_ASSIGN(sampled.basis.convention, convention_of(file.basis));
  sampled.basis.degree = file.degree;
  sampled.basis.full = file.full_basis;
  CGL_TRY_ASSIGN(const DirectionFrame frame, frame_of(file.frame));
  sampled.directions = sphere.directions;
  if (frame == DirectionFrame::image) return sampled;
  const ImageGeometry& geometry = file.image.geometry;
  const auto edges = geometry.voxel_mm();
  for (numerics::Vec3d& d : sampled.directions) {
    d = normalise(geometry.voxel_to_world.rotate({d.x / edges[0], d.y / edges[1], d.z / edges[2]}));
  }
  return sampled;
}

Result<std::vector<float>> default_stop_map(const FieldFile& file, ThreadPool* pool) {
  const auto count = static_cast<std::size_t>(file.image.geometry.voxel_count());
  std::vector<float> map(count, 0.0f);
  const VolumeArray numbers = file.numbers();
  if (file.request.kind != FieldFileKind::tensor) {
    share_pieces(pool, count, voxels_in_row, [&](std::size_t begin, std::size_t end) {
      std::array<float, voxels_in_row> row;
      for (std::size_t i = 0; i < numbers.volumes(); ++i) {
        numbers.read(i, begin, std::span(row).first(end - begin));
        for (std::size_t v = begin; v < end; ++v) {
          if (row[v - begin] != 0.0f && numerics::is_finite(row[v - begin])) map[v] = 1.0f;
        }
      }
    });
    return map;
  }
  CGL_TRY_ASSIGN(const TensorOrder order, parse_tensor_order(file.tensor_order));
  for (std::size_t v = 0; v < count; ++v) {
    std::array<float, 6> tensor{};
    bool some = false;
    for (std::size_t i = 0; i < 6; ++i) {
      float value = 0.0f;
      numbers.read(i, v, {&value, 1});
      tensor[i] = numerics::is_finite(value) ? value : 0.0f;
      some = some || tensor[i] != 0.0f;
    }
    if (!some) continue;
    convert_tensors(tensor, order, TensorOrder::mrtrix);
    double matrix[6];
    for (std::size_t i = 0; i < 6; ++i) matrix[i] = tensor[i];
    double values[3];
    double vectors[9];
    symmetric_eigen(matrix, values, vectors);
    // Diffusivities are not negative; the fits raise those that are.
    for (double& value : values) value = value > 0 ? value : 0;
    if (values[0] > 0) map[v] = static_cast<float>(fractional_anisotropy(values));
  }
  return map;
}

Result<PreparedField> make_file_field(const FieldFile& file, std::span<const float> stop_map,
                                      std::span<const std::uint8_t> mask, Sphere sphere, ThreadPool& pool) {
  return catch_out_of_memory([&]() -> Result<PreparedField> {
    PreparedField prepared;
    const ImageGeometry& geometry = file.image.geometry;
    Gathered gathered = gather(file.numbers(), mask, stop_map, pool);
    if (gathered.voxels.empty()) {
      return fail(ErrorKind::invalid_argument, "{}: no voxel of the mask has a number that is not zero",
                  file.request.path.string());
    }
    const auto volumes = static_cast<std::size_t>(file.image.volumes);
    const VoxelRecords records = {gathered.voxels, volumes, gathered.values};
    Json& facts = prepared.facts;
    facts["stored_voxels"] = gathered.voxels.size();
    switch (file.request.kind) {
      case FieldFileKind::amplitudes: {
        if (sphere.size() != volumes) {
          return fail_argument(
              "sf", "{} {} has {} volumes, the sphere '{}' {} directions; name the sphere of the file with {}",
              argument_name("sf"), file.request.path.string(), volumes, sphere.name, sphere.size(),
              argument_name("sphere"));
        }
        if (file.frame != "image" && !axes_are_those_of_the_world(geometry)) {
          return fail_argument(
              "sf",
              "{} {}: its directions are in world axes, amplitudes are tracked in image axes; fit with {} "
              "image, or give the harmonics by {}",
              argument_name("sf"), file.request.path.string(), argument_name("frame"), argument_name("sh"));
        }
        facts["model"] = "sf";
        CGL_TRY_ASSIGN(prepared.field, make_amplitude_field(geometry, stop_map, records, std::move(sphere), &pool));
        return prepared;
      }
      case FieldFileKind::harmonics: {
        CGL_TRY_ASSIGN(const DirectionFrame frame, frame_of(file.frame));
        CGL_TRY_ASSIGN(const SampledHarmonics sampled, harmonics_of_file(file, sphere));
        facts["model"] = "sh";
        facts["basis"] = file.basis;
        facts["full_basis"] = file.full_basis;
        facts["frame"] = file.frame;
        facts["degree"] = file.degree;
        if (file.full_basis && sphere.is_hemisphere) {
          return fail_argument("sphere",
                               "{} {} has odd degrees, which tell a direction from its opposite: it is sampled on a "
                               "whole sphere, and '{}' is a half",
                               argument_name("sh"), file.request.path.string(), sphere.name);
        }
        if (!file.request.amplitudes && !file.full_basis) {
          CGL_TRY_ASSIGN(prepared.field, make_harmonic_field(geometry, stop_map, records, sampled.basis, frame,
                                                             std::move(sphere), &pool));
          return prepared;
        }
        make_finite(gathered.values);
        CGL_TRY_ASSIGN(const auto amplitudes,
                       sample_harmonics(sampled.basis, gathered.values, sampled.directions, true, pool));
        const std::size_t count = sphere.size();
        CGL_TRY_ASSIGN(prepared.field, make_amplitude_field(geometry, stop_map, {gathered.voxels, count, amplitudes},
                                                            std::move(sphere), &pool));
        return prepared;
      }
      case FieldFileKind::peaks: {
        CGL_TRY_ASSIGN(const DirectionFrame frame, frame_of(file.frame));
        facts["model"] = "peaks";
        facts["frame"] = file.frame;
        facts["peaks"] = volumes / 3;
        keep_peaks(gathered.values, volumes / 3, file.request.peaks);
        CGL_TRY_ASSIGN(prepared.field, make_peak_field(geometry, stop_map, records, frame));
        return prepared;
      }
      case FieldFileKind::tensor: {
        CGL_TRY_ASSIGN(const DirectionFrame frame, frame_of(file.frame));
        CGL_TRY_ASSIGN(const TensorOrder order, parse_tensor_order(file.tensor_order));
        facts["model"] = "tensor";
        facts["frame"] = file.frame;
        facts["tensor_order"] = file.tensor_order;
        CGL_TRY_ASSIGN(prepared.field, make_tensor_field(geometry, stop_map, records, order, frame));
        return prepared;
      }
    }
    return prepared;
  });
}

Result<TrackingData> make_file_tracking_data(const FieldFile& file, std::vector<std::uint8_t> mask,
                                             std::vector<float> stop_map, Sphere sphere, ThreadPool& pool) {
  TrackingData data;
  data.geometry = file.image.geometry;
  const auto voxels = static_cast<std::size_t>(data.geometry.voxel_count());
  data.mask = std::move(mask);
  if (data.mask.empty()) data.mask.assign(voxels, 1);
  data.stop_map = std::move(stop_map);
  if (data.stop_map.empty()) {
    CGL_TRY_ASSIGN(data.stop_map, default_stop_map(file, &pool));
  }
  if (data.mask.size() != voxels || data.stop_map.size() != voxels) {
    return fail(ErrorKind::invalid_argument, "{} has {} voxels, its mask {} and its stopping map {}",
                file.request.path.string(), voxels, data.mask.size(), data.stop_map.size());
  }
  stop_outside(data.stop_map, data.mask);
  CGL_TRY_ASSIGN(data.prepared, make_file_field(file, data.stop_map, data.mask, std::move(sphere), pool));
  return data;
}

}  // namespace cingulum
