// Splits a line of a CSV table into trimmed cells. Quotes have no meaning: neither our own tables nor those of tiles
// use them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"

namespace cingulum::oct {

[[nodiscard]] inline std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t end = std::min(line.find(','), line.size());
    cells.push_back(trim(line.substr(0, end)));
    if (end == line.size()) return cells;
    line.remove_prefix(end + 1);
  }
}

}  // namespace cingulum::oct
