// JSON values read as counts, and shown in messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "zarr/data_type.hpp"

namespace cingulum::zarr {

// A whole number that is not negative, whichever kind of number JSON holds it as: some writers have 10.0.
[[nodiscard]] inline std::optional<std::uint64_t> count_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return value.get<std::uint64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= 0 && number < 0x1p53)) return std::nullopt;
  const auto count = static_cast<std::uint64_t>(number);
  return static_cast<double>(count) == number ? std::optional(count) : std::nullopt;
}

// At most 80 characters of the value's text.
[[nodiscard]] inline std::string json_excerpt(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80) text.replace(77, std::string::npos, "...");
  return text;
}

}  // namespace cingulum::zarr
