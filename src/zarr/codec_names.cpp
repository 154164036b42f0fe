#include "zarr/codec_names.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/json_view.hpp"
#include "formats/corrupt.hpp"
#include "zarr/json_values.hpp"

namespace cingulum::zarr {
namespace {

using Code = ElementType::Code;

// Shards within shards: deeper than anything in use, and a bound for hostile metadata.
constexpr int deepest_sharding = 4;

// Numbers, texts and flags of a codec's configuration.
class Parameters {
 public:
  Parameters(const Json& object, std::string codec) : object_(object), codec_(std::move(codec)) {}

  [[nodiscard]] const std::string& codec() const { return codec_; }
  [[nodiscard]] const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] Result<int> whole(const char* name, int fallback, int least, int most) const {
    const Json* const value = find(name);
    if (value == nullptr) return fallback;
    // Numbers above 2^63 would come back as negative ones.
    const bool too_large =
        value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<int>::max()};
    if (value->is_number_integer() && !too_large) {
      const auto number = value->get<std::int64_t>();
      if (number >= least && number <= most) return static_cast<int>(number);
    }
    return wrong(name, *value, fmt::format("a whole number from {} to {}", least, most));
  }
  [[nodiscard]] Result<double> real(const char* name) const {
    const Json* const value = find(name);
    if (value == nullptr) return corrupt("codec '{}': {} is missing", codec_, name);
    if (!value->is_number()) return wrong(name, *value, "a number");
    return value->get<double>();
  }
  [[nodiscard]] Result<bool> flag(const char* name, bool fallback) const {
    const Json* const value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return wrong(name, *value, "true or false");
    return value->get<bool>();
  }
  [[nodiscard]] Result<std::string> text(const char* name, std::string fallback) const {
    const Json* const value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_string()) return wrong(name, *value, "a text");
    return value->get<std::string>();
  }
  [[nodiscard]] tl::unexpected<Error> wrong(const char* name, const Json& value, std::string_view accepted) const {
    return corrupt("codec '{}': {} is {}, accepted is {}", codec_, name, json_excerpt(value), accepted);
  }
  // "<i2", or as v3 names them "int16"; `fallback` where it is absent.
  [[nodiscard]] Result<FilterType> type(const char* name, std::optional<FilterType> fallback) const {
    const Json* const value = find(name);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr || !value->is_string()) return corrupt("codec '{}': {} is missing", codec_, name);
    const auto& text = value->get_ref<const std::string&>();
    auto found = parse_v2_type(text);
    if (!found) {
      if (const auto named = parse_v3_type(text)) found = FilterType{*named, false};
    }
    return add_context(std::move(found), "codec '{}': {}", codec_, name);
  }

 private:
  const Json& object_;
  std::string codec_;
};

tl::unexpected<Error> unknown_codec(const std::string& whole_name) {
  const std::string name = whole_name.substr(0, 80);
  for (const std::string_view kind : {"vlen-utf8", "vlen-bytes", "vlen-array", "json2", "pickle", "msgpack2"}) {
    if (name.ends_with(kind)) return corrupt("codec '{}': strings and objects are not supported", name);
  }
  return corrupt(
      "codec '{}' is not supported (known: bytes, transpose, sharding_indexed, gzip, zlib, bz2, zstd, blosc, lz4, "
      "crc32c, fletcher32, delta, shuffle, fixedscaleoffset, bitround)",
      name);
}

Result<Codec> parse_blosc(const Parameters& given, std::size_t element_bytes, bool by_name) {
  Codec codec{.kind = CodecKind::blosc, .name = given.codec()};
  CGL_TRY_ASSIGN(const std::string compressor, given.text("cname", "lz4"));
  const auto found = blosc_compressor_of(compressor);
  if (!found) {
    return given.wrong("cname", compressor, "one of blosclz, lz4, lz4hc, snappy, zlib and zstd");
  }
  codec.compressor = *found;
  CGL_TRY_ASSIGN(codec.level, given.whole("clevel", 5, 0, 9));
  CGL_TRY_ASSIGN(const int block, given.whole("blocksize", 0, 0, std::numeric_limits<int>::max()));
  codec.block_bytes = static_cast<std::size_t>(block);
  CGL_TRY_ASSIGN(const int type_size, given.whole("typesize", static_cast<int>(element_bytes), 1, 255));
  codec.element_bytes = static_cast<std::size_t>(type_size);
  const Json* const shuffle = given.find("shuffle");
  if (shuffle != nullptr && shuffle->is_string() && by_name) {
    const auto& name = shuffle->get_ref<const std::string&>();
    if (name == "noshuffle") {
      codec.blosc_shuffle = BloscShuffle::none;
    } else if (name == "shuffle") {
      codec.blosc_shuffle = BloscShuffle::bytes;
    } else if (name == "bitshuffle") {
      codec.blosc_shuffle = BloscShuffle::bits;
    } else {
      return given.wrong("shuffle", *shuffle, "noshuffle, shuffle or bitshuffle");
    }
    return codec;
  }
  // numcodecs: -1 is by bits for single bytes, else by bytes.
  CGL_TRY_ASSIGN(const int number, given.whole("shuffle", 1, -1, 2));
  codec.blosc_shuffle = number == 0                                           ? BloscShuffle::none
                        : number == 2 || (number == -1 && element_bytes == 1) ? BloscShuffle::bits
                                                                              : BloscShuffle::bytes;
  return codec;
}

// Steps on bytes. Nothing where the name is that of no such step.
Result<std::optional<Codec>> parse_byte_codec(const std::string& plain_name, const Parameters& given,
                                              std::size_t element_bytes, bool by_name) {
  Codec codec{.kind = CodecKind::crc32c, .name = given.codec()};
  if (plain_name == "crc32c" || plain_name == "fletcher32") {
    codec.kind = plain_name == "crc32c" ? CodecKind::crc32c : CodecKind::fletcher32;
    CGL_TRY_ASSIGN(const std::string location, given.text("location", "end"));
    if (location != "end") return given.wrong("location", location, "end");
  } else if (plain_name == "gzip" || plain_name == "zlib") {
    codec.kind = plain_name == "gzip" ? CodecKind::gzip : CodecKind::zlib;
    CGL_TRY_ASSIGN(codec.level, given.whole("level", 1, -1, 9));
  } else if (plain_name == "bz2") {
    codec.kind = CodecKind::bz2;
    CGL_TRY_ASSIGN(codec.level, given.whole("level", 1, 1, 9));
  } else if (plain_name == "zstd") {
    codec.kind = CodecKind::zstd;
    CGL_TRY_ASSIGN(codec.level, given.whole("level", 0, -131072, 22));
    CGL_TRY_ASSIGN(codec.checksum, given.flag("checksum", false));
  } else if (plain_name == "lz4") {
    codec.kind = CodecKind::lz4;
    CGL_TRY_ASSIGN(codec.level, given.whole("acceleration", 1, 0, 65537));
  } else if (plain_name == "shuffle") {
    codec.kind = CodecKind::shuffle;
    CGL_TRY_ASSIGN(const int size, given.whole("elementsize", 4, 1, 65536));
    codec.element_bytes = static_cast<std::size_t>(size);
  } else if (plain_name == "blosc") {
    CGL_TRY_ASSIGN(codec, parse_blosc(given, element_bytes, by_name));
  } else {
    return std::optional<Codec>();
  }
  return std::optional(std::move(codec));
}

bool is_real(ElementType type) {
  return type.code == Code::floating || type.code == Code::integer || type.code == Code::unsigned_integer;
}

// Filters of numcodecs that change values. Nothing where the name is that of no such filter.
Result<std::optional<Codec>> parse_value_filter(const std::string& plain_name, const Parameters& given,
                                                FilterType current) {
  Codec codec{.kind = CodecKind::delta, .name = given.codec()};
  const auto check = [&](bool types_fit) -> Status {
    if (types_fit && codec.decoded.type == current.type) return {};
    return corrupt("codec '{}' of {} behind {} elements is not supported", codec.name, codec.decoded.type.name(),
                   current.type.name());
  };
  if (plain_name == "delta") {
    CGL_TRY_ASSIGN(codec.decoded, given.type("dtype", std::nullopt));
    CGL_TRY_ASSIGN(codec.encoded, given.type("astype", codec.decoded));
    CGL_TRY(check(is_real(codec.decoded.type) && is_real(codec.encoded.type) && codec.decoded.type.bytes() > 0 &&
                  !(codec.decoded.type.code == Code::floating && codec.decoded.type.bytes() == 2) &&
                  !(codec.encoded.type.code == Code::floating && codec.encoded.type.bytes() == 2)));
  } else if (plain_name == "fixedscaleoffset") {
    codec.kind = CodecKind::fixed_scale_offset;
    CGL_TRY_ASSIGN(codec.decoded, given.type("dtype", std::nullopt));
    CGL_TRY_ASSIGN(codec.encoded, given.type("astype", codec.decoded));
    CGL_TRY_ASSIGN(codec.scale, given.real("scale"));
    CGL_TRY_ASSIGN(codec.offset, given.real("offset"));
    CGL_TRY(check(codec.decoded.type.code == Code::floating && codec.decoded.type.bytes() >= 4 &&
                  is_real(codec.encoded.type) &&
                  !(codec.encoded.type.code == Code::floating && codec.encoded.type.bytes() == 2)));
  } else if (plain_name == "bitround") {
    codec.kind = CodecKind::bitround;
    codec.decoded = codec.encoded = current;
    const int fraction_bits = current.type.bytes() == 2 ? 10 : current.type.bytes() == 4 ? 23 : 52;
    CGL_TRY_ASSIGN(codec.keep_bits, given.whole("keepbits", fraction_bits, 0, fraction_bits));
    CGL_TRY(check(current.type.code == Code::floating));
  } else {
    return std::optional<Codec>();
  }
  return std::optional(std::move(codec));
}

// The coding of one chunk while its list is read.
struct CodingState {
  ChunkCoding coding = {};
  FilterType current = {};                // of the elements behind the steps so far
  std::vector<std::uint32_t> order = {};  // stored dimension i is dimension order[i] of the array
  Shape shape = {};                       // of the chunk, in the order of the array
  bool as_bytes = false;                  // behind the step from elements to bytes
};

Result<ChunkCoding> parse_v3_list(const Json& codecs, ElementType type, const Shape& shape,
                                  std::vector<std::uint32_t> order, int depth);

// Dimensions as they are.
std::vector<std::uint32_t> natural_order(std::size_t rank) {
  std::vector<std::uint32_t> order(rank);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

Result<std::vector<std::uint32_t>> parse_order(const Json& value, std::size_t rank) {
  std::vector<std::uint32_t> order = natural_order(rank);
  if (value == "C") return order;
  if (value == "F") {
    std::reverse(order.begin(), order.end());
    return order;
  }
  if (!value.is_array() || value.size() != rank) {
    return corrupt("codec 'transpose': order is {}, accepted is a permutation of {} dimensions", json_excerpt(value),
                   rank);
  }
  std::vector<bool> seen(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto dimension = count_of(value[i]);
    if (!dimension || *dimension >= rank || seen[static_cast<std::size_t>(*dimension)]) {
      return corrupt("codec 'transpose': order is {}, accepted is a permutation of {} dimensions", json_excerpt(value),
                     rank);
    }
    order[i] = static_cast<std::uint32_t>(*dimension);
    seen[order[i]] = true;
  }
  return order;
}

Status add_transpose(const Json& configuration, CodingState& state) {
  const auto given = configuration.find("order");
  if (given == configuration.end()) return corrupt("codec 'transpose': order is missing");
  CGL_TRY_ASSIGN(const auto order, parse_order(*given, state.order.size()));
  std::vector<std::uint32_t> composed(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) composed[i] = state.order[order[i]];
  if (!state.coding.chain.empty()) {
    // Behind a filter of values elements have to move while chunks are decoded; else they do when they find their
    // place.
    Codec codec{.kind = CodecKind::permute, .name = "transpose", .element_bytes = state.current.type.bytes()};
    for (const std::uint32_t dimension : state.order) codec.shape.push_back(state.shape[dimension]);
    codec.order = order;
    state.coding.chain.push_back(std::move(codec));
  } else {
    state.coding.layout.order = composed;
  }
  state.order = std::move(composed);
  return {};
}

Status add_bytes(const Parameters& given, CodingState& state) {
  state.as_bytes = true;
  CGL_TRY_ASSIGN(const std::string endian, given.text("endian", "little"));
  if (endian != "little" && endian != "big") return given.wrong("endian", endian, "little or big");
  const ElementType type = state.current.type;
  if (endian == "little" || type.bytes() == 1) return {};
  if (state.coding.chain.empty()) {
    state.coding.layout.big_endian = true;
    return {};
  }
  const std::size_t number = type.code == Code::complex ? type.bytes() / 2 : type.bytes();
  state.coding.chain.push_back({.kind = CodecKind::swap_bytes, .name = "bytes", .element_bytes = number});
  return {};
}

Status add_sharding(const Json& configuration, CodingState& state, int depth) {
  if (!state.coding.chain.empty()) {
    return corrupt("codec '{}' before sharding_indexed is not supported", state.coding.chain.front().name);
  }
  if (depth >= deepest_sharding) return corrupt("codec 'sharding_indexed': nested more than {} deep", deepest_sharding);
  state.as_bytes = true;
  auto sharding = std::make_shared<Sharding>();
  const std::size_t rank = state.order.size();
  sharding->order = state.order;
  sharding->inner_shape.resize(rank);
  for (const auto& [name, value] : configuration.items()) {
    if (name != "chunk_shape" && name != "codecs" && name != "index_codecs" && name != "index_location") {
      return corrupt("codec 'sharding_indexed': its member {} is not known", json_excerpt(name));
    }
  }
  const Json* const shape = JsonView(configuration)["chunk_shape"].list();
  if (shape == nullptr || shape->size() != rank) {
    return corrupt("codec 'sharding_indexed': chunk_shape is not a list of {} numbers", rank);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const std::uint32_t dimension = state.order[i];
    const auto extent = count_of((*shape)[i]);
    if (!extent || *extent == 0 || state.shape[dimension] % *extent != 0) {
      return corrupt("codec 'sharding_indexed': inner chunks of {} do not divide the shard's {}",
                     json_excerpt((*shape)[i]), state.shape[dimension]);
    }
    sharding->inner_shape[dimension] = *extent;
  }
  const auto location = configuration.find("index_location");
  if (location != configuration.end()) {
    if (*location != "start" && *location != "end") {
      return corrupt("codec 'sharding_indexed': index_location is {}, accepted is start or end",
                     json_excerpt(*location));
    }
    sharding->index_at_start = *location == "start";
  }
  const auto inner = configuration.find("codecs");
  if (inner == configuration.end()) return corrupt("codec 'sharding_indexed': codecs is missing");
  CGL_TRY_ASSIGN(ChunkCoding coding,
                 add_context(parse_v3_list(*inner, state.current.type, sharding->inner_shape, state.order, depth + 1),
                             "codec 'sharding_indexed'"));
  sharding->inner = std::make_shared<const ChunkCoding>(std::move(coding));
  const auto index = configuration.find("index_codecs");
  if (index == configuration.end()) return corrupt("codec 'sharding_indexed': index_codecs is missing");
  Shape index_shape(rank + 1, 2);
  for (std::size_t i = 0; i < rank; ++i) {
    index_shape[i] = state.shape[state.order[i]] / sharding->inner_shape[state.order[i]];
  }
  CGL_TRY_ASSIGN(ChunkCoding index_coding, add_context(parse_v3_list(*index, {Code::unsigned_integer, 64}, index_shape,
                                                                     natural_order(rank + 1), deepest_sharding),
                                                       "codec 'sharding_indexed': index"));
  if (index_coding.layout.big_endian) {
    index_coding.chain.insert(index_coding.chain.begin(),
                              {.kind = CodecKind::swap_bytes, .name = "bytes", .element_bytes = 8});
  }
  const bool fixed = has_fixed_size(index_coding.chain) && !index_coding.layout.shuffled &&
                     index_coding.layout.order == natural_order(rank + 1);
  if (!fixed) return corrupt("codec 'sharding_indexed': its index is compressed or reordered, which is not supported");
  sharding->index_chain = std::move(index_coding.chain);
  state.coding.sharding = std::move(sharding);
  return {};
}

// A byte shuffle of whole elements is undone while elements find their place.
bool shuffles_elements(const Codec& codec, const CodingState& state) {
  return codec.kind == CodecKind::shuffle && state.coding.chain.empty() && state.coding.sharding == nullptr &&
         !state.coding.layout.shuffled && codec.element_bytes == state.current.type.bytes();
}

Result<ChunkCoding> parse_v3_list(const Json& codecs, ElementType type, const Shape& shape,
                                  std::vector<std::uint32_t> order, int depth) {
  if (!codecs.is_array()) return corrupt("codecs is {}, not a list", json_excerpt(codecs));
  CodingState state{.current = {type, false}, .order = order, .shape = shape};
  state.coding.layout.order = std::move(order);
  for (const Json& entry : codecs) {
    CGL_TRY_ASSIGN(const Extension extension, parse_extension(entry, "codec"));
    const Parameters given(extension.configuration, extension.name);
    const bool of_numcodecs = extension.name.starts_with("numcodecs.");
    const std::string plain_name = of_numcodecs ? extension.name.substr(10) : extension.name;
    if (!of_numcodecs && (plain_name == "transpose" || plain_name == "bytes" || plain_name == "sharding_indexed")) {
      if (state.as_bytes) return corrupt("codec '{}' stands behind the step to bytes", plain_name);
      if (plain_name == "transpose") {
        CGL_TRY(add_transpose(extension.configuration, state));
      } else if (plain_name == "bytes") {
        CGL_TRY(add_bytes(given, state));
      } else {
        CGL_TRY(add_sharding(extension.configuration, state, depth));
      }
      continue;
    }
    CGL_TRY_ASSIGN(auto filter, parse_value_filter(plain_name, given, state.current));
    if (filter) {
      if (state.as_bytes) return corrupt("codec '{}' stands behind the step to bytes", extension.name);
      // Elements are in the machine's byte order here, whatever the filter's types say.
      filter->decoded.big_endian = filter->encoded.big_endian = false;
      state.current = filter->encoded;
      state.coding.chain.push_back(std::move(*filter));
      continue;
    }
    CGL_TRY_ASSIGN(auto step, parse_byte_codec(plain_name, given, state.current.type.bytes(), !of_numcodecs));
    if (!step) return unknown_codec(extension.name);
    if (!state.as_bytes) return corrupt("codec '{}' stands before the step to bytes", extension.name);
    if (state.coding.sharding != nullptr && step->kind != CodecKind::crc32c && step->kind != CodecKind::fletcher32) {
      return corrupt("codec '{}' behind sharding_indexed is not supported: a shard could not be read in parts",
                     extension.name);
    }
    if (shuffles_elements(*step, state)) {
      state.coding.layout.shuffled = true;
    } else {
      state.coding.chain.push_back(std::move(*step));
    }
  }
  if (!state.as_bytes) return corrupt("codecs has no step from elements to bytes ('bytes' or 'sharding_indexed')");
  return std::move(state.coding);
}

}  // namespace

Result<Extension> parse_extension(const Json& value, std::string_view what) {
  if (value.is_string()) return Extension{value.get<std::string>(), Json::object()};
  const std::string* const named = JsonView(value)["name"].text();
  if (named == nullptr) return corrupt("{} {} is neither a name nor an object with one", what, json_excerpt(value));
  Extension extension{*named, Json::object()};
  for (const auto& [name, member] : value.items()) {
    if (name == "configuration") {
      if (member.is_null()) continue;
      if (!member.is_object()) return corrupt("{} '{}': configuration is not an object", what, extension.name);
      extension.configuration = member;
    } else if (name != "name" && name != "must_understand") {
      return corrupt("{} '{}': its member '{}' is not known", what, extension.name, name);
    }
  }
  return extension;
}

Result<ChunkCoding> parse_v2_coding(const Json& filters, const Json& compressor, FilterType type,
                                    std::span<const std::uint64_t> chunk_shape, bool column_major) {
  CodingState state{.current = type, .shape = Shape(chunk_shape.begin(), chunk_shape.end()), .as_bytes = true};
  state.order = natural_order(chunk_shape.size());
  if (column_major) std::reverse(state.order.begin(), state.order.end());
  state.coding.layout.order = state.order;
  state.coding.layout.big_endian = type.big_endian;
  const auto add = [&](const Json& entry) -> Status {
    const std::string* const id = JsonView(entry)["id"].text();
    if (id == nullptr) return corrupt("codec {} is not an object with an id", json_excerpt(entry));
    const std::string& name = *id;
    const Parameters given(entry, name);
    CGL_TRY_ASSIGN(auto filter, parse_value_filter(name, given, state.current));
    if (filter) {
      state.current = filter->encoded;
      state.coding.chain.push_back(std::move(*filter));
      return {};
    }
    CGL_TRY_ASSIGN(auto step, parse_byte_codec(name, given, state.current.type.bytes(), false));
    if (!step) return unknown_codec(name);
    if (shuffles_elements(*step, state)) {
      state.coding.layout.shuffled = true;
    } else {
      state.coding.chain.push_back(std::move(*step));
    }
    return {};
  };
  if (!filters.is_null()) {
    if (!filters.is_array()) return corrupt("filters is {}, not a list", json_excerpt(filters));
    for (const Json& entry : filters) CGL_TRY(add(entry));
  }
  if (!compressor.is_null()) CGL_TRY(add(compressor));
  return std::move(state.coding);
}

Result<ChunkCoding> parse_v3_coding(const Json& codecs, ElementType type, std::span<const std::uint64_t> chunk_shape) {
  return parse_v3_list(codecs, type, Shape(chunk_shape.begin(), chunk_shape.end()), natural_order(chunk_shape.size()),
                       0);
}

}  // namespace cingulum::zarr
