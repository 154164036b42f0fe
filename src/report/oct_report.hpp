// A page about a volume of `cingulum oct run`: projections, seams, links between tiles, residuals, curvature, light,
// profiles, overlaps, gains, and every decision with its reason; the same numbers as JSON and as tables. It reads the
// volume and its sidecar alone. Called by `cingulum oct report`.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "report/png.hpp"

namespace cingulum {

struct OctReport {
  std::string html;
  std::string json;
  std::vector<std::pair<std::string, std::string>> tables;  // a word for the file's name, and the CSV
  GreyPicture projection;                                   // along depth
};

// The same volume gives the same report.
[[nodiscard]] Result<OctReport> make_oct_report(const std::filesystem::path& volume, ThreadPool* pool,
                                                const CancelToken& cancel);

// 16 bits between the 0.1st and the 99.9th percentile, beyond them cut; all black where they are equal.
[[nodiscard]] GreyPicture grey_picture(const std::vector<double>& values, std::size_t width, std::size_t height);

}  // namespace cingulum
