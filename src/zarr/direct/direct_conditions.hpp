// The conditions of this machine under which a file can be read directly, as facts: kernel, module, IOMMU, container,
// settings of cuFile, file system and mount. For people who want to know why; the decision itself is cuFile's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cingulum::zarr {

// One line each, the path's own facts last. `root` is "/" but in tests.
[[nodiscard]] std::vector<std::string> direct_conditions(const std::filesystem::path& path,
                                                         const std::filesystem::path& root = "/");

}  // namespace cingulum::zarr
