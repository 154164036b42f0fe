// What `cingulum track` tracks: the arguments become requests of series_field.hpp or file_field.hpp, in two steps,
// since the plan stands between them: first the grid is known, then the field is made.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/given_arrays.hpp"
#include "cli/track_devices.hpp"
#include "cli/track_prepared.hpp"
#include "cli/track_series.hpp"
#include "cli/verb.hpp"
#include "dmri/series/dwi_series.hpp"
#include "images/on_grid.hpp"
#include "tract/field/file_field.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

// What the arguments name, opened: a series or an image.
struct TrackSource {
  std::optional<SeriesPaths> series;  // without a name where it is an array
  SeriesHead head;                    // of the series
  std::optional<FieldFile> image;     // amplitudes, harmonics, peaks or tensors
  ImageGeometry geometry;
  std::string name;  // for messages
  bool oriented = true;

  // Onto which masks and maps are brought.
  [[nodiscard]] NamedGrid grid() const { return {geometry, name, oriented}; }
};

// Where a phantom is to be made, the devices are waited for before.
// A prepared run, which may be null, is in the place of the series.
[[nodiscard]] Result<TrackSource> open_source(const ParsedArguments& arguments, const GivenArrays& arrays,
                                              Getter getter, const std::filesystem::path& out,
                                              const PreparedRun* prepared_run, WantedDevices& wanted,
                                              VerbContext& context);

struct PreparedSource {
  TrackingData data;
  nlohmann::ordered_json key;  // of the field of a series in files, where it was asked for
  std::string fitted_on;       // a device, or empty where nothing was fitted
};

// Without a mask one is made and written to `made_mask`, where that is not empty. Models are fitted where it is
// tracked, where that can be. The image is given back once its field is made: both may be large.
[[nodiscard]] Result<PreparedSource> prepare_source(TrackSource& source, const ParsedArguments& arguments,
                                                    const GivenArrays& arrays, const TrackingOptions& options,
                                                    const TrackingPlan& plan, const std::filesystem::path& made_mask,
                                                    const PreparedRun* prepared_run, WantedDevices& wanted,
                                                    VerbContext& context);

}  // namespace cingulum
