// A report on a tractogram: its file, its sidecar, an anatomical image and a phantom's truth are read, and one page,
// its pictures and a summary for programs come out. Called by `cingulum report`, which writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/argument_name.hpp"
#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "report/picture.hpp"
#include "streamlines/density_map.hpp"

namespace cingulum {

struct ReportRequest {
  std::filesystem::path tracks;
  std::optional<std::filesystem::path> anatomy = {};
  std::optional<std::filesystem::path> truth = {};  // the folder of a phantom
  std::uint64_t max_streamlines = 20'000;           // in the pictures
  int picture_pixels = 900;                         // the edge of a view
  std::optional<double> midline_mm = {};            // world x between left and right; else the middle of the grid
  std::string command = {};                         // what to type to have this report again
  std::string track_command = {};                   // what to type to have the tractogram again, by its sidecar
  ArgumentNaming naming = plain_argument_name;      // how the page spells arguments
  CancelToken cancel = {};
};

struct NamedPicture {
  std::string name;  // "sagittal.png"
  Picture picture;
};

struct Report {
  std::string page;
  std::vector<NamedPicture> pictures;  // the three views, all of them side by side, slices and projections
  nlohmann::ordered_json summary;
  DensityMap density;
  std::vector<std::string> warnings;
};

[[nodiscard]] Result<Report> make_report(const ReportRequest& request, ThreadPool& pool,
                                         const std::function<void(std::uint64_t)>& advance = {});

}  // namespace cingulum
