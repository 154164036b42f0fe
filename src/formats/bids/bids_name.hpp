// The names of files in a BIDS dataset: `sub-01_ses-a_dir-AP_dwi.nii.gz` is entities, each a key and a label, a suffix
// and an extension. Called by the index of a dataset and by `cingulum batch`, whose outputs it names after the draft
// for tractography (BEP046). Names alone: nothing is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

struct BidsName {
  std::vector<std::pair<std::string, std::string>> entities;  // in the order of the name
  std::string suffix;                                         // "dwi"
  std::string extension;                                      // ".nii.gz"

  // The label of an entity, or none.
  [[nodiscard]] std::optional<std::string_view> label(std::string_view key) const;
};

// None: the name is not of this form.
[[nodiscard]] std::optional<BidsName> parse_bids_name(std::string_view file_name);

// Letters and digits, and `+`: no blank, no separator, no "..".
[[nodiscard]] bool is_bids_label(std::string_view label);

// "sub-01" or "01" -> "01"; refused where it is no label. `key` is "sub" or "ses", `argument` who gave it.
[[nodiscard]] Result<std::string> bids_label_of(std::string_view text, std::string_view key, std::string_view argument);

// Whether a file of these entities applies to another: each of its entities is the other's, too.
[[nodiscard]] bool applies_to(const BidsName& candidate, const BidsName& file);

// "sub-01_ses-a_dir-AP": what tells one series from another, in the order of BIDS. What is said of how it was
// processed (`desc`) is left out.
[[nodiscard]] std::string bids_unit_name(const BidsName& series);

// "sub-01_dir-AP_tract-wholebrain_track-prob_tractogram": of the whole brain, tracked by `getter`.
[[nodiscard]] std::string bids_tractogram_name(const BidsName& series, std::string_view getter);

// "sub-01_dir-AP_desc-brain_mask": of a mask that was made for the series.
[[nodiscard]] std::string bids_mask_name(const BidsName& series);

}  // namespace cingulum
