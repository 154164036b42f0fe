// A diffusion series on its way to a model: the signals of all volumes inside a mask, the gradient table, and
// directions in image axes by a frame that was checked. Called by `cingulum fit`, `track`, `bench` and Python, which
// get the same from files (read_series_head, read_series) and from arrays (series_of_arrays). It fits no model but the
// tensor of the check, and knows nothing of tractography.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/series/gradient_frame.hpp"
#include "dmri/series/median_otsu.hpp"
#include "formats/gradient_table.hpp"
#include "formats/image_geometry.hpp"
#include "formats/volume_array.hpp"
#include "images/on_grid.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct DwiSeries {
  DwiSignals signals;  // of all volumes, inside the mask
  GradientTable table;
  std::vector<numerics::Vec3d> directions;  // in image axes, one per volume
  double b0_threshold = default_b0_threshold;
};

struct SeriesFiles {
  std::filesystem::path dwi;
  std::filesystem::path bvals;  // FSL's pair, or
  std::filesystem::path bvecs;
  std::filesystem::path grad;  // MRtrix3's table
  std::filesystem::path mask;  // empty: to be made
};

// What is known before a volume is read.
struct SeriesHead {
  ImageGeometry geometry;
  GradientTable table;
  std::vector<std::string> warnings = {};  // of table and header
  bool oriented = true;                    // the header has an sform or a qform
};

struct SeriesRequest {
  double b0_threshold = default_b0_threshold;  // volumes of at most this b-value are b0
  WantedFrame frame = WantedFrame::of_format;
  bool check_frame = true;  // false: the caller is sure, as of a phantom of ours
};

struct SettledSeries {
  DwiSeries dwi;
  BrainMask mask;
  bool mask_made = false;  // by median Otsu of the mean b0, since none was given
  SettledFrame frame;
};

// Fails where the series and its table have different numbers of volumes.
[[nodiscard]] Result<SeriesHead> read_series_head(const SeriesFiles& files);

// The grid onto which masks and maps of the series are resampled.
[[nodiscard]] NamedGrid series_grid(const SeriesFiles& files, const SeriesHead& head);

[[nodiscard]] Result<SettledSeries> read_series(const SeriesFiles& files, const SeriesHead& head,
                                                const SeriesRequest& request, const FitMachine& machine);

// The same for a machine that is still being made ready: `find` is asked for it once all volumes are read.
using FindFitMachine = std::function<Result<FitMachine>()>;
[[nodiscard]] Result<SettledSeries> read_series(const SeriesFiles& files, const SeriesHead& head,
                                                const SeriesRequest& request, ThreadPool& pool,
                                                const CancelToken& cancel, const FindFitMachine& find);

// `mask` has one byte per voxel and is made where it is empty.
[[nodiscard]] Result<SettledSeries> series_of_arrays(const SeriesHead& head, const VolumeArray& series,
                                                     std::span<const std::uint8_t> mask, const SeriesRequest& request,
                                                     const FitMachine& machine);
// `values` volume after volume, x fastest in each.
[[nodiscard]] Result<SettledSeries> series_of_arrays(const SeriesHead& head, std::span<const float> values,
                                                     std::span<const std::uint8_t> mask, const SeriesRequest& request,
                                                     const FitMachine& machine);

// Takes directions from image axes to scanner axes: along the columns of the affine, without their lengths.
[[nodiscard]] std::vector<numerics::Vec3d> to_world(std::span<const numerics::Vec3d> directions, const Affine& affine);

}  // namespace cingulum
