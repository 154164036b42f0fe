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

// Appends the positions from `first` on, `count` numbers, as `type` (float16, float32, float64) to `out`. Fails where a
// finite position does not fit float16.
[[nodiscard]] Status encode_positions(const TractogramBatch& batch, std::size_t first, std::size_t count,
                                      ElementType type, std::vector<std::byte>& out);

// The bytes of the batch's positions where they are those of a file of `type` already; empty otherwise.
[[nodiscard]] std::span<const std::byte> positions_as_stored(const TractogramBatch& batch, ElementType type);

// Puts numbers of `type`, little-endian, into the batch's positions from `first` on, which become the last: doubles for
// float64 unless `as_float`.
void decode_positions(std::span<const std::byte> bytes, ElementType type, bool as_float, std::size_t first,
                      TractogramBatch& batch);

// "int8" ... "float64", "complex64", "complex128"; also "bit" and "bool", which are uint8 of 0 and 1.
[[nodiscard]] std::optional<ElementType> element_type_from_name(std::string_view name);

}  // namespace cingulum
