#include "view/assets.hpp"

#include <array>
#include <utility>

namespace cingulum {

// Made by tools/embed_text.py.
std::string_view embedded_page(std::string_view file_name);

namespace view {

Asset find_asset(std::string_view name) {
  std::string_view text = embedded_page(name);
  if (text.empty() && name == "index.html") text = embedded_page("left_out.html");
  if (text.empty()) return {};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> types = {
      {{".html", "text/html; charset=utf-8"},
       {".js", "text/javascript; charset=utf-8"},
       {".css", "text/css; charset=utf-8"},
       {".svg", "image/svg+xml"},
       {".json", "application/json"},
       {".txt", "text/plain; charset=utf-8"}}};
  for (const auto& [ending, type] : types) {
    if (name.ends_with(ending)) return {text, type};
  }
  return {text, "application/octet-stream"};
}

}  // namespace view
}  // namespace cingulum
