// Numbers that a tractogram holds for its streamlines, by which a page colours them: data per streamline, the mean of
// data per point, and groups. Called by the server of `cingulum view`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace cingulum::view {

struct LineColumn {
  std::string name;                 // of the data; of several numbers "name 2" is the second
  std::vector<std::string> groups;  // of the column "group", whose numbers are places here
};

// At most 64; "group", where there are groups, is the last. Reads the heads and the groups, no streamline.
[[nodiscard]] Result<std::vector<LineColumn>> columns_of_lines(const std::filesystem::path& path);

// float32 of each streamline in the order of the file. Of data per point the mean along the line; of "group" the place
// of the first group that holds the line, and NaN where none does. ErrorKind::not_found where there is no such column.
[[nodiscard]] Result<std::vector<std::byte>> values_of_lines(const std::filesystem::path& path, std::size_t column);

}  // namespace cingulum::view
