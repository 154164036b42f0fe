// Everything that the report says of a tractogram, gathered in two passes over its file in bounded memory: counts,
// exact quantiles of length, a histogram, end reasons, the density map, and every k-th streamline for drawing. Called
// by the report; it writes nothing. The result does not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"
#include "report/streamline_view.hpp"
#include "streamlines/density_map.hpp"

namespace cingulum {

struct LengthSummary {
  double mean_mm = 0;
  double median_mm = 0;
  double lower_quartile_mm = 0;  // quantiles between two values are interpolated
  double upper_quartile_mm = 0;
  double smallest_mm = 0;
  double largest_mm = 0;
  double total_mm = 0;
};

// counts[i] streamlines have i * bin_mm <= length < (i + 1) * bin_mm.
struct LengthBins {
  double bin_mm = 1;
  std::vector<std::uint64_t> counts;
};

struct EndReasonCounts {
  std::array<std::uint64_t, 256> start = {};  // by the code of the file
  std::array<std::uint64_t, 256> end = {};
};

struct SurveyOptions {
  std::uint64_t max_drawn = 20'000;                // streamlines
  std::uint64_t max_drawn_points = 8'000'000;      // 96 MB
  std::optional<ImageGeometry> density_grid = {};  // else the tractogram's reference, else a grid around it
  std::optional<double> midline_mm = {};           // world x; else the middle of the tractogram's grid, or of the map's
  CancelToken cancel = {};
};

struct TractogramSurvey {
  TractogramLayout layout;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
  std::uint64_t not_finite = 0;  // streamlines with a NaN or an infinity: in no length, picture or map
  LengthSummary lengths;
  LengthBins histogram;
  double midline_mm = 0;                       // world x of the plane between left and right
  std::uint64_t commissural = 0;               // whose ends lie on opposite sides of it
  std::uint64_t crossing_midline = 0;          // that cross it anywhere
  std::optional<EndReasonCounts> end_reasons;  // where the file has end_reason per streamline
  WorldBox box;                                // of the finite streamlines
  DrawnStreamlines drawn;
  std::uint64_t drawn_every = 1;  // the k of "every k-th"
  std::optional<DensityMap> density;
  std::string density_grid;  // where the grid came from, in words
  std::vector<std::string> warnings;
};

// `advance` is called with the number of streamlines that were read since it was last called; both passes count.
[[nodiscard]] Result<TractogramSurvey> survey_tractogram(const std::filesystem::path& path,
                                                         const SurveyOptions& options, ThreadPool& pool,
                                                         const std::function<void(std::uint64_t)>& advance = {});

}  // namespace cingulum
