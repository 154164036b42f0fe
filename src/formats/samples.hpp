// Numbers of a file and numbers in memory: any integer or floating type in either byte order to float or double with
// slope and intercept applied, and back. Used by the NIfTI reader and writer. Each value is computed in double and
// rounded once, so the result depends neither on the instruction set nor on how a volume is cut into blocks.
#pragma once

#include <cstddef>
#include <span>

#include "base/element_type.hpp"

namespace cingulum {

struct SampleFormat {
  ElementType type = {};
  bool swapped = false;  // stored in the other byte order than this machine's
  double slope = 1;      // value = stored * slope + intercept
  double intercept = 0;
};

// (u)int8 to (u)int64, float32, float64.
[[nodiscard]] bool is_real_sample(ElementType type) noexcept;

// values.size() numbers from as many stored ones.
void decode_samples(const SampleFormat& format, std::span<const std::byte> stored, std::span<float> values);
void decode_samples(const SampleFormat& format, std::span<const std::byte> stored, std::span<double> values);

// stored = (value - intercept) / slope, for integers rounded to nearest even and clamped to the type's range, NaN
// becoming 0. In this machine's byte order.
void encode_samples(const SampleFormat& format, std::span<const float> values, std::span<std::byte> stored);
void encode_samples(const SampleFormat& format, std::span<const double> values, std::span<std::byte> stored);

}  // namespace cingulum
