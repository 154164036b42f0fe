// Makes the field that is tracked from the signals of a diffusion series: FA as the stopping map, the model that the
// getter asks for. Called by series_field.cpp and benches; the fits are those of `cingulum fit`. Only voxels that a
// streamline can read are fitted and kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/response.hpp"
#include "dmri/series/dwi_series.hpp"
#include "dmri/series/signal_floor.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"
#include "tract/field/tracking_data.hpp"

namespace cingulum {

enum class FieldModel { opdt, csa, csd, dti };
[[nodiscard]] std::string_view field_model_name(FieldModel model);

// Tensors of all voxels of the series by weighted least squares of all volumes: six numbers each, Dxx Dyy Dzz Dxy Dxz
// Dyz in image axes, and FA. A floor in units of the data is one of the other models: tensors then have their own.
struct TensorMaps {
  MappedVector<float> tensors;
  std::vector<float> fa;  // one number per voxel of the image, zero outside the mask
  double min_signal = 0;  // in units of the data
};
[[nodiscard]] Result<TensorMaps> fit_tensor_maps(const DwiSeries& series, const SignalFloor& min_signal,
                                                 const FitMachine& machine, Progress* progress);

struct FieldRequest {
  FieldModel model = FieldModel::opdt;
  bool bootstrap = false;    // the field of the boot getter, of OPDT or CSA
  int degree = 4;            // lowered, with a warning, where directions do not suffice
  double smoothing = 0.006;  // OPDT, CSA
  SignalFloor min_signal = {};
  std::optional<double> shell = {};
  std::optional<FibreResponse> response = {};  // CSD: this one, else estimated
  ResponseBox response_box = {};               // CSD: where it is estimated
  bool amplitudes = false;  // sample the series once on the sphere, clipped at zero, instead of at every step
  double stop_threshold = 0.1;
  // Voxels that are farther than this from every voxel where the stopping map passes are never read.
  std::int64_t reach_voxels = 1;
};

// The series is consumed: its memory is given back as soon as it can be. `tensors` where they were fitted before.
[[nodiscard]] Result<PreparedField> make_dwi_field(DwiSeries series, std::span<const float> stop_map,
                                                   const TensorMaps* tensors, const FieldRequest& request,
                                                   Sphere sphere, const FitMachine& machine,
                                                   const ProgressOptions& progress);

// Voxels within `reach` of one where the map is above the threshold, along each axis; all where the threshold is
// negative, since then voxels that are not stored would pass.
[[nodiscard]] std::vector<std::uint8_t> reachable_voxels(const ImageGeometry& geometry, std::span<const float> stop_map,
                                                         double threshold, std::int64_t reach);

}  // namespace cingulum
