// What the readers and writers of TRK, TCK and TRX share: checking a batch against its layout, and converting positions
// between the types of files and of batches. Not for callers of tractogram.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/first_failure.hpp"
#include "base/result.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

constexpr ElementType float16_type = {ElementType::Code::floating, 16};
constexpr ElementType float32_type = {ElementType::Code::floating, 32};
constexpr ElementType float64_type = {ElementType::Code::floating, 64};

// Offsets that start at 0 and do not decrease, positions in one of the two vectors, every field of the right size.
[[nodiscard]] Status check_batch(const TractogramLayout& layout, const TractogramBatch& batch);

// Rounded once, to nearest even. NaN and infinity stay; a finite number beyond 65504 gives infinity.
[[nodiscard]] std::uint16_t double_to_float16(double value) noexcept;

// Writes the positions from `first` on, as many numbers as `out` has room for, as `type` (float16, float32, float64).
// Fails where a finite position does not fit float16. any thread
[[nodiscard]] Status encode_positions(const TractogramBatch& batch, std::size_t first, ElementType type,
                                      std::span<std::byte> out);

// The same for the streamlines from `first` to before `last`, whether the batch
// has their positions or makes them.
[[nodiscard]] Status encode_streamlines(const TractogramBatch& batch, std::size_t first, std::size_t last,
                                        ElementType type, std::span<std::byte> out);

// What a thread encodes at a time, about.
constexpr std::size_t encoded_part_bytes = std::size_t{1} << 18U;

// Streamlines of a batch in such parts, for formats that keep the bytes of a streamline together.
struct StreamlineParts {
  std::vector<std::size_t> streamlines;  // the first of each part, and their number
  std::vector<std::uint64_t> offsets;    // of each part in bytes, and their sum

  // `bytes_before(i)`: of the streamlines before i.
  template <class BytesBefore>
  void cut(std::size_t streamline_count, const BytesBefore& bytes_before) {
    streamlines.assign(1, 0);
    offsets.assign(1, 0);
    for (std::size_t i = 1; i <= streamline_count; ++i) {
      const std::uint64_t before = bytes_before(i);
      if (before - offsets.back() < encoded_part_bytes && i < streamline_count) continue;
      streamlines.push_back(i);
      offsets.push_back(before);
    }
  }
};

// Puts numbers of `type`, little-endian, into the batch's positions from `first` on, which become the last: doubles for
// float64 unless `as_float`.
void decode_positions(std::span<const std::byte> bytes, ElementType type, bool as_float, std::size_t first,
                      TractogramBatch& batch);

// "int8" ... "float64", "complex64", "complex128"; also "bit" and "bool", which are uint8 of 0 and 1.
[[nodiscard]] std::optional<ElementType> element_type_from_name(std::string_view name);

}  // namespace cingulum
