#include "tract/field/dwi_preparation.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/interrupt.hpp"
#include "base/log.hpp"
#include "base/part_clock.hpp"
#include "dmri/models/csd.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/response.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/series/median_otsu.hpp"
#include "dmri/series/volume_selection.hpp"
#include "formats/nifti.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using numerics::Vec3d;

// Keeps some volumes of some voxels, in place.
void restrict_signals(DwiSignals& signals, std::span<const std::size_t> volumes, std::span<const std::uint8_t> voxels) {
  const bool all_volumes = volumes.size() == signals.volumes;  // they ascend
  std::size_t kept = 0;
  for (std::size_t v = 0; v < signals.voxels.size(); ++v) {
    const std::uint32_t voxel = signals.voxels[v];
    if (voxels[voxel] == 0) continue;
    float* const to = signals.values.data() + kept * volumes.size();
    const float* const from = signals.values.data() + v * signals.volumes;
    // Ascending, so that nothing is overwritten that is still to be read.
    if (!all_volumes) {
      for (std::size_t i = 0; i < volumes.size(); ++i) to[i] = from[volumes[i]];
    } else if (to != from) {
      std::memmove(to, from, volumes.size() * sizeof(float));
    }
    signals.voxels[kept++] = voxel;
  }
  signals.voxels.resize(kept);
  signals.volumes = volumes.size();
  signals.values.resize(kept * volumes.size());
  signals.values.shrink_to_fit();
}

std::vector<std::size_t> all_indices(std::size_t count) {
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = i;
  return indices;
}

Json list_json(std::span<const double> values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(value);
  return list;
}

void warn(PreparedField& prepared, std::string text) {
  log_warning("{}", text);
  prepared.warnings.push_back(std::move(text));
}

struct FitInput {
  DwiSignals& signals;
  const VolumeSelection& selection;
  std::vector<Vec3d> directions;           // one per volume of `signals`
  std::vector<Vec3d> weighted_directions;  // of the diffusion-weighted ones
  int degree = 0;
};

// Coefficients of the voxels of `signals` and the basis in which they are.
struct Coefficients {
  numerics::HarmonicBasis basis = {};
  BulkVector<float> values;
};

Result<Coefficients> fit_q_ball_coefficients(const FitInput& input, const FieldRequest& request,
                                             const FitMachine& machine, Progress& progress) {
  QBallOptions options;
  options.kind = request.model == FieldModel::csa ? QBallModelKind::csa : QBallModelKind::opdt;
  options.degree = input.degree;
  options.smoothing = request.smoothing;
  options.min_signal = request.min_signal;
  CGL_TRY_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(input.weighted_directions, options));
  CGL_TRY_ASSIGN(QBallFit fit,
                 fit_q_ball(matrices, options, input.signals.values, input.signals.volumes, input.selection.weighted,
                            input.selection.b0, machine, [&](std::size_t voxels) { progress.advance(voxels); }));
  return Coefficients{matrices.basis, std::move(fit.coefficients)};
}

Result<FibreResponse> find_response(const FitInput& input, const FieldRequest& request, const FitMachine& machine,
                                    Json& facts) {
  FibreResponse response;
  if (!request.response.empty()) {
    CGL_TRY_ASSIGN(response, read_response(request.response));
  } else {
    CGL_TRY_ASSIGN(response, estimate_response(input.signals, input.selection, input.directions, {}, machine));
    facts["response_voxels"] = response.voxels;
  }
  if (response.eigenvalues) {
    facts["response_eigenvalues"] = list_json(*response.eigenvalues);
    facts["response_s0"] = response.s0;
  }
  return response;
}

Result<Coefficients> fit_csd_coefficients(const FitInput& input, const FibreResponse& response,
                                          const FitMachine& machine, Progress& progress, PreparedField& prepared) {
  Json& facts = prepared.facts;
  const std::vector<double> weighted_b = input.selection.of_weighted(input.selection.b_values);
  int degree = input.degree;
  if (!response.eigenvalues && response.zonal.size() < static_cast<std::size_t>(degree / 2 + 1)) {
    degree = 2 * (static_cast<int>(response.zonal.size()) - 1);
    warn(prepared, fmt::format("the response has degree {}: {} {} is lowered to it", degree, argument_name("sh_order"),
                               input.degree));
    facts["degree"] = degree;
  }
  CGL_TRY_ASSIGN(const std::vector<double> zonal,
                 zonal_response(response, weighted_b, input.weighted_directions, degree));
  facts["response_zonal"] = list_json(zonal);
  CsdOptions options;
  options.degree = degree;
  options.convention = numerics::HarmonicConvention::descoteaux07_legacy;
  CGL_TRY_ASSIGN(const Sphere constraint, named_sphere("repulsion362"));
  CGL_TRY_ASSIGN(const CsdModel model,
                 CsdModel::create(input.weighted_directions, zonal, constraint.directions, options));
  CGL_TRY_ASSIGN(CsdFit fit, fit_csd(model, input.signals.values, input.signals.volumes, input.selection.weighted,
                                     machine, [&](std::size_t voxels) { progress.advance(voxels); }));
  if (fit.not_converged > 0) log_debug("CSD: {} voxels used all iterations", fit.not_converged);
  if (fit.not_solvable > 0) {
    warn(prepared, fmt::format("CSD: {} voxels had no solution and are zero", fit.not_solvable));
  }
  facts["csd_lambda"] = options.lambda;
  facts["csd_tau"] = options.tau;
  facts["csd_iterations"] = options.iterations;
  facts["csd_not_solvable"] = fit.not_solvable;
  return Coefficients{model.basis(), std::move(fit.coefficients)};
}

Result<Field> build_series_field(const DwiSignals& signals, std::span<const float> stop_map, Coefficients coefficients,
                                 const FieldRequest& request, Sphere sphere, const FitMachine& machine) {
  if (!request.amplitudes) {
    const auto count =
        static_cast<std::size_t>(numerics::coefficient_count(coefficients.basis.degree, coefficients.basis.full));
    return make_harmonic_field(signals.geometry, stop_map, {signals.voxels, count, coefficients.values},
                               coefficients.basis, DirectionFrame::image, std::move(sphere), &machine.pool);
  }
  CGL_TRY_ASSIGN(const BulkVector<float> amplitudes,
                 sample_harmonics(coefficients.basis, coefficients.values, sphere.directions, true, machine));
  const std::size_t count = sphere.size();
  return make_amplitude_field(signals.geometry, stop_map, {signals.voxels, count, amplitudes}, std::move(sphere),
                              &machine.pool);
}

}  // namespace

std::string_view field_model_name(FieldModel model) {
  constexpr std::array<std::string_view, 4> names = {"opdt", "csa", "csd", "dti"};
  return names[static_cast<std::size_t>(model)];
}

Result<std::vector<double>> mean_b0(const std::filesystem::path& series, const GradientTable& table,
                                    double b0_threshold) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(series));
  const auto volumes = static_cast<std::size_t>(reader.header().volume_count());
  if (volumes != table.size()) {
    return fail(ErrorKind::invalid_argument, "{} has {} volumes, the gradient table {} entries", series.string(),
                volumes, table.size());
  }
  std::vector<float> volume(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
  std::vector<double> sum;
  std::size_t count = 0;
  std::size_t last_b0 = 0;
  for (std::size_t i = 0; i < volumes; ++i) {
    if (table.b_values[i] <= b0_threshold) last_b0 = i + 1;
  }
  if (last_b0 == 0) {
    return fail(ErrorKind::invalid_argument,
                "{}: no volume has b of at most {} s/mm^2, and a brain mask is made from those; give {}",
                series.string(), b0_threshold, argument_name("mask"));
  }
  for (std::size_t i = 0; i < last_b0; ++i) {
    CGL_TRY(check_interrupt());
    CGL_TRY(reader.next_volume(std::span<float>(volume)));
    if (table.b_values[i] > b0_threshold) continue;
    add_to_sum(sum, volume);
    ++count;
  }
  divide_sum(sum, count);
  return sum;
}

Result<DwiSeries> read_dwi_series(const std::filesystem::path& series, const GradientTable& table, GradientFrame frame,
                                  std::span<const std::uint8_t> mask, double b0_threshold) {
  DwiSeries result;
  CGL_TRY_ASSIGN(result.signals, read_dwi_signals(series, mask));
  if (result.signals.volumes != table.size()) {
    return fail(ErrorKind::invalid_argument, "{} has {} volumes, the gradient table {} entries", series.string(),
                result.signals.volumes, table.size());
  }
  if (result.signals.voxels.empty()) {
    return fail_file(series.string(), ErrorKind::invalid_argument, "reading {}: no voxel lies in the mask",
                     series.string());
  }
  result.table = table;
  result.directions = directions_in_image_axes(table, frame, result.signals.geometry.voxel_to_world);
  result.b0_threshold = b0_threshold;
  return result;
}

Result<TensorMaps> fit_tensor_maps(const DwiSeries& series, const FitMachine& machine, Progress* progress) {
  CGL_TRY_ASSIGN(TensorFit fit,
                 fit_tensors(series.signals, series.table.b_values, series.directions, {}, machine, progress));
  TensorMaps maps;
  maps.tensors = std::move(fit.tensor);
  maps.fa.assign(static_cast<std::size_t>(series.signals.geometry.voxel_count()), 0.0f);
  for (std::size_t i = 0; i < series.signals.voxels.size(); ++i) maps.fa[series.signals.voxels[i]] = fit.fa[i];
  return maps;
}

std::vector<std::uint8_t> reachable_voxels(const ImageGeometry& geometry, std::span<const float> stop_map,
                                           double threshold, std::int64_t reach) {
  std::vector<std::uint8_t> near(stop_map.size(), 1);
  if (threshold < 0) return near;
  const auto limit = static_cast<float>(threshold);
  for (std::size_t i = 0; i < stop_map.size(); ++i) near[i] = stop_map[i] > limit ? 1 : 0;
  // A box is three lines: along x, then y, then z.
  const std::array<std::int64_t, 3> strides = {1, geometry.size[0], geometry.size[0] * geometry.size[1]};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<std::uint8_t> before = near;
    const std::int64_t size = geometry.size[axis];
    const std::int64_t stride = strides[axis];
    const auto voxels = static_cast<std::int64_t>(before.size());
    for (std::int64_t voxel = 0; voxel < voxels; ++voxel) {
      if (before[static_cast<std::size_t>(voxel)] == 0) continue;
      const std::int64_t at = voxel / stride % size;
      const std::int64_t first = std::max<std::int64_t>(-reach, -at);
      const std::int64_t last = std::min<std::int64_t>(reach, size - 1 - at);
      for (std::int64_t d = first; d <= last; ++d) near[static_cast<std::size_t>(voxel + d * stride)] = 1;
    }
  }
  return near;
}

Result<PreparedField> make_dwi_field(DwiSeries series, std::span<const float> stop_map, const TensorMaps* tensors,
                                     const FieldRequest& request, Sphere sphere, const FitMachine& machine,
                                     const ProgressOptions& progress_options) {
  return catch_out_of_memory([&]() -> Result<PreparedField> {
    PartClock clock("model");
    PreparedField prepared;
    Json& facts = prepared.facts;
    facts["model"] = field_model_name(request.model);
    const ImageGeometry geometry = series.signals.geometry;
    if (request.model == FieldModel::dti) {
      TensorMaps own;
      if (tensors == nullptr) {
        Progress progress("fitting tensors", series.signals.voxels.size(), "voxels", progress_options);
        CGL_TRY_ASSIGN(own, fit_tensor_maps(series, machine, &progress));
        tensors = &own;
      }
      facts["method"] = "wls";
      CGL_TRY_ASSIGN(prepared.field, make_tensor_field(geometry, stop_map, {series.signals.voxels, 6, tensors->tensors},
                                                       TensorOrder::mrtrix, DirectionFrame::image));
      return prepared;
    }

    CGL_TRY_ASSIGN(const VolumeSelection selection,
                   select_volumes(series.table, ShellChoice::one_shell, request.shell, series.b0_threshold));
    for (const std::string& warning : selection.warnings) warn(prepared, warning);
    std::vector<std::uint8_t> everywhere(static_cast<std::size_t>(geometry.voxel_count()), 1);
    restrict_signals(series.signals, selection.volumes, everywhere);
    std::vector<Vec3d> directions;
    for (const std::size_t volume : selection.volumes) directions.push_back(series.directions[volume]);
    FitInput input = {.signals = series.signals,
                      .selection = selection,
                      .directions = directions,
                      .weighted_directions = selection.of_weighted(directions),
                      .degree = 0};
    input.degree = degree_for_directions(request.degree, input.weighted_directions.size());
    if (input.degree < request.degree) {
      warn(prepared, fmt::format("{} {}: {} directions suffice for {} only", argument_name("sh_order"), request.degree,
                                 input.weighted_directions.size(), input.degree));
    }
    if (selection.b0.empty()) {
      return fail(ErrorKind::invalid_argument, "the {} model needs a volume with b of at most {} s/mm^2, there is none",
                  field_model_name(request.model), series.b0_threshold);
    }
    facts["degree"] = input.degree;
    facts["weighted_volumes"] = selection.weighted.size();
    facts["b0_volumes"] = selection.b0.size();
    if (selection.shell) facts["shell"] = selection.shell->b_value;

    FibreResponse response;
    if (request.model == FieldModel::csd) {
      CGL_TRY_ASSIGN(response, find_response(input, request, machine, facts));
    }
    const std::vector<std::uint8_t> near =
        reachable_voxels(geometry, stop_map, request.stop_threshold, request.reach_voxels);
    restrict_signals(series.signals, all_indices(series.signals.volumes), near);
    if (series.signals.voxels.empty()) {
      return fail(ErrorKind::invalid_argument, "the stopping map is nowhere above its threshold {} in the mask",
                  request.stop_threshold);
    }
    clock.ended("volumes, response and voxels in reach");
    facts["fitted_voxels"] = series.signals.voxels.size();

    if (request.bootstrap) {
      std::vector<std::uint8_t> is_b0(selection.volumes.size(), 0);
      for (const std::uint32_t position : selection.b0) is_b0[position] = 1;
      const BootstrapOptions options = {
          .csa = request.model == FieldModel::csa, .degree = input.degree, .lambda = request.smoothing};
      CGL_TRY_ASSIGN(prepared.field,
                     make_bootstrap_field(geometry, stop_map,
                                          {series.signals.voxels, series.signals.volumes, series.signals.values},
                                          input.directions, is_b0, options, std::move(sphere), machine));
      clock.ended("bootstrap and field");
      return prepared;
    }
    Progress progress(fmt::format("fitting {}", field_model_name(request.model)), series.signals.voxels.size(),
                      "voxels", progress_options);
    Coefficients coefficients;
    if (request.model == FieldModel::csd) {
      CGL_TRY_ASSIGN(coefficients, fit_csd_coefficients(input, response, machine, progress, prepared));
    } else {
      CGL_TRY_ASSIGN(coefficients, fit_q_ball_coefficients(input, request, machine, progress));
    }
    progress.finish();
    clock.ended("fit");
    series.signals.values = {};
    CGL_TRY_ASSIGN(prepared.field, build_series_field(series.signals, stop_map, std::move(coefficients), request,
                                                      std::move(sphere), machine));
    clock.ended("field");
    return prepared;
  });
}

}  // namespace cingulum
