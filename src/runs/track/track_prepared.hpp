// A prepared run (`prepare`, `prepared`): the fit of a series made once, as a file that travels, with all that a run
// needs besides: the request, the hashes of the inputs, the grid. Runs that start from it write what a run from the
// series writes, sidecar included, where the series is not at hand.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_sidecar.hpp"
#include "tract/field/series_field.hpp"
#include "tract/field/tracking_data.hpp"

namespace cingulum {

struct TrackRun;

// What a prepared file says, checked. Before the field is known.
struct PreparedRun {
  std::filesystem::path path;
  nlohmann::ordered_json arguments;  // with `rules`, as a sidecar has them
  std::vector<RunInput> inputs;      // of the files that are in it
  std::vector<FoundInput> found;     // which of them no option named
  nlohmann::ordered_json key;
  std::string phantom_hash;  // of a run without data
  ImageGeometry geometry;
  bool oriented = true;
};
[[nodiscard]] Result<PreparedRun> read_prepared_run(const std::filesystem::path& path);

// The field, for a request that must be the one it was made for: an option that decides it and differs is named.
[[nodiscard]] Result<TrackingData> read_prepared_field(const PreparedRun& prepared, const SeriesFieldRequest& request);

// After prepare_field, of a run that was asked for it.
[[nodiscard]] Status write_prepared(const TrackRun& run, const std::filesystem::path& path, RunMachine& machine);

}  // namespace cingulum
