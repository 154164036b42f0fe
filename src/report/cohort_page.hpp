// The page of a cohort: a row for each tractogram of a folder of derivatives, from their sidecars, with a small
// picture, and a score where the truth is known. What lies far from the others, by the median and its deviation, is
// marked. The page is written row by row: memory is that of one tractogram's picture, and of a few numbers for each.
// Called by `cingulum batch BIDS OUT group`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

struct CohortRequest {
  std::filesystem::path folder;                     // tractograms are looked for below it
  std::optional<std::filesystem::path> truth = {};  // the folder of a phantom, the same for all
  int picture_pixels = 150;                         // of the edge of a view; 0: no pictures
  CancelToken cancel = {};
};

// A number for each tractogram; those that are far from the others are found for each of these.
struct CohortMeasure {
  std::string name;   // "mean_length_mm"
  std::string label;  // of the column
  double median = 0;
  double deviation = 0;  // median of the distances to it
};

struct CohortSubject {
  std::string name;  // of the file, without its ending
  std::filesystem::path file;
  std::vector<std::optional<double>> values;  // one per measure
  std::vector<std::size_t> outlying;          // which of them are far from the others'
  std::string problem;                        // why there are none
};

struct Cohort {
  std::vector<CohortMeasure> measures;
  std::vector<CohortSubject> subjects;  // by name
};

// A value is far if it is more than this many deviations (of a normal distribution) from the median.
constexpr double far_deviations = 3.5;

// Marks the values that are far from the others; none where fewer than five are there or more than half are equal.
// `values` have gaps where a subject has none.
[[nodiscard]] std::vector<bool> find_outliers(const std::vector<std::optional<double>>& values, double& median,
                                              double& deviation);

// Reads sidecars alone, and tractograms where a truth is given. One that cannot be read is a subject with a problem.
[[nodiscard]] Result<Cohort> survey_cohort(const CohortRequest& request, ThreadPool& pool,
                                           const std::function<void()>& advance);

[[nodiscard]] nlohmann::ordered_json cohort_json(const Cohort& cohort);

// Tractograms are read for their pictures.
[[nodiscard]] Status write_cohort_page(const std::filesystem::path& path, const Cohort& cohort,
                                       const CohortRequest& request, const WriteOptions& options, ThreadPool& pool,
                                       const std::function<void()>& advance);

}  // namespace cingulum
