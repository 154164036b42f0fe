#include "zarr/new_array.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t chosen_chunk_bytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t chosen_shard_bytes = std::uint64_t{64} << 20U;

std::uint64_t product(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

// Doubles the shortest extent, the last among equals, while `limit` bytes are not passed; never far beyond the array.
Shape grown(Shape shape, const Shape& array, std::uint64_t element_bytes, std::uint64_t limit) {
  while (product(shape) * element_bytes * 2 <= limit) {
    std::size_t shortest = shape.size();
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (shape[d] >= array[d]) continue;
      if (shortest == shape.size() || shape[d] < shape[shortest]) shortest = d;
    }
    if (shortest == shape.size()) break;
    shape[shortest] *= 2;
  }
  return shape;
}

struct CodecDefaults {
  std::string_view name;
  CodecChoice::Kind kind;
  int level, least, most;
};
constexpr std::array<CodecDefaults, 7> known_codecs = {{
    {"none", CodecChoice::Kind::none, 0, 0, 0},
    {"zstd", CodecChoice::Kind::zstd, 3, -7, 22},
    {"gzip", CodecChoice::Kind::gzip, 6, 0, 9},
    {"zlib", CodecChoice::Kind::zlib, 6, 0, 9},
    {"bz2", CodecChoice::Kind::bz2, 9, 1, 9},
    {"lz4", CodecChoice::Kind::lz4, 1, 1, 65537},
    {"blosc", CodecChoice::Kind::blosc, 5, 0, 9},
}};

const CodecDefaults& defaults_of(CodecChoice::Kind kind) {
  return *std::find_if(known_codecs.begin(), known_codecs.end(), [&](const auto& each) { return each.kind == kind; });
}

CodecChoice codec_of(const NewArray& wanted) {
  if (wanted.codec) return *wanted.codec;
  CodecChoice choice;
  if (wanted.format == 2) choice.kind = CodecChoice::Kind::zstd;
  return choice;
}

// Codecs behind `bytes`.
Json v3_codecs(const NewArray& wanted) {
  Json codecs = Json::array();
  Json bytes = {{"name", "bytes"}};
  if (wanted.type.bytes() > 1) bytes["configuration"] = {{"endian", "little"}};
  codecs.push_back(bytes);
  const CodecChoice choice = codec_of(wanted);
  const int level = choice.level.value_or(defaults_of(choice.kind).level);
  const auto add = [&](const char* name, Json configuration) {
    codecs.push_back({{"name", name}, {"configuration", std::move(configuration)}});
  };
  switch (choice.kind) {
    case CodecChoice::Kind::none: break;
    case CodecChoice::Kind::zstd: add("zstd", {{"level", level}, {"checksum", false}}); break;
    case CodecChoice::Kind::gzip: add("gzip", {{"level", level}}); break;
    case CodecChoice::Kind::zlib: add("numcodecs.zlib", {{"level", level}}); break;
    case CodecChoice::Kind::bz2: add("numcodecs.bz2", {{"level", level}}); break;
    case CodecChoice::Kind::lz4: add("numcodecs.lz4", {{"acceleration", level}}); break;
    case CodecChoice::Kind::blosc: {
      constexpr std::array<const char*, 3> shuffles = {"noshuffle", "shuffle", "bitshuffle"};
      add("blosc", {{"typesize", wanted.type.bytes()},
                    {"cname", std::string(blosc_compressor_name(choice.compressor))},
                    {"clevel", level},
                    {"shuffle", shuffles[static_cast<std::size_t>(choice.shuffle)]},
                    {"blocksize", 0}});
      break;
    }
  }
  if (choice.checksum) codecs.push_back({{"name", "crc32c"}});
  return codecs;
}

// v2 has no crc32c that others read: zstd keeps a checksum in its frames, gzip and zlib have theirs.
Json v2_compressor(const NewArray& wanted) {
  const CodecChoice choice = codec_of(wanted);
  const int level = choice.level.value_or(defaults_of(choice.kind).level);
  switch (choice.kind) {
    case CodecChoice::Kind::none: return nullptr;
    case CodecChoice::Kind::zstd: return {{"id", "zstd"}, {"level", level}, {"checksum", choice.checksum}};
    case CodecChoice::Kind::gzip: return {{"id", "gzip"}, {"level", level}};
    case CodecChoice::Kind::zlib: return {{"id", "zlib"}, {"level", level}};
    case CodecChoice::Kind::bz2: return {{"id", "bz2"}, {"level", level}};
    case CodecChoice::Kind::lz4: return {{"id", "lz4"}, {"acceleration", level}};
    case CodecChoice::Kind::blosc:
      return {{"id", "blosc"},
              {"cname", std::string(blosc_compressor_name(choice.compressor))},
              {"clevel", level},
              {"shuffle", static_cast<int>(choice.shuffle)},
              {"blocksize", 0}};
  }
  return nullptr;
}

Json v2_document(const NewArray& wanted, const Shape& chunks, const Json& fill) {
  return {{"zarr_format", 2},
          {"shape", wanted.shape},
          {"chunks", chunks},
          {"dtype", v2_type_name(wanted.type, false)},
          {"compressor", v2_compressor(wanted)},
          {"fill_value", fill},
          {"order", "C"},
          {"filters", nullptr},
          {"dimension_separator", std::string(1, wanted.separator)}};
}

Json v3_document(const NewArray& wanted, const Shape& chunks, const Shape& shards, const Json& fill) {
  Json codecs = v3_codecs(wanted);
  if (wanted.sharded) {
    Json index = Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}, {{"name", "crc32c"}}});
    codecs = Json::array({{{"name", "sharding_indexed"},
                           {"configuration",
                            {{"chunk_shape", chunks},
                             {"codecs", std::move(codecs)},
                             {"index_codecs", std::move(index)},
                             {"index_location", "end"}}}}});
  }
  Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", wanted.shape},
      {"data_type", wanted.type.name()},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", wanted.sharded ? shards : chunks}}}}},
      {"chunk_key_encoding",
       {{"name", "default"}, {"configuration", {{"separator", std::string(1, wanted.separator)}}}}},
      {"fill_value", fill},
      {"codecs", std::move(codecs)},
      {"attributes", wanted.attributes}};
  if (!wanted.dimension_names.empty()) {
    Json names = Json::array();
    for (const std::string& name : wanted.dimension_names) names.push_back(name.empty() ? Json() : Json(name));
    document["dimension_names"] = std::move(names);
  }
  document["storage_transformers"] = Json::array();
  return document;
}

Status check_shape(const Shape& given, const Shape& array, std::string_view what) {
  if (given.size() != array.size()) {
    return fail_argument(what, "{} {}: the array has {} dimensions", argument_name(what),
                         fmt::format("{}", fmt::join(given, ",")), array.size());
  }
  if (std::find(given.begin(), given.end(), 0U) == given.end()) return {};
  return fail_argument(what, "{} {}: extents are at least 1", argument_name(what),
                       fmt::format("{}", fmt::join(given, ",")));
}

}  // namespace

Result<CodecChoice> parse_codec_choice(std::string_view text) {
  std::string_view name = text.substr(0, text.find(':'));
  CodecChoice choice;
  bool known = false;
  if (name.starts_with("blosc-")) {
    const auto compressor = blosc_compressor_of(name.substr(6));
    known = compressor.has_value();
    choice.kind = CodecChoice::Kind::blosc;
    if (known) choice.compressor = *compressor;
  } else {
    for (const CodecDefaults& each : known_codecs) {
      if (each.name != name) continue;
      choice.kind = each.kind;
      known = true;
    }
  }
  if (!known) {
    return fail_argument("codec",
                         "{} '{}': accepted are none, zstd, gzip, zlib, bz2, lz4, blosc-lz4, blosc-lz4hc, blosc-zstd, "
                         "blosc-zlib, blosc-blosclz and blosc-snappy, with a level behind a colon (zstd:5)",
                         argument_name("codec"), text);
  }
  const CodecDefaults& defaults = defaults_of(choice.kind);
  if (name.size() == text.size()) return choice;
  const std::string_view given = text.substr(name.size() + 1);
  int level = 0;
  const auto parsed = std::from_chars(given.data(), given.data() + given.size(), level);
  choice.level = level;
  if (parsed.ec != std::errc() || parsed.ptr != given.data() + given.size() || level < defaults.least ||
      level > defaults.most || choice.kind == CodecChoice::Kind::none) {
    return fail_argument("codec", "{} '{}': the level of {} is a number from {} to {}", argument_name("codec"), text,
                         name, defaults.least, defaults.most);
  }
  return choice;
}

Result<ArrayMetadata> describe_new_array(const NewArray& wanted) {
  Shape chunks = wanted.chunk_shape;
  if (chunks.empty())
    chunks = grown(Shape(wanted.shape.size(), 1), wanted.shape, wanted.type.bytes(), chosen_chunk_bytes);
  CGL_TRY(check_shape(chunks, wanted.shape, "chunks"));
  Shape shards = wanted.shard_shape;
  if (shards.empty()) shards = grown(chunks, wanted.shape, wanted.type.bytes(), chosen_shard_bytes);
  CGL_TRY(check_shape(shards, wanted.shape, "shards"));
  for (std::size_t d = 0; d < shards.size(); ++d) {
    if (shards[d] % chunks[d] == 0) continue;
    return fail_argument("shards", "{} {}: not multiples of the chunks {}", argument_name("shards"),
                         fmt::format("{}", fmt::join(shards, ",")), fmt::format("{}", fmt::join(chunks, ",")));
  }
  // By way of the parser: whatever is written can be read.
  CGL_TRY_ASSIGN(const FillValue fill, parse_fill_value(wanted.fill_value, wanted.type));
  const Json fill_json = fill_value_json(fill, wanted.type);
  if (wanted.format == 2) {
    // The hexadecimal form of a NaN is v3's.
    return parse_v2_array(v2_document(wanted, chunks, fill_json), wanted.attributes);
  }
  return parse_v3_array(v3_document(wanted, chunks, shards, fill_json));
}

}  // namespace cingulum::zarr
