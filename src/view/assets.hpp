// The files of the page, which are part of the program: those of web/dist at build time, or a page that says that they
// were left out.
#pragma once

#include <string_view>

namespace cingulum::view {

struct Asset {
  std::string_view text;  // empty: there is none of that name
  std::string_view type;  // of HTTP
};
[[nodiscard]] Asset find_asset(std::string_view name);

}  // namespace cingulum::view
