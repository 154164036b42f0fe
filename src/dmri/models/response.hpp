// The signal of a single fibre population, by which CSD deconvolves: estimated from voxels of high anisotropy in a box,
// or read from a text file. Files: "l1 l2 l3 S0" (eigenvalues in mm^2/s of a tensor, and the b0 signal, as DIPY's
// response tuple), or zonal harmonic coefficients l = 0, 2, 4, ... (MRtrix3). Both are written.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/series/volume_selection.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct ResponseBox {
  std::optional<std::array<std::int64_t, 3>> centre;  // voxel indices; the middle (size / 2) unless given
  std::int64_t radius = 10;                           // voxels to each side, cut at the border as in DIPY
  double least_fa = 0.7;                              // voxels above
  bool widen = false;  // where they are too few, the whole image and then lower thresholds, in place of a failure
};

struct FibreResponse {
  // A tensor, where it is known as one: eigenvalues in mm^2/s, the first along the fibre.
  std::optional<std::array<double, 3>> eigenvalues;
  double s0 = 0;              // 0: not known
  std::vector<double> zonal;  // otherwise: coefficients of Y_l0 of the signal of a fibre along z
  std::size_t voxels = 0;     // that it was estimated from
  ResponseBox box = {};       // in which they were found
};

// Fewer are refused: the mean of a handful of noisy voxels is no response.
constexpr std::size_t least_response_voxels = 10;

// The voxels of `signals` in the box whose FA (weighted least squares) is above the threshold; the response is the mean
// (l1, l2, l2) and the mean b0 signal, as DIPY's auto_response_ssst. `directions` and `selection.b_values` have an
// entry per volume of `signals`. Where voxels are too few the failure (kind not_found) says with which values of the
// box there would be enough; `box.widen` takes these instead.
[[nodiscard]] Result<FibreResponse> estimate_response(const DwiSignals& signals, const VolumeSelection& selection,
                                                      std::span<const numerics::Vec3d> directions,
                                                      const ResponseBox& box, const FitMachine& machine);

// Describes an estimated response: how many voxels, eigenvalues, b0 signal.
[[nodiscard]] std::string response_text(const FibreResponse& response);
// Says that the box was widened; empty where it was not.
[[nodiscard]] std::string widened_text(const ResponseBox& asked, const FibreResponse& response);

// The content decides between tensor and zonal: four numbers of which three are diffusivities are a tensor. The last of
// several rows of zonal coefficients (a row per shell) is taken, and a first row with the mean alone gives S0.
[[nodiscard]] Result<FibreResponse> parse_response(std::string_view text);
[[nodiscard]] Result<FibreResponse> read_response(const std::filesystem::path& path);

// Zonal coefficients l = 0, 2, ..., degree. A tensor's signal is computed at the gradients and fitted by least squares,
// as DIPY does: the response then carries the same truncation as the data. Fails when the file has fewer.
[[nodiscard]] Result<std::vector<double>> zonal_response(const FibreResponse& response,
                                                         std::span<const double> b_values,
                                                         std::span<const numerics::Vec3d> directions, int degree);

[[nodiscard]] std::string format_tensor_response(const FibreResponse& response);  // has eigenvalues
[[nodiscard]] std::string format_zonal_response(std::span<const double> zonal);

}  // namespace cingulum
