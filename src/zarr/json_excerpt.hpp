// A piece of JSON in a message.
#pragma once

#include <string>

#include "zarr/data_type.hpp"

namespace cingulum::zarr {

// At most 80 characters of it.
[[nodiscard]] inline std::string json_excerpt(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80) text.replace(77, std::string::npos, "...");
  return text;
}

}  // namespace cingulum::zarr
