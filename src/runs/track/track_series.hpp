// The files of the diffusion series that a request tracks: by their settings, by their places behind the series, found
// beside it, or the phantom of a run without data. Names only; track_source.cpp has them read.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/series/dwi_series.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "runs/track/track_sidecar.hpp"

namespace cingulum {

struct SeriesPaths {
  SeriesFiles files;                // the mask empty: to be made
  std::filesystem::path seed_mask;  // empty: where the stopping map passes
  bool phantom = false;
  std::vector<FoundInput> found;  // no option names them
};

// A run without data makes the phantom `brain` first, beside `out` or in its `cache_dir`.
[[nodiscard]] Result<SeriesPaths> series_paths(const TrackRequest& request, const std::filesystem::path& out,
                                               RunMachine& machine);

// "dwi.nii.gz" -> "dwi", with `ending` after it.
[[nodiscard]] std::filesystem::path beside_series(const std::filesystem::path& series, std::string_view ending);

}  // namespace cingulum
