#include "zarr/hierarchy_copy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/bulk_memory.hpp"
#include "base/json_fields.hpp"
#include "formats/sidecar.hpp"
#include "zarr/chunk_boxes.hpp"
#include "zarr/chunk_writer.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/level_file.hpp"
#include "zarr/nifti_attributes.hpp"
#include "zarr/row_major.hpp"
#include "zarr/value_window.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t largest_plain_file_bytes = std::uint64_t{256} << 20U;
// Names of dimensions in v2, as xarray keeps them.
constexpr const char* dimension_attribute = "_ARRAY_DIMENSIONS";

Result<Region> region_of_crop(const std::vector<CropRange>& crop, const Array& array) {
  Region region = whole(array.metadata());
  if (crop.empty()) return region;
  if (crop.size() != region.shape.size()) {
    return fail_argument("crop", "{}: {} ranges, {} has {} dimensions", argument_name("crop"), crop.size(),
                         array.name(), region.shape.size());
  }
  for (std::size_t d = 0; d < crop.size(); ++d) {
    const std::uint64_t end = crop[d].end.value_or(region.shape[d]);
    if (crop[d].begin >= end || end > region.shape[d]) {
      return fail_argument("crop", "{}: {}:{} of dimension {}, which has {} elements", argument_name("crop"),
                           crop[d].begin, end, d, region.shape[d]);
    }
    region.origin[d] = crop[d].begin;
    region.shape[d] = end - crop[d].begin;
  }
  return region;
}

// As many names as there are dimensions, or none.
std::vector<std::string> names_in_attributes(const Json& attributes, std::size_t rank) {
  std::vector<std::string> names;
  const bool all = read_json(JsonView(attributes)[dimension_attribute].json(), "names", names) && names.size() == rank;
  return all ? names : std::vector<std::string>();
}

// One extent stands for all.
Shape for_each_dimension(const Shape& extents, std::size_t rank) {
  return extents.size() == 1 ? Shape(rank, extents[0]) : extents;
}

// What of the array stays in its copy: type, fill value, attributes and names of dimensions.
Result<ArrayMetadata> describe_copy(const ArrayMetadata& source, Shape shape, std::vector<std::string> names,
                                    const CopyLayout& layout) {
  NewArray wanted;
  wanted.format = layout.format;
  wanted.type = source.type;
  wanted.codec = layout.codec;
  wanted.sharded = layout.sharded && layout.format == 3 && !shape.empty();
  wanted.fill_value = fill_value_json(source.fill, source.type);
  CGL_TRY_ASSIGN(wanted.attributes, parse_json(source.attributes));
  if (names.empty()) names = source.dimension_names;
  if (layout.format == 3) {
    const std::vector<std::string> kept = names_in_attributes(wanted.attributes, shape.size());
    if (names.empty()) names = kept;
    if (!kept.empty() && kept == names) wanted.attributes.erase(dimension_attribute);
  } else if (!names.empty() && !wanted.attributes.contains(dimension_attribute)) {
    wanted.attributes[dimension_attribute] = names;
  }
  wanted.dimension_names = std::move(names);
  // Chunks beyond the array would be stored whole: they end with it.
  const Shape chunks = for_each_dimension(layout.chunks, shape.size());
  wanted.chunk_shape = chunks;
  wanted.shard_shape = for_each_dimension(layout.shards, shape.size());
  if (wanted.chunk_shape.size() == shape.size()) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (wanted.chunk_shape[d] > shape[d]) wanted.chunk_shape[d] = std::max<std::uint64_t>(shape[d], 1);
      const std::uint64_t chunk = wanted.chunk_shape[d];
      if (wanted.shard_shape.size() != shape.size() || chunk == 0 || wanted.shard_shape[d] % chunks[d] != 0) continue;
      const std::uint64_t needed = (std::max<std::uint64_t>(shape[d], 1) + chunk - 1) / chunk * chunk;
      wanted.shard_shape[d] = wanted.shard_shape[d] % chunk == 0 ? std::min(wanted.shard_shape[d], needed) : needed;
    }
  }
  wanted.shape = std::move(shape);
  return describe_new_array(wanted);
}

std::vector<std::string> names_of(const std::vector<OmeAxis>& axes) {
  std::vector<std::string> names;
  for (const OmeAxis& axis : axes) names.push_back(axis.name);
  return names;
}

std::optional<std::size_t> channel_of(const std::vector<OmeAxis>& axes) {
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].type == "channel") return d;
  }
  return std::nullopt;
}

OmeVersion version_of_format(int format) {
  return format == 2 ? OmeVersion::v0_4 : OmeVersion::v0_5;
}

class CopyPlanner {
 public:
  CopyPlanner(std::shared_ptr<const Store> store, const CopyRequest& request)
      : store_(std::move(store)), request_(request) {
    plan_.root = request.path;
    plan_.format = request.layout.format;
  }

  Result<CopyPlan> plan(const CancelToken& cancel) {
    CGL_TRY_ASSIGN(const Hierarchy hierarchy, read_hierarchy(*store_, request_.path, {}, cancel));
    plan_.notes = hierarchy.notes;
    const Node& root = hierarchy.nodes.front();
    if (root.kind == NodeKind::array) {
      CGL_TRY(plan_array());
      return std::move(plan_);
    }
    CGL_TRY_ASSIGN(const Json attributes, parse_json(root.attributes));
    CGL_TRY_ASSIGN(std::optional<OmeImage> image, parse_ome_image(attributes, name_of(root)));
    if (image) {
      CGL_TRY(plan_image(std::move(*image), hierarchy));
    } else if (!request_.crop.empty() || request_.pyramid || request_.window) {
      return fail(ErrorKind::invalid_argument,
                  "{}: it is a group without an image; a part, a pyramid or a window can be made of an array or an "
                  "OME-Zarr image: name one of them",
                  name_of(root));
    }
    CGL_TRY(plan_rest(hierarchy));
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::string name_of(const Node& node) const { return node_name(*store_, node.path); }
  // Where a node of the source is in the copy.
  [[nodiscard]] std::string copied_path(const std::string& path) const {
    if (request_.path.empty()) return path;
    return path.size() <= request_.path.size() ? std::string() : path.substr(request_.path.size() + 1);
  }

  Status add_array(const Array& source, Region region, std::string path, std::vector<std::string> names) {
    CGL_TRY_ASSIGN(ArrayMetadata metadata,
                   add_context(describe_copy(source.metadata(), region.shape, std::move(names), request_.layout), "{}",
                               source.name()));
    plan_.arrays.push_back(
        {.path = std::move(path), .metadata = std::move(metadata), .source = source, .region = std::move(region)});
    return {};
  }

  Status plan_array() {
    CGL_TRY_ASSIGN(const Array source, Array::open(store_, request_.path));
    CGL_TRY_ASSIGN(Region region, region_of_crop(request_.crop, source));
    if (!request_.image && !request_.pyramid) return add_array(source, std::move(region), "", {});
    OmeImage image;
    OmeMultiscale multiscale;
    const std::size_t rank = region.shape.size();
    if (rank < 2 || rank > 5) {
      return fail(ErrorKind::invalid_argument, "{}: an image has 2 to 5 dimensions, the array has {}", source.name(),
                  rank);
    }
    multiscale.name = store_->path().stem().stem().string();
    multiscale.axes = axes_of_names(source.metadata().dimension_names, rank);
    for (OmeAxis& axis : multiscale.axes) {
      if (axis.is_space()) axis.unit = request_.unit;
    }
    OmeLevel level{.path = "0",
                   .scale = request_.scale.empty() ? std::vector<double>(rank, 1.0) : request_.scale,
                   .translation = std::vector<double>(rank, 0.0)};
    if (level.scale.size() != rank) {
      return fail_argument("scale", "{}: {} numbers, the array has {} dimensions", argument_name("scale"),
                           level.scale.size(), rank);
    }
    multiscale.levels = {cropped_level(level, region.origin)};
    image.multiscales = {std::move(multiscale)};
    return plan_levels(std::move(image), source, std::move(region), request_.pyramid.value_or(PyramidChoice{1}));
  }

  // Levels as they are, or made anew where the finest one changes.
  Status plan_image(OmeImage image, const Hierarchy& hierarchy) {
    const std::string group = name_of(hierarchy.nodes.front());
    for (const std::string& note : image.notes) plan_.notes.push_back(fmt::format("{}: {}", group, note));
    const bool made_anew = !request_.crop.empty() || request_.pyramid.has_value();
    if (!made_anew) {
      if (request_.window) {
        plan_.channel_axis = channel_of(image.multiscales.front().axes);
        window_path_ = copied_path(join_path(request_.path, image.multiscales.front().levels.front().path));
      }
      for (const OmeMultiscale& multiscale : image.multiscales) {
        CGL_TRY_ASSIGN(const std::vector<Array> levels, open_levels(store_, request_.path, multiscale));
        for (const Array& level : levels) {
          const std::string path = copied_path(level.path());
          if (!done_.insert(level.path()).second) continue;
          CGL_TRY(add_array(level, whole(level.metadata()), path, names_of(multiscale.axes)));
          if (path == window_path_) plan_.window = plan_.arrays.size() - 1;
        }
      }
      CGL_TRY_ASSIGN(const Json attributes, ome_attributes(image, version_of_format(plan_.format), group));
      plan_.groups.push_back({"", attributes.dump()});
      done_.insert(request_.path);
      return {};
    }
    if (image.multiscales.size() > 1) {
      return fail(ErrorKind::unavailable, "{}: it has {} multiscales; a part or a pyramid is made of one alone", group,
                  image.multiscales.size());
    }
    OmeMultiscale& multiscale = image.multiscales.front();
    CGL_TRY_ASSIGN(const std::vector<Array> levels, open_levels(store_, request_.path, multiscale));
    for (const Array& level : levels) done_.insert(level.path());
    done_.insert(request_.path);
    if (!request_.crop.empty()) {
      for (const Node& node : hierarchy.nodes) {
        if (node.kind != NodeKind::array || done_.contains(node.path)) continue;
        return fail(ErrorKind::unavailable,
                    "{}: it has further arrays ({}), which would not fit a part of the image; copy the image without "
                    "them",
                    group, node.path);
      }
    }
    CGL_TRY_ASSIGN(Region region, region_of_crop(request_.crop, levels.front()));
    multiscale.levels.front() = cropped_level(multiscale.levels.front(), region.origin);
    return plan_levels(std::move(image), levels.front(), std::move(region),
                       request_.pyramid.value_or(PyramidChoice{multiscale.levels.size()}));
  }

  // The finest level is a region of `source`; the others are made of it.
  Status plan_levels(OmeImage image, const Array& source, Region region, const PyramidChoice& choice) {
    OmeMultiscale& multiscale = image.multiscales.front();
    std::vector<bool> halved;
    for (const OmeAxis& axis : multiscale.axes) halved.push_back(axis.is_space());
    const std::vector<std::string> names = names_of(multiscale.axes);
    const OmeLevel finest = multiscale.levels.front();
    CGL_TRY(add_array(source, region, finest.path, names));
    const Downsampling how = request_.downsampling.value_or(
        image.is_label() || source.metadata().type.code == ElementType::Code::boolean ? Downsampling::nearest
                                                                                      : Downsampling::mean);
    const std::vector<Shape> shapes =
        pyramid_shapes(region.shape, halved, choice.levels, plan_.arrays.back().metadata.leaf_shape());
    std::vector<OmeLevel> levels = {finest};
    ArrayMetadata plain = source.metadata();
    plain.attributes = "{}";  // what is said of the finest level need not hold for the others
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      std::string path = k < multiscale.levels.size() ? multiscale.levels[k].path : std::to_string(k);
      levels.push_back(level_of_size(finest, region.shape, shapes[k], path));
      CGL_TRY_ASSIGN(ArrayMetadata metadata, describe_copy(plain, shapes[k], names, request_.layout));
      plan_.arrays.push_back({.path = std::move(path),
                              .metadata = std::move(metadata),
                              .finer = plan_.arrays.size() - 1,
                              .downsampling = how});
    }
    multiscale.levels = std::move(levels);
    multiscale.type = how == Downsampling::mean ? "mean" : "nearest";
    multiscale.metadata = {
        {"method", "cingulum"},
        {"description", how == Downsampling::mean ? "mean of what an element covers" : "the element at the centre"}};
    crop_kept_affine(image.others, region);
    Json& ours = image.others["cingulum"];
    if (!ours.is_object()) ours = Json::object();
    ours.update(provenance(region));
    if (request_.window || image.omero.is_null()) {
      if (value_window_passes(source.metadata().type) > 0) plan_.window = 0;
      plan_.channel_axis = channel_of(multiscale.axes);
    }
    CGL_TRY_ASSIGN(const Json attributes,
                   ome_attributes(image, version_of_format(plan_.format), node_name(*store_, request_.path)));
    plan_.groups.push_back({"", attributes.dump()});
    return {};
  }

  // What the copy was made from: nothing of time, place or version, so that equal runs give equal bytes.
  [[nodiscard]] Json provenance(const Region& region) const {
    Json json = {{"command", "zarr copy"}, {"source", store_->path().filename().string()}};
    if (!request_.path.empty()) json["path"] = request_.path;
    if (!request_.crop.empty()) json["crop"] = {{"origin", region.origin}, {"shape", region.shape}};
    return json;
  }

  // All nodes that no image has planned, and files beside them.
  Status plan_rest(const Hierarchy& hierarchy) {
    for (const Node& node : hierarchy.nodes) {
      if (node.kind == NodeKind::group) CGL_TRY(plan_files(node));
      if (done_.contains(node.path)) continue;
      if (node.kind == NodeKind::array) {
        CGL_TRY_ASSIGN(const Array source, Array::open(store_, node.path));
        CGL_TRY(add_array(source, whole(source.metadata()), copied_path(node.path), {}));
        continue;
      }
      CGL_TRY_ASSIGN(const Json attributes, parse_json(node.attributes));
      CGL_TRY_ASSIGN(const Json converted,
                     convert_ome_attributes(attributes, version_of_format(plan_.format), name_of(node)));
      plan_.groups.push_back({copied_path(node.path), converted.dump()});
    }
    return {};
  }

  Status plan_files(const Node& group) {
    static constexpr std::array<std::string_view, 5> metadata = {"zarr.json", ".zgroup", ".zattrs", ".zarray",
                                                                 ".zmetadata"};
    CGL_TRY_ASSIGN(const Store::Children children, store_->children(group.path));
    for (const std::string& name : children.keys) {
      if (std::find(metadata.begin(), metadata.end(), name) != metadata.end()) continue;
      plan_.files.push_back(join_path(group.path, name));
    }
    return {};
  }

  std::shared_ptr<const Store> store_;
  const CopyRequest& request_;
  CopyPlan plan_;
  std::set<std::string> done_;  // nodes of the source that are planned, or replaced
  std::string window_path_;
};

// Reads and writes one array box by box.
Status copy_array(const PlannedArray& planned, StoreOutput& output, const CopyOptions& options, Progress& progress,
                  CopyReport& report) {
  const Array target = Array::describe(nullptr, planned.path, planned.metadata);
  const std::size_t element_bytes = planned.metadata.type.bytes();
  const ChunkBoxes boxes(planned.metadata.shape, planned.metadata.chunk_shape, planned.source->metadata().leaf_shape(),
                         planned.region.origin, element_bytes, options.memory_bytes);
  BulkVector<std::byte> elements(boxes.most_elements() * element_bytes);
  for (std::uint64_t i = 0; i < boxes.count(); ++i) {
    CGL_TRY(options.run.cancel.check());
    const Region box = boxes.at(i);
    const std::span<std::byte> place = std::span(elements).first(elements_of(box.shape) * element_bytes);
    Region from = box;
    for (std::size_t d = 0; d < from.origin.size(); ++d) from.origin[d] += planned.region.origin[d];
    CGL_TRY_ASSIGN(const ReadReport read,
                   read_region(*planned.source, from, place,
                               {.pool = options.pool, .cancel = options.run.cancel, .complete = options.complete}));
    report.read.add(read);
    CGL_TRY_ASSIGN(const WriteReport written,
                   write_region(target, output, box, place, {.pool = options.pool, .cancel = options.run.cancel}));
    report.written.chunks += written.chunks;
    report.written.stored_bytes += written.stored_bytes;
    progress.advance(elements_of(box.shape));
  }
  return {};
}

// The attributes with a window for each channel of the array.
Result<std::string> with_window(const CopyPlan& plan, const CopyOptions& options, Progress& progress) {
  const PlannedArray& planned = plan.arrays[*plan.window];
  const std::uint64_t channels = plan.channel_axis ? planned.region.shape[*plan.channel_axis] : 1;
  std::vector<OmeChannel> list;
  for (std::uint64_t c = 0; c < channels; ++c) {
    Region region = planned.region;
    if (plan.channel_axis) {
      region.origin[*plan.channel_axis] += c;
      region.shape[*plan.channel_axis] = 1;
    }
    const ArraySource source(*planned.source, region, {.cancel = options.run.cancel, .complete = options.complete});
    ValueWindowOptions window_options;
    window_options.pool = options.pool;
    window_options.cancel = options.run.cancel;
    window_options.progress = &progress;
    CGL_TRY_ASSIGN(const std::optional<ValueWindow> found,
                   find_value_window(source, planned.source->metadata().leaf_shape(), window_options));
    OmeChannel channel{.label = channels > 1 ? fmt::format("channel {}", c) : std::string("intensity"),
                       .color = "FFFFFF"};
    channel.window =
        found ? OmeWindow{found->smallest, found->largest, found->low, found->high} : OmeWindow{0, 1, 0, 1};
    list.push_back(std::move(channel));
  }
  CGL_TRY_ASSIGN(Json attributes, parse_json(plan.groups.front().attributes));
  (plan.format == 2 ? attributes : attributes["ome"])["omero"] = make_omero(list);
  return attributes.dump();
}

Status copy_files(const Store& store, const CopyPlan& plan, StoreOutput& output) {
  for (const std::string& key : plan.files) {
    CGL_TRY_ASSIGN(const std::optional<std::string> content, store.read_text(key, largest_plain_file_bytes));
    if (content) CGL_TRY(output.put_text(plan.root.empty() ? key : key.substr(plan.root.size() + 1), *content));
  }
  return {};
}

}  // namespace

std::uint64_t known_stored_bytes(const ArrayMetadata& metadata) {
  const ChunkCoding& leaf = metadata.leaf_coding();
  if (!has_fixed_size(leaf.chain)) return 0;
  const Shape leaf_shape = metadata.leaf_shape();
  std::uint64_t leaves = 1;
  for (std::size_t d = 0; d < leaf_shape.size(); ++d) {
    leaves *= (metadata.shape[d] + leaf_shape[d] - 1) / leaf_shape[d];
  }
  std::uint64_t leaf_bytes = encoded_bytes(leaf.chain, elements_of(leaf_shape) * metadata.type.bytes());
  std::uint64_t index_bytes = 0;
  if (metadata.coding.sharding) {
    const std::uint64_t inner = elements_of(metadata.chunk_shape) / std::max<std::uint64_t>(elements_of(leaf_shape), 1);
    index_bytes = elements_of(metadata.grid()) * encoded_bytes(metadata.coding.sharding->index_chain, inner * 16);
    leaf_bytes = (leaf_bytes + inner_chunk_alignment - 1) / inner_chunk_alignment * inner_chunk_alignment;
  }
  return leaves * leaf_bytes + index_bytes;
}

std::uint64_t CopyPlan::needed_bytes() const {
  std::uint64_t output = 0, temporary = 0;
  bool known = true;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArrayMetadata& metadata = arrays[i].metadata;
    const std::uint64_t bytes = known_stored_bytes(metadata);
    known = known && (bytes > 0 || metadata.element_count() == 0);
    output += bytes;
    // Two levels at a time: the one that is read and the one that is made.
    if (i + 1 < arrays.size() && arrays[i].finer && arrays[i + 1].finer) {
      temporary += LevelFile::bytes_of(metadata.shape, metadata.leaf_shape(), metadata.type);
    }
  }
  return known ? output + temporary : temporary;
}

std::uint64_t CopyPlan::work() const {
  std::uint64_t elements = 0;
  for (const PlannedArray& array : arrays) elements += array.metadata.element_count();
  if (window) {
    const ArrayMetadata& metadata = arrays[*window].metadata;
    elements += metadata.element_count() * static_cast<std::uint64_t>(value_window_passes(metadata.type));
  }
  return elements;
}

Result<CopyPlan> plan_copy(const std::shared_ptr<const Store>& store, const CopyRequest& request,
                           const CancelToken& cancel) {
  return catch_out_of_memory([&] { return CopyPlanner(store, request).plan(cancel); });
}

Result<CopyReport> run_copy(const Store& store, const CopyPlan& plan, StoreOutput& output,
                            const std::filesystem::path& destination, const CopyOptions& options) {
  return catch_out_of_memory([&]() -> Result<CopyReport> {
    CopyReport report;
    FileLayer& layer = options.layer != nullptr ? *options.layer : FileLayer::system();
    Progress progress("copying", plan.work(), "elements", options.run.progress);
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
      std::string text = plan.groups[i].attributes;
      if (i == 0 && plan.window) {
        CGL_TRY_ASSIGN(text, with_window(plan, options, progress));
      }
      CGL_TRY_ASSIGN(const Json attributes, parse_json(text));
      CGL_TRY(write_group(plan.groups[i].path, plan.format, attributes, output));
    }
    for (const PlannedArray& planned : plan.arrays) {
      CGL_TRY(write_array_metadata(planned.path, planned.metadata, output));
    }
    CGL_TRY(copy_files(store, plan, output));
    std::unique_ptr<LevelFile> finer;
    for (std::size_t i = 0; i < plan.arrays.size(); ++i) {
      const PlannedArray& planned = plan.arrays[i];
      if (!planned.finer) {
        CGL_TRY(copy_array(planned, output, options, progress, report));
        continue;
      }
      const PlannedArray& below = plan.arrays[*planned.finer];
      std::unique_ptr<ElementSource> source;
      if (below.source) {
        source = std::make_unique<ArraySource>(*below.source, below.region,
                                               ReadOptions{.cancel = options.run.cancel, .complete = options.complete});
      }
      std::unique_ptr<LevelFile> kept;
      if (i + 1 < plan.arrays.size() && plan.arrays[i + 1].finer) {
        CGL_TRY_ASSIGN(kept, LevelFile::create(layer, destination.native(), planned.metadata.shape,
                                               planned.metadata.leaf_shape(), planned.metadata.type));
      }
      CGL_TRY(write_level(source ? *source : static_cast<const ElementSource&>(*finer), planned.downsampling,
                          Array::describe(nullptr, planned.path, planned.metadata), output, kept.get(),
                          {.pool = options.pool,
                           .cancel = options.run.cancel,
                           .memory_bytes = options.memory_bytes,
                           .progress = &progress}));
      ++report.made_levels;
      finer = std::move(kept);
    }
    progress.finish();
    return report;
  });
}

}  // namespace cingulum::zarr
