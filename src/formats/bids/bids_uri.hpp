// BIDS URIs: `bids:NAME:sub-01/dwi/x.nii.gz` names a file of a dataset without saying where that lies. Files that are
// shared name their sources so. Where NAME lies, the dataset's dataset_description.json says (`DatasetLinks`), or the
// file .cingulum/links.json beside it, which is of this machine and is not shared. Called by `cingulum batch` and by
// `--from`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/result.hpp"

namespace cingulum {

[[nodiscard]] std::string bids_uri(std::string_view dataset, const std::filesystem::path& file);

// The file that a URI in `shared`, a file of a dataset, names. None: `text` is no such URI, or it is not known where
// the dataset lies.
[[nodiscard]] std::optional<std::filesystem::path> resolve_bids_uri(std::string_view text,
                                                                    const std::filesystem::path& shared);

// Says in the dataset `folder` where the dataset `name` lies on this machine.
[[nodiscard]] Status write_local_link(const std::filesystem::path& folder, std::string_view name,
                                      const std::filesystem::path& target, const WriteOptions& options);

}  // namespace cingulum
