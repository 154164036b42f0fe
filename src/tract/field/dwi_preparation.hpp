// From a diffusion series to the field that is tracked: signals inside the mask, FA as the stopping map, the model that
// the getter asks for. Called by `cingulum track` and Python; the fits are those of `cingulum fit`. Only voxels that a
// streamline can read are fitted and kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/gradient_table.hpp"
#include "formats/image_geometry.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

enum class FieldModel { opdt, csa, csd, dti };
[[nodiscard]] std::string_view field_model_name(FieldModel model);

struct DwiSeries {
  DwiSignals signals;  // of all volumes, inside the mask
  GradientTable table;
  std::vector<numerics::Vec3d> directions;  // in image axes, one per volume
  double b0_threshold = default_b0_threshold;
};

// Mean of the b0 volumes, x fastest; fails where there are none.
[[nodiscard]] Result<std::vector<double>> mean_b0(const std::filesystem::path& series, const GradientTable& table,
                                                  double b0_threshold);

[[nodiscard]] Result<DwiSeries> read_dwi_series(const std::filesystem::path& series, const GradientTable& table,
                                                GradientFrame frame, std::span<const std::uint8_t> mask,
                                                double b0_threshold);

// Tensors of all voxels of the series by weighted least squares of all volumes: six numbers each, Dxx Dyy Dzz Dxy Dxz
// Dyz in image axes, and FA.
struct TensorMaps {
  BulkVector<float> tensors;
  std::vector<float> fa;  // one number per voxel of the image, zero outside the mask
};
[[nodiscard]] Result<TensorMaps> fit_tensor_maps(const DwiSeries& series, const FitMachine& machine,
                                                 Progress* progress);

struct FieldRequest {
  FieldModel model = FieldModel::opdt;
  bool bootstrap = false;    // the field of the boot getter, of OPDT or CSA
  int degree = 4;            // lowered, with a warning, where directions do not suffice
  double smoothing = 0.006;  // OPDT, CSA
  double min_signal = 1;     // OPDT, CSA
  std::optional<double> shell = {};
  std::filesystem::path response = {};  // CSD: from this file, else estimated
  bool amplitudes = false;  // sample the series once on the sphere, clipped at zero, instead of at every step
  double stop_threshold = 0.1;
  // Voxels that are farther than this from every voxel where the stopping map passes are never read.
  std::int64_t reach_voxels = 1;
};

struct PreparedField {
  Field field;
  nlohmann::ordered_json facts;       // for the sidecar: model, degree, shell, response, ...
  std::vector<std::string> warnings;  // that were logged: a kept fit repeats them
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
