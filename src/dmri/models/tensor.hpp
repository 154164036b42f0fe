// The diffusion tensor of every voxel of a mask and the maps made from it, by ordinary or weighted least squares of the
// log signal, as DIPY's TensorModel does with fit_method "OLS" and "WLS". Called by the verb `fit`, by the response of
// CSD, by stopping maps and by the gradient check.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

enum class TensorMethod { ols, wls };

struct TensorFitOptions {
  TensorMethod method = TensorMethod::wls;
  double min_signal = 1e-4;  // smaller signals, and those that are no numbers, count as this; above 0
  std::span<const std::uint8_t> use_volume = {};  // 0 for volumes that are left out; empty: all are used
};

// Each vector has its components for one voxel together, voxels in the order of DwiSignals::voxels.
struct TensorFit {
  MappedVector<float> tensor;       // 6: Dxx Dyy Dzz Dxy Dxz Dyz in mm^2/s and the axes of the gradients, as fitted
  MappedVector<float> eigenvalues;  // 3, descending (the first is AD), none below least_diffusivity
  MappedVector<float> v1;           // 3: unit vector on the kept hemisphere
  MappedVector<float> fa;
  MappedVector<float> md;
  MappedVector<float> rd;
  MappedVector<float> s0;  // the signal that the fit predicts for b = 0
  // As in DIPY 1e-6 over the largest entry of the b-matrix: smaller eigenvalues are noise that FA would amplify.
  double least_diffusivity = 0;
  std::size_t unsolvable = 0;  // voxels where the weights left WLS singular and OLS stands

  [[nodiscard]] std::size_t size() const { return fa.size(); }
};

// `b_values` in s/mm^2 and `directions` (unit, in image axes; zero for b0) have an entry per volume of `signals`. Fails
// where they do not determine seven unknowns: six directions not on one cone, and two b-values, are needed. The result
// does not depend on threads or machine, nor that of a voxel on the others.
[[nodiscard]] Result<TensorFit> fit_tensors(const FitRecords& signals, std::span<const double> b_values,
                                            std::span<const numerics::Vec3d> directions,
                                            const TensorFitOptions& options, const FitMachine& machine,
                                            Progress* progress = nullptr);
[[nodiscard]] inline Result<TensorFit> fit_tensors(const DwiSignals& signals, std::span<const double> b_values,
                                                   std::span<const numerics::Vec3d> directions,
                                                   const TensorFitOptions& options, const FitMachine& machine,
                                                   Progress* progress = nullptr) {
  return fit_tensors(FitRecords{signals.values, signals.volumes}, b_values, directions, options, machine, progress);
}

// |V1| FA: red, green, blue for the axes of the gradients (image axes), as DIPY's color_fa.
[[nodiscard]] std::vector<float> colour_fa(const TensorFit& fit);

// mrtrix: Dxx Dyy Dzz Dxy Dxz Dyz (ours). dipy: the lower triangle, Dxx Dxy Dyy Dxz Dyz Dzz. fsl: the upper triangle,
// Dxx Dxy Dxz Dyy Dyz Dzz.
enum class TensorOrder { mrtrix, dipy, fsl };

// Entry i of the named order is entry tensor_order(order)[i] of ours.
[[nodiscard]] std::array<std::uint8_t, 6> tensor_order(TensorOrder order);
[[nodiscard]] Result<TensorOrder> parse_tensor_order(std::string_view name);
// In place, six numbers per voxel.
void convert_tensors(std::span<float> tensors, TensorOrder from, TensorOrder to);

}  // namespace cingulum
