#include "zarr/nifti_image.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "base/json_view.hpp"
#include "formats/sidecar.hpp"
#include "zarr/element_numbers.hpp"
#include "zarr/element_source.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/metadata_field.hpp"
#include "zarr/nifti_attributes.hpp"
#include "zarr/ome_units.hpp"
#include "zarr/pyramid.hpp"
#include "zarr/row_major.hpp"
#include "zarr/value_window.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::size_t slab_bytes = std::size_t{64} << 20U;  // of numbers on the way to NIfTI
constexpr double exact_integers = 0x1p53;

bool is_scaled(const NiftiHeader& header) {
  return header.slope != 1 || header.intercept != 0;
}

// Numbers that OME-Zarr's readers see: scaled ones are stored as they are meant. float32 where the stored integers come
// back from it.
ElementType array_type_of(const NiftiHeader& header) {
  if (!is_scaled(header)) return header.type;
  const bool narrow = header.type.code == ElementType::Code::floating ? header.type.bits <= 32 : header.type.bits <= 16;
  const bool recovered = std::abs(header.intercept / header.slope) < 0x1p20;
  return narrow && recovered ? element_type_of<float>() : element_type_of<double>();
}

bool is_wide_integer(ElementType type) {
  return type.bits == 64 && type.code != ElementType::Code::floating;
}

// Integers of 64 bits pass through float64.
Status check_exact(std::span<const double> values, ElementType type, const std::string& name) {
  if (!is_wide_integer(type)) return {};
  for (const double value : values) {
    if (std::abs(value) < exact_integers) continue;
    return fail_file(name, ErrorKind::unavailable,
                     "{} holds {} of {:.17g}: whole numbers from 2^53 on cannot be kept exactly", name, type.name(),
                     value);
  }
  return {};
}

bool is_diagonal(const Affine& affine) {
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) {
      if (r == c ? !(affine.at(r, c) > 0) : affine.at(r, c) != 0) return false;
    }
  }
  return true;
}

// Fourth and further axes of the image as one dimension before (z, y, x), and what it is.
struct FurtherAxis {
  std::uint64_t extent = 1;
  OmeAxis axis;
  double step = 1;
};
Result<std::optional<FurtherAxis>> further_axis_of(const NiftiHeader& header) {
  const std::vector<std::int64_t>& shape = header.shape;
  std::optional<FurtherAxis> found;
  for (std::size_t d = 3; d < shape.size(); ++d) {
    const bool counts = shape[d] > 1 || d == 3;
    if (!counts) continue;
    if (found && found->extent > 1) {
      return fail(ErrorKind::unavailable,
                  "an image of {}: OME-Zarr has time before channels, NIfTI the other way round; images with one axis "
                  "behind the third are converted",
                  fmt::format("{}", fmt::join(shape, " x ")));
    }
    found = FurtherAxis{static_cast<std::uint64_t>(shape[d]), {"t", "time", ""}, 1};
    if (d > 3) found->axis = {"c", "channel", ""};
  }
  if (found && found->axis.type == "time") {
    const double step = header.pixdim.size() > 4 ? header.pixdim[4] : 1;
    if (std::isfinite(step) && step > 0) found->step = step;
    if (header.time_unit == "s") found->axis.unit = "second";
    if (header.time_unit == "ms") found->axis.unit = "millisecond";
    if (header.time_unit == "us") found->axis.unit = "microsecond";
  }
  return found;
}

OmeImage image_of(const NiftiHeader& header, const std::string& name, const std::optional<FurtherAxis>& further) {
  OmeMultiscale multiscale;
  multiscale.name = name;
  const auto voxel = header.geometry.voxel_mm();
  const Affine& affine = header.geometry.voxel_to_world;
  OmeLevel level{.path = "0", .scale = {}, .translation = {}};
  if (further) {
    multiscale.axes.push_back(further->axis);
    level.scale.push_back(further->step);
    level.translation.push_back(0);
  }
  constexpr std::array<const char*, 3> names = {"x", "y", "z"};
  for (int d = 2; d >= 0; --d) {
    multiscale.axes.push_back({names[static_cast<std::size_t>(d)], "space", "millimeter"});
    level.scale.push_back(voxel[static_cast<std::size_t>(d)]);
    level.translation.push_back(is_diagonal(affine) ? affine.at(d, 3) : 0.0);
  }
  multiscale.levels = {std::move(level)};
  OmeImage image;
  image.multiscales = {std::move(multiscale)};
  Json kept = {{"shape", header.shape},
               {"affine", affine_json(affine)},
               {"type", header.type.name()},
               {"slope", header.slope},
               {"intercept", header.intercept}};
  if (header.intent_code != 0) kept["intent"] = {{"code", header.intent_code}, {"name", header.intent_name}};
  if (!header.description.empty()) kept["description"] = header.description;
  image.others["cingulum"] = {{"command", "convert"}, {"nifti", std::move(kept)}};
  return image;
}

// A volume of each level, made of the one before it.
class VolumeLevels {
 public:
  VolumeLevels(const NiftiImagePlan& plan, const NiftiConversionOptions& options) : plan_(plan), options_(options) {
    for (const ArrayMetadata& level : plan.levels) {
      const std::span<const std::uint64_t> shape(level.shape);
      shapes_.emplace_back(shape.end() - 3, shape.end());
      volumes_.emplace_back(elements_of(shapes_.back()) * level.type.bytes());
    }
  }
  [[nodiscard]] std::span<std::byte> finest() { return volumes_.front(); }

  Status write(std::uint64_t number, StoreOutput& output) {
    for (std::size_t k = 0; k < volumes_.size(); ++k) {
      if (k > 0) CGL_TRY(make(k));
      const ArrayMetadata& metadata = plan_.levels[k];
      Region region = whole(metadata);
      if (metadata.rank() > 3) {
        region.origin[0] = number;
        region.shape[0] = 1;
      }
      const auto written = write_region(Array::describe(nullptr, std::to_string(k), metadata), output, region,
                                        volumes_[k], {.pool = options_.pool, .cancel = options_.run.cancel});
      if (!written) return tl::make_unexpected(written.error());
    }
    return {};
  }

 private:
  Status make(std::size_t k) {
    const MemorySource finer(shapes_[k - 1], plan_.levels[k].type, volumes_[k - 1]);
    const std::size_t plane_bytes = volumes_[k].size() / shapes_[k][0];
    FirstFailure failure;
    const auto planes = [&](std::size_t begin, std::size_t end) {
      Region slab{Shape(3), shapes_[k]};
      slab.origin[0] = begin;
      slab.shape[0] = end - begin;
      const auto place = std::span(volumes_[k]).subspan(begin * plane_bytes, (end - begin) * plane_bytes);
      failure.note(begin,
                   catch_out_of_memory([&] { return downsample(finer, shapes_[k], Downsampling::mean, slab, place); }));
    };
    if (options_.pool != nullptr) {
      options_.pool->parallel_for(shapes_[k][0], 4, planes);
    } else {
      planes(0, shapes_[k][0]);
    }
    return failure.take();
  }

  const NiftiImagePlan& plan_;
  const NiftiConversionOptions& options_;
  std::vector<Shape> shapes_;  // (z, y, x)
  std::vector<BulkVector<std::byte>> volumes_;
};

// All volumes of a file, as elements of the array.
template <class Take>
Status for_each_volume(const std::filesystem::path& path, ElementType type, const NiftiConversionOptions& options,
                       std::span<std::byte> place, Take&& take) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path, options.run.cancel));
  std::vector<double> values(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
  for (std::int64_t volume = 0; volume < reader.header().volume_count(); ++volume) {
    CGL_TRY(options.run.cancel.check());
    CGL_TRY(reader.next_volume(std::span(values)));
    CGL_TRY(check_exact(values, reader.header().type, path.native()));
    encode_numbers(type, values, place);
    CGL_TRY(take(static_cast<std::uint64_t>(volume)));
  }
  return {};
}

// Where the voxels of an image lie by scale, translation and units alone.
Result<Affine> affine_by_scale(const OmeMultiscale& multiscale, const OmeLevel& level, std::size_t first_space,
                               std::vector<std::string>& notes) {
  CGL_TRY_ASSIGN(const AxisMillimetres mm, axes_in_mm(multiscale.axes, level.scale));
  if (mm.guessed) {
    notes.push_back(fmt::format("an axis has no unit; {} are taken for it",
                                mm.factors.back() == 1 ? "millimetres" : "micrometres"));
  }
  Affine affine;
  affine.rows = {};
  constexpr std::array<std::string_view, 3> world = {"x", "y", "z"};
  const std::size_t rank = multiscale.axes.size();
  std::array<bool, 3> taken{};
  for (std::size_t d = first_space; d < rank; ++d) {
    // Index i is the last dimension. Its direction in the world is that of its name, where the names are x, y and z.
    const std::size_t column = rank - 1 - d;
    std::size_t row = column;
    for (std::size_t w = 0; w < 3; ++w) {
      if (multiscale.axes[d].name == world[w]) row = w;
    }
    if (taken[row]) {
      return fail(ErrorKind::unavailable, "axes named {}: which of them are x, y and z in the world is not known",
                  multiscale.axes[d].name);
    }
    taken[row] = true;
    affine.at(static_cast<int>(row), static_cast<int>(column)) = level.scale[d] * mm.factors[d];
    affine.at(static_cast<int>(row), 3) = level.translation[d] * mm.factors[d];
  }
  for (std::size_t d = rank - first_space; d < 3; ++d) {
    for (std::size_t row = 0; row < 3; ++row) {
      if (taken[row]) continue;
      taken[row] = true;
      affine.at(static_cast<int>(row), static_cast<int>(d)) = 1;
      break;
    }
  }
  return affine;
}

// What was kept of a header, where it belongs to this image: its affine has the voxels of the level.
void take_kept_header(const Json& kept, const OmeLevel& level, std::size_t first_space, ImageForNifti& image) {
  const Json* rows = member_of(kept, "affine");
  const std::optional<Affine> affine = rows != nullptr ? affine_of(*rows) : std::nullopt;
  if (!affine) return;
  ImageGeometry geometry = image.geometry;
  geometry.voxel_to_world = *affine;
  const auto voxel = geometry.voxel_mm();
  const std::size_t rank = level.scale.size();
  for (std::size_t d = first_space; d < rank; ++d) {
    if (image.axes[d].unit == "millimeter" &&
        std::abs(level.scale[d] - voxel[rank - 1 - d]) <= 1e-6 * voxel[rank - 1 - d])
      continue;
    image.notes.emplace_back("the affine that was kept has voxels of another size; scale and translation are taken");
    return;
  }
  image.geometry = geometry;
  image.by_affine = true;
  const JsonView said(kept);
  const double slope = said["slope"].number().value_or(1);
  const std::string* const type = said["type"].text();
  if (type != nullptr && slope != 0) {
    const auto parsed = parse_v3_type(*type);
    if (parsed) {
      image.type = *parsed;
      image.slope = slope;
      image.intercept = said["intercept"].number().value_or(0);
    }
  }
  const JsonView intent = said["intent"];
  if (const Json& code = intent["code"].json(); code.is_number_integer()) image.intent_code = code.get<int>();
  if (const std::string* const name = intent["name"].text()) image.intent_name = *name;
  if (const std::string* const text = said["description"].text()) image.description = *text;
}

}  // namespace

std::uint64_t NiftiImagePlan::needed_bytes() const {
  std::uint64_t bytes = 0;
  for (const ArrayMetadata& level : levels) {
    const std::uint64_t known = known_stored_bytes(level);
    if (known == 0 && level.element_count() > 0) return 0;
    bytes += known;
  }
  return bytes;
}

Result<NiftiImagePlan> plan_nifti_image(const NiftiHeader& header, const std::string& name, const CopyLayout& layout,
                                        const PyramidChoice& pyramid) {
  NiftiImagePlan plan;
  plan.format = layout.format;
  CGL_TRY_ASSIGN(const std::optional<FurtherAxis> further, further_axis_of(header));
  OmeImage image = image_of(header, name, further);
  OmeMultiscale& multiscale = image.multiscales.front();
  const auto& size = header.geometry.size;
  NewArray volume;
  volume.format = layout.format;
  volume.sharded = layout.sharded && layout.format == 3;
  volume.codec = layout.codec;
  volume.type = array_type_of(header);
  volume.shape = {static_cast<std::uint64_t>(size[2]), static_cast<std::uint64_t>(size[1]),
                  static_cast<std::uint64_t>(size[0])};
  const Shape finest = volume.shape;
  CGL_TRY_ASSIGN(const ArrayMetadata chosen, describe_new_array(volume));
  const std::vector<Shape> shapes = pyramid_shapes(finest, {true, true, true}, pyramid.levels, chosen.leaf_shape());
  const OmeLevel first = multiscale.levels.front();
  const auto with_volumes = [&](Shape shape, std::uint64_t extent) {
    if (further) shape.insert(shape.begin(), extent);
    return shape;
  };
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    NewArray level = volume;
    level.shape = shapes[k];
    CGL_TRY_ASSIGN(const ArrayMetadata cut, describe_new_array(level));
    // Volumes come one after the other: none shares a chunk with the next.
    level.chunk_shape = with_volumes(cut.leaf_shape(), 1);
    level.shard_shape = with_volumes(cut.chunk_shape, 1);
    level.shape = with_volumes(shapes[k], further ? further->extent : 1);
    for (const OmeAxis& axis : multiscale.axes) level.dimension_names.push_back(axis.name);
    if (layout.format == 2) level.dimension_names.clear();
    CGL_TRY_ASSIGN(ArrayMetadata metadata, describe_new_array(level));
    if (k > 0) {
      multiscale.levels.push_back(level_of_size(first, plan.levels.front().shape, metadata.shape, std::to_string(k)));
    }
    plan.levels.push_back(std::move(metadata));
  }
  if (shapes.size() > 1) {
    multiscale.type = "mean";
    multiscale.metadata = {{"method", "cingulum"}, {"description", "mean of what an element covers"}};
  }
  if (!is_diagonal(header.geometry.voxel_to_world)) {
    plan.notes.emplace_back(
        "the affine turns or mirrors axes, which OME-Zarr does not say: it is kept in an attribute of the group, and "
        "other programs see the voxel size alone");
  }
  CGL_TRY_ASSIGN(const Json attributes,
                 ome_attributes(image, layout.format == 2 ? OmeVersion::v0_4 : OmeVersion::v0_5, name));
  plan.attributes = attributes.dump();
  return plan;
}

Status write_nifti_image(const std::filesystem::path& nifti, const NiftiImagePlan& plan, StoreOutput& output,
                         const NiftiConversionOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    const ArrayMetadata& finest = plan.levels.front();
    const std::uint64_t volumes = finest.rank() > 3 ? finest.shape[0] : 1;
    for (std::size_t k = 0; k < plan.levels.size(); ++k) {
      CGL_TRY(write_array_metadata(std::to_string(k), plan.levels[k], output));
    }
    ValueWindowSearch search(finest.type);
    const auto count_volume = [&](std::span<const std::byte> volume) {
      ValueWindowSearch::Counts counts = search.no_counts();
      search.count(volume, counts);
      search.add(counts);
    };
    VolumeLevels levels(plan, options);
    {
      Progress progress("converting", volumes, "volumes", options.run.progress);
      const auto write_volume = [&](std::uint64_t volume) -> Status {
        count_volume(levels.finest());
        CGL_TRY(levels.write(volume, output));
        progress.advance();
        return {};
      };
      CGL_TRY(for_each_volume(nifti, finest.type, options, levels.finest(), write_volume));
      progress.finish();
    }
    while (search.end_pass()) {
      CGL_TRY(for_each_volume(nifti, finest.type, options, levels.finest(), [&](std::uint64_t) -> Status {
        count_volume(levels.finest());
        return {};
      }));
    }
    CGL_TRY_ASSIGN(Json attributes, parse_json(plan.attributes));
    if (const std::optional<ValueWindow> window = search.found()) {
      OmeChannel channel{.label = "intensity", .color = "FFFFFF"};
      channel.window = OmeWindow{window->smallest, window->largest, window->low, window->high};
      (plan.format == 2 ? attributes : attributes["ome"])["omero"] = make_omero(std::span(&channel, 1));
    }
    return write_group("", plan.format, attributes, output);
  });
}

Result<ImageForNifti> open_for_nifti(const std::shared_ptr<const Store>& store, const std::string& group) {
  const std::string name = node_name(*store, group);
  CGL_TRY_ASSIGN(const Node node, open_node(*store, group));
  if (node.kind == NodeKind::array) {
    return fail(ErrorKind::invalid_argument,
                "{}: a bare array has no voxel size; make an image of it first: cingulum zarr copy", name);
  }
  CGL_TRY_ASSIGN(const Json attributes, parse_json(node.attributes));
  CGL_TRY_ASSIGN(std::optional<OmeImage> found, parse_ome_image(attributes, name));
  if (!found) return fail(ErrorKind::invalid_argument, "{}: it is a group without an OME-Zarr image", name);
  ImageForNifti image;
  for (const std::string& note : found->notes) image.notes.push_back(note);
  const OmeMultiscale& multiscale = found->multiscales.front();
  const OmeLevel& level = multiscale.levels.front();
  OmeMultiscale finest = multiscale;
  finest.levels.resize(1);
  CGL_TRY_ASSIGN(image.array, open_levels(store, group, finest));
  const ArrayMetadata& metadata = image.array.front().metadata();
  image.axes = multiscale.axes;
  if (!level.affine.empty()) {
    return fail(ErrorKind::unavailable, "{}: an affine of OME-Zarr 0.6 that turns or shears is not converted", name);
  }
  if (metadata.type.code == ElementType::Code::complex) {
    return fail(ErrorKind::unavailable, "{}: {} is not written to NIfTI", name, metadata.type.name());
  }
  const std::size_t rank = metadata.rank();
  std::size_t first_space = 0;
  while (!image.axes[first_space].is_space()) ++first_space;
  for (std::size_t d = first_space; d < rank; ++d) {
    image.geometry.size[rank - 1 - d] = static_cast<std::int64_t>(metadata.shape[d]);
  }
  // NIfTI has time before others, the slowest last.
  for (std::size_t d = 0; d < first_space; ++d) {
    image.further_axes.push_back(static_cast<std::int64_t>(metadata.shape[d]));
  }
  if (first_space == 1 && image.axes[0].type == "channel") image.further_axes.insert(image.further_axes.begin(), 1);
  CGL_TRY_ASSIGN(image.geometry.voxel_to_world,
                 add_context(affine_by_scale(multiscale, level, first_space, image.notes), "{}", name));
  image.type = metadata.type;
  if (metadata.type.code == ElementType::Code::boolean) image.type = element_type_of<std::uint8_t>();
  if (metadata.type == ElementType{ElementType::Code::floating, 16}) image.type = element_type_of<float>();
  if (const Json* kept = kept_nifti_header(found->others)) take_kept_header(*kept, level, first_space, image);
  return image;
}

Result<ReadReport> write_as_nifti(const ImageForNifti& image, NiftiWriter& writer, bool complete,
                                  const NiftiConversionOptions& options) {
  return catch_out_of_memory([&]() -> Result<ReadReport> {
    ReadReport report;
    const Array& array = image.array.front();
    const ArrayMetadata& metadata = array.metadata();
    const std::size_t rank = metadata.rank();
    const std::size_t space = static_cast<std::size_t>(
        std::count_if(image.axes.begin(), image.axes.end(), [](const OmeAxis& axis) { return axis.is_space(); }));
    const std::size_t first_space = rank - space;
    const std::uint64_t planes = metadata.shape[first_space];
    const std::uint64_t plane = elements_of(std::span(metadata.shape).subspan(first_space + 1));
    const std::uint64_t slab =
        std::clamp<std::uint64_t>(slab_bytes / sizeof(double) / std::max<std::uint64_t>(plane, 1), 1, planes);
    // Whole chunks at a time, where there is room.
    const std::uint64_t chunk = metadata.leaf_shape()[first_space];
    const std::uint64_t step = slab > chunk ? slab / chunk * chunk : slab;
    BulkVector<std::byte> elements(step * plane * metadata.type.bytes());
    BulkVector<double> values(step * plane);
    const std::uint64_t volumes = elements_of(std::span(metadata.shape).first(first_space));
    Progress progress("converting", volumes * planes, "planes", options.run.progress);
    for (std::uint64_t volume = 0; volume < volumes; ++volume) {
      Region region = whole(metadata);
      std::uint64_t rest = volume;
      // The first dimension of the array is the first axis behind k, which changes fastest in NIfTI.
      for (std::size_t d = 0; d < first_space; ++d) {
        region.origin[d] = rest % metadata.shape[d];
        region.shape[d] = 1;
        rest /= metadata.shape[d];
      }
      for (std::uint64_t begin = 0; begin < planes; begin += step) {
        region.origin[first_space] = begin;
        region.shape[first_space] = std::min(step, planes - begin);
        const std::size_t count = region.shape[first_space] * plane;
        const auto bytes = std::span(elements).first(count * metadata.type.bytes());
        const auto numbers = std::span(values).first(count);
        CGL_TRY_ASSIGN(const ReadReport read,
                       read_region(array, region, bytes,
                                   {.pool = options.pool, .cancel = options.run.cancel, .complete = complete}));
        report.add(read);
        decode_numbers(metadata.type, bytes, numbers);
        CGL_TRY(check_exact(numbers, metadata.type, array.name()));
        CGL_TRY(writer.append(std::span<const double>(numbers)));
        progress.advance(region.shape[first_space]);
      }
    }
    progress.finish();
    return report;
  });
}

}  // namespace cingulum::zarr
