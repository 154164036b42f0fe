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
#include "zarr/data_type.hpp"

namespace cingulum::zarr {

constexpr std::size_t max_rank = 32;
using Shape = std::vector<std::uint64_t>;  // slowest dimension first

// How the elements of a leaf chunk stand in its decoded bytes. Whatever can be undone while elements are put in place
// is said here instead of being a step of the chain: readers do it in the same pass, on the device where they can.
struct ChunkLayout {
  std::vector<std::uint32_t> order;  // dimension i of the stored array is dimension order[i] of the array
  bool big_endian = false;
  bool shuffled = false;  // by bytes of an element, over the whole chunk
  [[nodiscard]] bool operator==(const ChunkLayout&) const = default;
};

struct ChunkCoding;

// sharding_indexed: a chunk that is a grid of inner chunks and an index of where they are.
struct Sharding {
  Shape inner_shape;                 // in the order of the array's dimensions
  std::vector<std::uint32_t> order;  // dimension i of the grid in the index is dimension order[i] of the array
  std::shared_ptr<const ChunkCoding> inner;
  CodecChain index_chain;  // of the index, uint64 little-endian: fixed size
  bool index_at_start = false;
};

// The steps from the elements of a chunk to its bytes.
struct ChunkCoding {
  ChunkLayout layout;                        // of a leaf
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
  FillValue fill{};
  bool fill_is_null = false;  // v2: undefined, zeros are given
  ChunkCoding coding;
  KeyEncoding key_encoding = KeyEncoding::v3_default;
  char separator = '/';
  std::vector<std::string> dimension_names;  // empty: none; an unnamed one is ""
  // Texts, since destroying JSON allocates, and metadata lives as long as its array is read.
  std::string document;            // zarr.json, or .zarray
  std::string attributes = "{}";   // a JSON object
  std::vector<std::string> notes;  // what was unusual and accepted

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
  // No overflow: checked when parsed.
  [[nodiscard]] std::uint64_t element_count() const;
  [[nodiscard]] std::uint64_t bytes() const { return element_count() * type.bytes(); }
  // Shape of the chunks that hold elements: of the innermost inner chunks.
  [[nodiscard]] Shape leaf_shape() const;
  [[nodiscard]] const ChunkCoding& leaf_coding() const;
  // Chunks with keys along each dimension.
  [[nodiscard]] Shape grid() const;
  [[nodiscard]] std::string chunk_key(std::span<const std::uint64_t> index) const;
};

[[nodiscard]] Result<ArrayMetadata> parse_v2_array(const Json& zarray, const Json& zattrs);
[[nodiscard]] Result<ArrayMetadata> parse_v3_array(const Json& zarr_json);

// "transpose, bytes, zstd (level 3), crc32c": for people.
[[nodiscard]] std::string describe_coding(const ArrayMetadata& metadata);

}  // namespace cingulum::zarr
