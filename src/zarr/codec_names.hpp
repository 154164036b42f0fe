// Codecs as metadata name them: the objects {"id": ...} of Zarr v2 and {"name": ..., "configuration": ...} of v3, also
// those of numcodecs, become steps (codec.hpp), and the coding of a chunk (array_metadata.hpp). What is not known is
// refused by its name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "zarr/array_metadata.hpp"

namespace cingulum::zarr {

// An extension of v3, written as an object or as its name alone.
struct Extension {
  std::string name;
  Json configuration = Json::object();
};
// `what` is for messages: "codec". Members other than name, configuration and must_understand are refused.
[[nodiscard]] Result<Extension> parse_extension(const Json& value, std::string_view what);

// Filters and compressor of v2.
[[nodiscard]] Result<ChunkCoding> parse_v2_coding(const Json& filters, const Json& compressor, FilterType type,
                                                  std::span<const std::uint64_t> chunk_shape, bool column_major);
// The list of v3; `chunk_shape` in the order of the array's dimensions.
[[nodiscard]] Result<ChunkCoding> parse_v3_coding(const Json& codecs, ElementType type,
                                                  std::span<const std::uint64_t> chunk_shape);

}  // namespace cingulum::zarr
