// The files of the diffusion series that `cingulum track` tracks: from options, from their places after DWI, found
// beside it, or the phantom of a run without data. Names only; track_data.cpp has them read.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/track_sidecar.hpp"
#include "cli/verb.hpp"
#include "dmri/series/dwi_series.hpp"

namespace cingulum {

struct SeriesPaths {
  SeriesFiles files;                // the mask empty: to be made
  std::filesystem::path seed_mask;  // empty: where the stopping map passes
  bool phantom = false;
  std::vector<FoundInput> found;  // no option names them
};

// A run without data makes the phantom `brain` first, beside `out` or in --cache-dir.
[[nodiscard]] Result<SeriesPaths> series_paths(const ParsedArguments& arguments, const std::filesystem::path& out,
                                               VerbContext& context);

// "dwi.nii.gz" -> "dwi", with `ending` after it.
[[nodiscard]] std::filesystem::path beside_series(const std::filesystem::path& series, std::string_view ending);

}  // namespace cingulum
