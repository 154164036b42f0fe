// The dataset that `cingulum batch` writes: what describes it, and sidecars that may be shared. Nothing of it names a
// host, a user or a path of this machine: files of the dataset that was read are BIDS URIs, others their names alone.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "formats/bids/bids_index.hpp"

namespace cingulum {

// What is read is called so in URIs.
inline constexpr std::string_view source_dataset = "raw";

// dataset_description.json, .bidsignore, and where the source lies, for this machine. A description that is there
// stays.
[[nodiscard]] Status write_dataset_files(const std::filesystem::path& out, const std::filesystem::path& source,
                                         const WriteOptions& options);

// "sub-01/ses-a/dwi" and the tractogram's name in it, relative to the dataset.
[[nodiscard]] std::filesystem::path output_of_series(const BidsSeries& series, std::string_view getter);
[[nodiscard]] std::filesystem::path made_mask_of_series(const BidsSeries& series);

// The name under which a file that a run read is shared.
[[nodiscard]] std::string shared_name(const std::string& path, const std::filesystem::path& source);

// `arguments` and `inputs` of a sidecar with such names.
struct SharedFacts {
  nlohmann::ordered_json arguments;
  nlohmann::ordered_json inputs;
};
[[nodiscard]] SharedFacts shared_facts(nlohmann::ordered_json arguments, nlohmann::ordered_json inputs,
                                       const std::filesystem::path& source);

// The sidecar of `cingulum track` as it may be shared, with what BIDS wants to know in its member `bids`.
[[nodiscard]] nlohmann::ordered_json shared_sidecar(nlohmann::ordered_json sidecar,
                                                    const std::filesystem::path& source);

}  // namespace cingulum
