// The source of a run: a series or an image in files, arrays in the place of either, or a prepared field. It is opened
// in two steps, since the plan stands between them: first the grid is known, then the field is made, by
// series_field.hpp or file_field.hpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "dmri/series/dwi_series.hpp"
#include "images/on_grid.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_devices.hpp"
#include "runs/track/track_prepared.hpp"
#include "runs/track/track_request.hpp"
#include "runs/track/track_series.hpp"
#include "tract/field/file_field.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

// What a request names, opened: a series or an image.
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
[[nodiscard]] Result<TrackSource> open_source(const TrackRequest& request, Getter getter,
                                              const std::filesystem::path& out, const PreparedRun* prepared_run,
                                              WantedDevices& wanted, RunMachine& machine);

struct PreparedSource {
  TrackingData data;
  nlohmann::ordered_json key;  // of the field of a series in files, where it was asked for
  std::string fitted_on;       // a device, or empty where nothing was fitted
};

// Without a mask one is made and written to `made_mask`, where that is not empty. Models are fitted where it is
// tracked, where that can be. The image is given back once its field is made: both may be large.
[[nodiscard]] Result<PreparedSource> prepare_source(TrackSource& source, const TrackRequest& request,
                                                    const TrackingOptions& options, const TrackingPlan& plan,
                                                    const std::filesystem::path& made_mask,
                                                    const PreparedRun* prepared_run, WantedDevices& wanted,
                                                    RunMachine& machine);

}  // namespace cingulum
