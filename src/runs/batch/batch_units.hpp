// What `cingulum batch` is to work through: the series of a BIDS dataset that labels, a list and a shard leave, and
// what is wrong before any is read. The order is that of the names, the same for every worker.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/bids/bids_index.hpp"

namespace cingulum {

// A line of failures.tsv, but for the command.
struct BatchFailure {
  std::string unit;  // "sub-01_run-1", or a subject where no series is known
  std::string file;
  std::string error;
};

struct BatchUnits {
  std::vector<BidsSeries> series;  // that can be tracked, as far as names tell
  std::vector<BatchFailure> failures;

  [[nodiscard]] bool empty() const { return series.empty() && failures.empty(); }
};

// Which series of the dataset are asked for; without any of these all are.
struct BatchChoice {
  std::vector<std::string> participants;  // labels, several of them in one text separated by blanks or commas
  std::vector<std::string> sessions;
  std::filesystem::path list;  // of subjects: a table with participant_id and perhaps session_id
  std::string shard;           // "I/N"
};

[[nodiscard]] Result<BatchUnits> find_batch_units(const std::filesystem::path& dataset, const BatchChoice& choice);

}  // namespace cingulum
