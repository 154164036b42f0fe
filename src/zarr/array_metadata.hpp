// What an array is: shape, chunks, type, fill value, steps between elements and bytes, names of the chunks' keys. Read
// from .zarray (Zarr v2) or zarr.json (v3) and written to either; both become the same plain record, so that no reader
// asks which version a file has. What is not understood is refused by name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "zarr/codec_chain.hpp"

namespace cingulum::zarr {

using Json = nlohmann::ordered_json;

constexpr std::size_t max_rank = 32;
using Shape = std::vector<std::uint64_t>;  // slowest dimension first

// How the elements of a leaf chunk stand in its decoded bytes. Whatever can be undone while elements are put in place
// is said here instead of being a step of the chain: readers do it in the same pass, on the device where they can.
struct ChunkLayout {
  std::vector<std::uint32_t> order;  // dimension i of the stored array is dimension order[i] of the chunk
  bool big_endian = false;
  bool shuffled = false;  // by bytes of an element, over the whole chunk
  [[nodiscard]] bool operator==(const ChunkLayout&) const = default;
};

struct ChunkCoding;

// sharding_indexed: a chunk that is a grid of inner chunks and an index of where they are.
struct Sharding {
  Shape inner_shape;  // in the order of the shard's own dimensions, as stored (behind `layout.order` of the shard)
  std::shared_ptr<const ChunkCoding> inner;
  CodecChain index_chain;  // of the index, uint64 little-endian: fixed size
  bool index_at_start = false;
};

// From the elements of a chunk to its bytes.
struct ChunkCoding {
  ChunkLayout layout;
  std::shared_ptr<const Sharding> sharding;  // null: a leaf
  CodecChain chain;                          // of a shard: what is done to all its bytes, mostly nothing
};

enum class KeyEncoding : std::uint8_t {
  v3_default,  // c/1/2, the scalar's is c
  v2,          // 1.2, the scalar's is 0
};

struct ArrayMetadata {
  int format = 3;  // 2 or 3
  Shape shape;
  Shape chunk_shape;  // of the chunks that have keys: shards, where there are
  ElementType type;
  std::array<std::byte, 16> fill{};  // the first type.bytes() of it, in the machine's byte order
  bool fill_is_null = false;         // v2: undefined, zeros are given
  ChunkCoding coding;
  KeyEncoding key_encoding = KeyEncoding::v3_default;
  char separator = '/';
  std::vector<std::string> dimension_names;  // empty: none; an unnamed one is ""
  Json attributes = Json::object();
  std::vector<std::string> notes;  // what was unusual and accepted

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
  [[nodiscard]] std::uint64_t element_count() const;  // no overflow: checked when parsed
  // Shape of the chunks that hold elements: of the innermost inner chunks.
  [[nodiscard]] Shape leaf_shape() const;
  [[nodiscard]] const ChunkCoding& leaf_coding() const;
  // Chunks with keys along each dimension.
  [[nodiscard]] Shape grid() const;
  [[nodiscard]] std::string chunk_key(std::span<const std::uint64_t> index) const;
};

[[nodiscard]] Result<ArrayMetadata> parse_v2_array(const Json& zarray, const Json& zattrs);
[[nodiscard]] Result<ArrayMetadata> parse_v3_array(const Json& zarr_json);

// The codecs of a new array, as a user names them.
struct CodecChoice {
  enum class Kind : std::uint8_t { none, zstd, gzip, zlib, bz2, lz4, blosc } kind = Kind::none;
  int level = -1;  // below 0: the codec's default
  BloscCompressor compressor = BloscCompressor::lz4;
  BloscShuffle shuffle = BloscShuffle::bytes;
  bool checksum = true;  // crc32c behind it (v3); v2: zstd frames with their own
};
// "none", "zstd", "zstd:5", "gzip", "zlib", "bz2", "lz4", "blosc-lz4", "blosc-zstd:3", ...
[[nodiscard]] Result<CodecChoice> parse_codec_choice(std::string_view text);

struct NewArray {
  int format = 3;
  Shape shape;
  ElementType type;
  Shape chunk_shape;        // leaf chunks; empty: chosen
  Shape shard_shape;        // v3; multiples of the chunks; empty: chosen
  bool sharded = true;      // v3 alone
  CodecChoice codec;
  Json fill_value = 0;
  char separator = '/';
  std::vector<std::string> dimension_names;
  Json attributes = Json::object();
};
// Checks, and chooses what was left open: chunks of about 1 MiB, shards of about 64 MiB.
[[nodiscard]] Result<ArrayMetadata> describe_new_array(const NewArray& wanted);

// The text of zarr.json; of .zarray.
[[nodiscard]] Result<Json> v3_json(const ArrayMetadata& metadata);
[[nodiscard]] Result<Json> v2_json(const ArrayMetadata& metadata);

// Types and fill values as the two versions spell them.
[[nodiscard]] Result<FilterType> parse_v2_type(std::string_view text);
[[nodiscard]] Result<ElementType> parse_v3_type(std::string_view text);
[[nodiscard]] std::string v2_type_name(ElementType type, bool big_endian);
[[nodiscard]] Result<std::array<std::byte, 16>> parse_fill_value(const Json& value, ElementType type);
[[nodiscard]] Json fill_value_json(std::span<const std::byte> element, ElementType type);

// "transpose, bytes, zstd (level 3), crc32c": for people.
[[nodiscard]] std::string describe_coding(const ArrayMetadata& metadata);

}  // namespace cingulum::zarr
