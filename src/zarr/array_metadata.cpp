#include "zarr/array_metadata.hpp"

#include <fmt/ranges.h>

#include <limits>

#include "base/json_view.hpp"
#include "formats/corrupt.hpp"
#include "zarr/codec_names.hpp"
#include "zarr/json_values.hpp"

namespace cingulum::zarr {
namespace {

// Bytes of an array, and of a chunk: far above any disk, far below what overflows when bytes are added.
constexpr std::uint64_t most_array_bytes = std::uint64_t{1} << 60U;

Result<Shape> parse_shape(const Json& value, std::string_view what, std::uint64_t least) {
  if (!value.is_array()) return corrupt("{} is {}, not a list", what, json_excerpt(value));
  if (value.size() > max_rank)
    return corrupt("{} has {} dimensions; at most {} are supported", what, value.size(), max_rank);
  Shape shape;
  for (const Json& extent : value) {
    const auto count = count_of(extent);
    if (!count || *count < least)
      return corrupt("{} {}: not whole numbers from {} on", what, json_excerpt(value), least);
    shape.push_back(*count);
  }
  return shape;
}

Status check_size(const Shape& shape, ElementType type, std::string_view what) {
  std::uint64_t bytes = type.bytes();
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return {};
    if (bytes > most_array_bytes / extent) {
      return corrupt("{} {} of {} has more than 2^60 bytes", what, fmt::format("{}", fmt::join(shape, " x ")),
                     type.name());
    }
    bytes *= extent;
  }
  return {};
}

const Json& member(const Json& object, const char* name) {
  return JsonView(object)[name].json();
}

Status check_shapes(const ArrayMetadata& metadata) {
  if (metadata.chunk_shape.size() != metadata.shape.size()) {
    return corrupt("chunks have {} dimensions, the array has {}", metadata.chunk_shape.size(), metadata.shape.size());
  }
  // An extent of zero must not hide the others.
  Shape at_least_one = metadata.shape;
  for (std::uint64_t& extent : at_least_one) extent = extent == 0 ? 1 : extent;
  CGL_TRY(check_size(at_least_one, metadata.type, "shape"));
  CGL_TRY(check_size(metadata.chunk_shape, metadata.type, "chunk"));
  // Chunks at the end of the array reach beyond it: their coordinates must not overflow either.
  for (std::size_t d = 0; d < metadata.rank(); ++d) {
    if (metadata.shape[d] > most_array_bytes - metadata.chunk_shape[d]) {
      return corrupt("shape: an extent of {} is too large", metadata.shape[d]);
    }
  }
  return {};
}

Result<ChunkCoding> parse_v2_codecs(const Json& zarray, ArrayMetadata& metadata) {
  const Json& dtype = member(zarray, "dtype");
  if (!dtype.is_string()) return corrupt("data type {}: records are not supported", json_excerpt(dtype));
  CGL_TRY_ASSIGN(const FilterType type, parse_v2_type(dtype.get_ref<const std::string&>()));
  metadata.type = type.type;
  CGL_TRY(check_shapes(metadata));
  const Json& order = member(zarray, "order");
  if (order != "C" && order != "F") return corrupt("order is {}, accepted is C or F", json_excerpt(order));
  const Json& fill = member(zarray, "fill_value");
  metadata.fill_is_null = fill.is_null();
  if (!metadata.fill_is_null) {
    CGL_TRY_ASSIGN(metadata.fill, parse_fill_value(fill, type.type, true, type.big_endian));
  }
  return parse_v2_coding(member(zarray, "filters"), member(zarray, "compressor"), type, metadata.chunk_shape,
                         order == "F");
}

Status parse_key_encoding(const Json& value, ArrayMetadata& metadata) {
  CGL_TRY_ASSIGN(const Extension encoding, parse_extension(value, "chunk key encoding"));
  if (encoding.name == "default") {
    metadata.key_encoding = KeyEncoding::v3_default;
    metadata.separator = '/';
  } else if (encoding.name == "v2") {
    metadata.key_encoding = KeyEncoding::v2;
    metadata.separator = '.';
  } else {
    return corrupt("chunk key encoding '{}' is not supported (known: default, v2)", encoding.name);
  }
  const Json& separator = member(encoding.configuration, "separator");
  if (separator.is_null()) return {};
  if (separator != "/" && separator != ".") {
    return corrupt("chunk key encoding: separator is {}, accepted is / or .", json_excerpt(separator));
  }
  metadata.separator = separator.get_ref<const std::string&>()[0];
  return {};
}

Status parse_dimension_names(const Json& value, ArrayMetadata& metadata) {
  if (value.is_null()) return {};
  if (!value.is_array() || value.size() != metadata.rank()) {
    return corrupt("dimension_names is {}, not a list of {} names", json_excerpt(value), metadata.rank());
  }
  for (const Json& name : value) {
    if (!name.is_string() && !name.is_null()) return corrupt("dimension_names: {} is not a name", json_excerpt(name));
    metadata.dimension_names.push_back(name.is_string() ? name.get<std::string>() : std::string());
  }
  return {};
}

// Members that a reader has to understand are refused where it does not.
Status check_members(const Json& zarr_json, ArrayMetadata& metadata) {
  for (const auto& [name, value] : zarr_json.items()) {
    bool known = false;
    for (const std::string_view each :
         {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs", "fill_value",
          "attributes", "dimension_names", "storage_transformers", "consolidated_metadata"}) {
      known = known || name == each;
    }
    if (known) continue;
    if (JsonView(value)["must_understand"].flag() != false) {
      return corrupt("member '{}' is not known, and it must be understood", name);
    }
    metadata.notes.push_back(fmt::format("member '{}' is not known and need not be", name));
  }
  const Json& transformers = member(zarr_json, "storage_transformers");
  if (!transformers.is_null() && !(transformers.is_array() && transformers.empty())) {
    return corrupt("storage transformers are not supported");
  }
  return {};
}

Status parse_attributes(const Json& attributes, ArrayMetadata& metadata) {
  if (attributes.is_null()) return {};
  if (!attributes.is_object()) return corrupt("attributes are {}, not an object", json_excerpt(attributes));
  metadata.attributes = attributes.dump();
  return {};
}

std::string describe_step(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::gzip:
    case CodecKind::zlib:
    case CodecKind::bz2: return fmt::format("{} (level {})", codec.name, codec.level);
    case CodecKind::zstd:
      return fmt::format("{} (level {}{})", codec.name, codec.level, codec.checksum ? ", checksum" : "");
    case CodecKind::blosc: {
      constexpr std::array<std::string_view, 3> shuffles = {"no shuffle", "shuffle", "bit shuffle"};
      return fmt::format("{} ({}, level {}, {})", codec.name, blosc_compressor_name(codec.compressor), codec.level,
                         shuffles[static_cast<std::size_t>(codec.blosc_shuffle)]);
    }
    default: return codec.name;
  }
}

void describe_into(const ChunkCoding& coding, std::vector<std::string>& steps) {
  if (coding.sharding != nullptr) {
    std::vector<std::string> inner;
    describe_into(*coding.sharding->inner, inner);
    steps.push_back(fmt::format("shards of chunks {} [{}]", fmt::join(coding.sharding->inner_shape, " x "),
                                fmt::join(inner, ", ")));
  } else {
    std::vector<std::uint32_t> plain(coding.layout.order.size());
    for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::uint32_t>(i);
    if (coding.layout.order != plain) steps.push_back(fmt::format("order {}", fmt::join(coding.layout.order, ", ")));
    steps.push_back(coding.layout.big_endian ? "big-endian" : "little-endian");
    if (coding.layout.shuffled) steps.push_back("shuffle");
  }
  for (const Codec& codec : coding.chain) steps.push_back(describe_step(codec));
}

}  // namespace

std::uint64_t ArrayMetadata::element_count() const {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

Shape ArrayMetadata::leaf_shape() const {
  Shape leaf = chunk_shape;
  for (const ChunkCoding* each = &coding; each->sharding != nullptr; each = each->sharding->inner.get()) {
    leaf = each->sharding->inner_shape;
  }
  return leaf;
}

const ChunkCoding& ArrayMetadata::leaf_coding() const {
  const ChunkCoding* leaf = &coding;
  while (leaf->sharding != nullptr) leaf = leaf->sharding->inner.get();
  return *leaf;
}

Shape ArrayMetadata::grid() const {
  Shape grid(rank());
  for (std::size_t d = 0; d < rank(); ++d)
    grid[d] = shape[d] / chunk_shape[d] + (shape[d] % chunk_shape[d] != 0 ? 1 : 0);
  return grid;
}

std::string ArrayMetadata::chunk_key(std::span<const std::uint64_t> index) const {
  std::string key = key_encoding == KeyEncoding::v3_default ? "c" : index.empty() ? "0" : "";
  for (const std::uint64_t each : index) {
    if (!key.empty()) key += separator;
    key += fmt::format_int(each).c_str();
  }
  return key;
}

Result<ArrayMetadata> parse_v2_array(const Json& zarray, const Json& zattrs) {
  if (!zarray.is_object()) return corrupt("{} is not an object", json_excerpt(zarray));
  if (member(zarray, "zarr_format") != 2)
    return corrupt("zarr_format is {}, not 2", json_excerpt(member(zarray, "zarr_format")));
  ArrayMetadata metadata;
  metadata.format = 2;
  metadata.key_encoding = KeyEncoding::v2;
  metadata.separator = '.';
  CGL_TRY_ASSIGN(metadata.shape, parse_shape(member(zarray, "shape"), "shape", 0));
  CGL_TRY_ASSIGN(metadata.chunk_shape, parse_shape(member(zarray, "chunks"), "chunks", 1));
  CGL_TRY_ASSIGN(metadata.coding, parse_v2_codecs(zarray, metadata));
  const Json& separator = member(zarray, "dimension_separator");
  if (!separator.is_null()) {
    if (separator != "/" && separator != ".") {
      return corrupt("dimension_separator is {}, accepted is / or .", json_excerpt(separator));
    }
    metadata.separator = separator.get_ref<const std::string&>()[0];
  }
  CGL_TRY(parse_attributes(zattrs, metadata));
  metadata.document = zarray.dump(2);
  return metadata;
}

Result<ArrayMetadata> parse_v3_array(const Json& zarr_json) {
  if (!zarr_json.is_object()) return corrupt("{} is not an object", json_excerpt(zarr_json));
  if (member(zarr_json, "zarr_format") != 3) {
    return corrupt("zarr_format is {}, not 3", json_excerpt(member(zarr_json, "zarr_format")));
  }
  if (member(zarr_json, "node_type") != "array") {
    return corrupt("node_type is {}, not array", json_excerpt(member(zarr_json, "node_type")));
  }
  ArrayMetadata metadata;
  CGL_TRY(check_members(zarr_json, metadata));
  CGL_TRY_ASSIGN(metadata.shape, parse_shape(member(zarr_json, "shape"), "shape", 0));
  CGL_TRY_ASSIGN(const Extension type, parse_extension(member(zarr_json, "data_type"), "data type"));
  CGL_TRY_ASSIGN(metadata.type, parse_v3_type(type.name));
  CGL_TRY_ASSIGN(const Extension grid, parse_extension(member(zarr_json, "chunk_grid"), "chunk grid"));
  if (grid.name != "regular") return corrupt("chunk grid '{}' is not supported (known: regular)", grid.name);
  CGL_TRY_ASSIGN(metadata.chunk_shape, parse_shape(member(grid.configuration, "chunk_shape"), "chunk_shape", 1));
  CGL_TRY(check_shapes(metadata));
  CGL_TRY(parse_key_encoding(member(zarr_json, "chunk_key_encoding"), metadata));
  const Json& fill = member(zarr_json, "fill_value");
  if (!zarr_json.contains("fill_value")) return corrupt("fill_value is missing");
  CGL_TRY_ASSIGN(metadata.fill, parse_fill_value(fill, metadata.type));
  CGL_TRY_ASSIGN(metadata.coding, parse_v3_coding(member(zarr_json, "codecs"), metadata.type, metadata.chunk_shape));
  CGL_TRY(parse_dimension_names(member(zarr_json, "dimension_names"), metadata));
  CGL_TRY(parse_attributes(member(zarr_json, "attributes"), metadata));
  metadata.document = zarr_json.dump(2);
  return metadata;
}

std::string describe_coding(const ArrayMetadata& metadata) {
  std::vector<std::string> steps;
  describe_into(metadata.coding, steps);
  return fmt::format("{}", fmt::join(steps, ", "));
}

}  // namespace cingulum::zarr
