// Types of elements and fill values as the two versions of Zarr spell them.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

using Json = nlohmann::ordered_json;

// "<f4", "|b1", ">c16". Strings, objects, times and records are refused by name.
[[nodiscard]] Result<FilterType> parse_v2_type(std::string_view text);
// "float32", "bool", "complex128".
[[nodiscard]] Result<ElementType> parse_v3_type(std::string_view text);
[[nodiscard]] std::string v2_type_name(ElementType type, bool big_endian);

// The first type.bytes() of it, in the machine's byte order.
using FillValue = std::array<std::byte, 16>;
// Numbers; "NaN", "Infinity", "-Infinity"; "0x7fc00000", the bits; true and false; pairs of these for complex numbers;
// where `base64` (v2), the bytes in that form, in the stored byte order.
[[nodiscard]] Result<FillValue> parse_fill_value(const Json& value, ElementType type, bool base64 = false,
                                                 bool big_endian = false);
// As v3 writes it; a NaN other than the usual one by its bits.
[[nodiscard]] Json fill_value_json(const FillValue& value, ElementType type);

}  // namespace cingulum::zarr
