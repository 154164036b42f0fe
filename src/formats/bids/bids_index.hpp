// The diffusion series of a BIDS dataset, raw or derived (QSIPrep), with the files that belong to each: b-values and
// b-vectors and metadata by BIDS's inheritance, the brain mask. Made in one pass over the folders: each is listed once
// and no file is opened. Called by `cingulum batch`. What is wrong with one series is said of it and stops no other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/bids/bids_name.hpp"

namespace cingulum {

// Paths are relative to the dataset.
struct BidsSeries {
  std::string subject;  // "01"
  std::string session;  // empty: none
  BidsName name;
  std::filesystem::path dwi;
  std::filesystem::path bval;
  std::filesystem::path bvec;
  std::filesystem::path mask;               // empty: there is none
  std::vector<std::filesystem::path> json;  // those that apply, from the dataset's folder down
  std::string problem;                      // why it cannot be tracked; empty: it can
  std::filesystem::path problem_file;

  [[nodiscard]] std::string unit() const { return bids_unit_name(name); }
};

// A folder that should hold a subject and does not, or cannot be read.
struct BidsProblem {
  std::string unit;  // "sub-02", as the folder is called
  std::filesystem::path file;
  std::string what;
};

struct BidsIndex {
  std::vector<BidsSeries> series;  // by subject, session and name
  std::vector<BidsProblem> problems;
  std::vector<std::string> subjects;  // all that have a folder with a good name, ascending
};

// Only these subjects and sessions (labels) are looked at; empty: all.
struct BidsSelection {
  std::vector<std::string> subjects;
  std::vector<std::string> sessions;
};

// Fails where the folder itself cannot be listed.
[[nodiscard]] Result<BidsIndex> index_bids(const std::filesystem::path& dataset, const BidsSelection& selection);

}  // namespace cingulum
