// What a new array is to be: what a user says, completed by what we choose (chunks, shards, codecs), as the metadata
// that are then written. Called by the verbs and by whoever writes OME-Zarr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "zarr/array_metadata.hpp"

namespace cingulum::zarr {

// The codecs of a new array, as a user names them.
struct CodecChoice {
  enum class Kind : std::uint8_t { none, zstd, gzip, zlib, bz2, lz4, blosc } kind = Kind::none;
  std::optional<int> level = {};  // absent: the codec's default
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
  Shape chunk_shape;    // leaf chunks; empty: chosen
  Shape shard_shape;    // v3; multiples of the chunks; empty: chosen
  bool sharded = true;  // v3 alone
  // Absent: v3 stores the bytes as they are, with a checksum; v2, which has none for plain bytes, zstd frames with
  // theirs.
  std::optional<CodecChoice> codec;
  Json fill_value = 0;
  char separator = '/';
  std::vector<std::string> dimension_names;
  Json attributes = Json::object();
};
// Checks, and chooses what was left open: chunks of about 1 MiB, shards of about 64 MiB.
[[nodiscard]] Result<ArrayMetadata> describe_new_array(const NewArray& wanted);

}  // namespace cingulum::zarr
