// Constrained spherical deconvolution of a series by a response: what `cingulum fit` and `track` do alike, from the
// signals of one shell to coefficients, and what is to be said of voxels that did not end well. The response comes from
// response.hpp, the fit from csd.hpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/csd.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/response.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/series/volume_selection.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct DeconvolutionInput {
  const DwiSignals& signals;  // of the volumes of `selection`
  const VolumeSelection& selection;
  std::span<const numerics::Vec3d> image_directions;  // per volume, image axes
  std::span<const numerics::Vec3d> directions;        // the same in the frame of the result
  std::span<const numerics::Vec3d> constraint;        // in the frame of the result
};

struct Deconvolution {
  numerics::HarmonicBasis basis = {};
  std::size_t coefficient_count = 0;
  std::vector<double> zonal;  // the response as it was used
  CsdFit fit;
  std::vector<std::string> warnings;
};

// A response of zonal coefficients determines no degree above its own.
[[nodiscard]] int degree_for_response(int wanted, const FibreResponse& response);
// What is said where that is lower.
[[nodiscard]] std::string lowered_degree_text(int wanted, const FibreResponse& response);

[[nodiscard]] Result<Deconvolution> deconvolve(const DeconvolutionInput& input, const FibreResponse& response,
                                               const CsdOptions& options, const FitMachine& machine,
                                               const std::function<void(std::size_t)>& advance = {});

}  // namespace cingulum
