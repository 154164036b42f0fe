#include "dmri/models/deconvolution.hpp"

#include <utility>

#include "base/argument_name.hpp"
#include "base/quantity.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

std::vector<Vec3d> weighted(const VolumeSelection& selection, std::span<const Vec3d> directions) {
  std::vector<Vec3d> result;
  for (const std::uint32_t position : selection.weighted) result.push_back(directions[position]);
  return result;
}

}  // namespace

int degree_for_response(int wanted, const FibreResponse& response) {
  if (response.eigenvalues || response.zonal.size() >= static_cast<std::size_t>(wanted / 2 + 1)) return wanted;
  return 2 * (static_cast<int>(response.zonal.size()) - 1);
}

std::string lowered_degree_text(int wanted, const FibreResponse& response) {
  return fmt::format("the response has degree {}: {} {} lowered to it", degree_for_response(wanted, response),
                     argument_name("sh_order"), wanted);
}

Result<Deconvolution> deconvolve(const DeconvolutionInput& input, const FibreResponse& response,
                                 const CsdOptions& options, const FitMachine& machine,
                                 const std::function<void(std::size_t)>& advance) {
  const VolumeSelection& selection = input.selection;
  // The response is fitted at the gradients in image axes whatever the frame, and the constraint turns with them: the
  // result in one frame is then the result in the other, turned.
  Deconvolution result;
  CGL_TRY_ASSIGN(result.zonal, zonal_response(response, selection.of_weighted(selection.b_values),
                                              weighted(selection, input.image_directions), options.degree));
  CGL_TRY_ASSIGN(const CsdModel model,
                 CsdModel::create(weighted(selection, input.directions), result.zonal, input.constraint, options));
  result.basis = model.basis();
  result.coefficient_count = model.coefficient_count();
  CGL_TRY_ASSIGN(result.fit,
                 fit_csd(model, input.signals.values, input.signals.volumes, selection.weighted, machine, advance));
  if (result.fit.not_converged > 0) {
    result.warnings.push_back(fmt::format("{} voxels did not converge in {} iterations",
                                          format_count(result.fit.not_converged), options.iterations));
  }
  if (result.fit.not_solvable > 0) {
    result.warnings.push_back(
        fmt::format("{} voxels could not be solved and are zero", format_count(result.fit.not_solvable)));
  }
  return result;
}

}  // namespace cingulum
