// failures.tsv of `cingulum batch`: a line for each unit that failed, with the error and the command to repeat it. It
// is written anew after each, so that a killed worker leaves those that it knew. Lines of units that this worker does
// not have stay.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "runs/batch/batch_units.hpp"

namespace cingulum {

class FailureTable {
 public:
  // Takes the lines that are there, but for those of `units`. An absent file is an empty one.
  [[nodiscard]] static Result<FailureTable> open(std::filesystem::path path, const std::vector<std::string>& units,
                                                 WriteOptions options);

  // Adds it and writes the file.
  [[nodiscard]] Status add(const BatchFailure& failure, const std::string& command);
  [[nodiscard]] Status write() const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  FailureTable(std::filesystem::path path, WriteOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  std::filesystem::path path_;
  WriteOptions options_;
  std::multimap<std::string, std::string> lines_;  // by unit
};

}  // namespace cingulum
