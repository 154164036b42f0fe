// Makes the field that is tracked from a diffusion series, in one call: from arrays (make_series_field, after
// series_of_arrays) or from files (read_series_field). Called by `cingulum track`, by benches and by Python. The parts
// are dmri/series/dwi_series.hpp (signals, mask, frame) and dwi_preparation.hpp (stopping map, model, field).
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_series.hpp"
#include "dmri/sphere/sphere.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/field/tracking_data.hpp"

namespace cingulum {

struct SeriesFieldRequest {
  SeriesRequest series;
  FieldRequest field;
  Sphere sphere;
};

// `stop_map` has a number per voxel of the image; without it FA of the tensors of all volumes is the stopping map. The
// series is consumed: its memory is given back as soon as it can be.
[[nodiscard]] Result<TrackingData> make_series_field(SettledSeries series, std::optional<std::vector<float>> stop_map,
                                                     const SeriesFieldRequest& request, const FitMachine& machine,
                                                     const ProgressOptions& progress);

struct SeriesFieldFiles {
  SeriesFiles series;
  std::filesystem::path stop_map = {};  // empty: FA
  std::filesystem::path response = {};  // of CSD; empty: that of the request, else estimated
};

[[nodiscard]] Result<TrackingData> read_series_field(const SeriesFieldFiles& files, const SeriesHead& head,
                                                     const SeriesFieldRequest& request, const FitMachine& machine,
                                                     const ProgressOptions& progress);
// The same for a machine that is still being made ready: `find` is asked for it, once, when the series is read.
[[nodiscard]] Result<TrackingData> read_series_field(const SeriesFieldFiles& files, const SeriesHead& head,
                                                     const SeriesFieldRequest& request, ThreadPool& pool,
                                                     const CancelToken& cancel, const FindFitMachine& find,
                                                     const ProgressOptions& progress);

}  // namespace cingulum
