// The cells of one line of a CSV table without quotes, trimmed: what our own tables and those of tiles are.
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
