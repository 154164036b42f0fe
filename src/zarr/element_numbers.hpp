// Elements of arrays as float64 numbers and back, whatever their type: integers, float16 to float64, booleans as 0 and
// 1, complex numbers as two. Each number is rounded once, integers to nearest even and clamped; only float16 goes by
// way of float32. Called where levels are made and images converted.
#pragma once

#include <cstddef>
#include <span>

#include "base/element_type.hpp"

namespace cingulum::zarr {

// How many numbers make one element: 2 where it is complex.
[[nodiscard]] std::size_t numbers_of_element(ElementType type);

// values.size() numbers; `bytes` are in the machine's byte order.
void decode_numbers(ElementType type, std::span<const std::byte> bytes, std::span<double> values);
void encode_numbers(ElementType type, std::span<const double> values, std::span<std::byte> bytes);

}  // namespace cingulum::zarr
