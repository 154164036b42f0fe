// Zarr hierarchies in zip archives: an entry a key. Called by store.cpp alone.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "zarr/store.hpp"

namespace cingulum::zarr {

[[nodiscard]] Result<std::shared_ptr<const Store>> open_zip_store(const std::filesystem::path& path);
[[nodiscard]] Result<std::unique_ptr<StoreOutput>> new_zip_hierarchy(const std::filesystem::path& path,
                                                                     const WriteOptions& options);

}  // namespace cingulum::zarr
