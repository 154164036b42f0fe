#include "tract/field/dwi_preparation.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/part_clock.hpp"
#include "dmri/models/deconvolution.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/series/volume_selection.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using numerics::Vec3d;

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

void warn_of_raised(PreparedField& prepared, const DwiSignals& signals, double min_signal) {
  if (std::string raised = warning_of_raised_signals(signals, min_signal); !raised.empty()) {
    warn(prepared, std::move(raised));
  }
}

struct FitInput {
  DwiSignals& signals;
  const VolumeSelection& selection;
  std::vector<Vec3d> directions;           // one per volume of `signals`
  std::vector<Vec3d> weighted_directions;  // of the diffusion-weighted ones
  int degree = 0;
  double min_signal = 0;  // in units of the data
};

// Coefficients of the voxels of `signals` and the basis in which they are.
struct Coefficients {
  numerics::HarmonicBasis basis = {};
  MappedVector<float> values;
};

Result<Coefficients> fit_q_ball_coefficients(const FitInput& input, const FieldRequest& request,
                                             const FitMachine& machine, Progress& progress) {
  QBallOptions options;
  options.kind = request.model == FieldModel::csa ? QBallModelKind::csa : QBallModelKind::opdt;
  options.degree = input.degree;
  options.smoothing = request.smoothing;
  options.min_signal = input.min_signal;
  CGL_TRY_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(input.weighted_directions, options));
  CGL_TRY_ASSIGN(QBallFit fit,
                 fit_q_ball(matrices, options, input.signals.values, input.signals.volumes, input.selection.weighted,
                            input.selection.b0, machine, [&](std::size_t voxels) { progress.advance(voxels); }));
  return Coefficients{matrices.basis, std::move(fit.coefficients)};
}

Result<FibreResponse> find_response(const FitInput& input, const FieldRequest& request, const FitMachine& machine,
                                    PreparedField& prepared) {
  Json& facts = prepared.facts;
  FibreResponse response;
  if (request.response) {
    response = *request.response;
  } else {
    CGL_TRY_ASSIGN(response,
                   estimate_response(input.signals, input.selection, input.directions, request.response_box, machine));
    const ResponseBox& box = response.box;
    if (std::string widened = widened_text(request.response_box, response); !widened.empty()) {
      warn(prepared, std::move(widened));
    }
    log_info("{}", response_text(response));
    facts["response_fa"] = box.least_fa;
    facts["response_radius"] = box.radius;
    if (box.centre) facts["response_centre"] = *box.centre;
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
  CsdOptions options;
  options.degree = degree_for_response(input.degree, response);
  options.convention = numerics::HarmonicConvention::descoteaux07_legacy;
  if (options.degree < input.degree) {
    warn(prepared, lowered_degree_text(input.degree, response));
    facts["degree"] = options.degree;
  }
  CGL_TRY_ASSIGN(const Sphere constraint, named_sphere("repulsion362"));
  CGL_TRY_ASSIGN(Deconvolution result,
                 deconvolve({input.signals, input.selection, input.directions, input.directions, constraint.directions},
                            response, options, machine, [&](std::size_t voxels) { progress.advance(voxels); }));
  for (std::string& warning : result.warnings) warn(prepared, fmt::format("CSD: {}", warning));
  facts["response_zonal"] = list_json(result.zonal);
  facts["csd_lambda"] = options.lambda;
  facts["csd_tau"] = options.tau;
  facts["csd_iterations"] = options.iterations;
  facts["csd_not_solvable"] = result.fit.not_solvable;
  return Coefficients{result.basis, std::move(result.fit.coefficients)};
}

Result<Field> build_series_field(const DwiSignals& signals, std::span<const float> stop_map, Coefficients coefficients,
                                 const FieldRequest& request, Sphere sphere, const FitMachine& machine) {
  if (!request.amplitudes) {
    const auto count =
        static_cast<std::size_t>(numerics::coefficient_count(coefficients.basis.degree, coefficients.basis.full));
    return make_harmonic_field(signals.geometry, stop_map, {signals.voxels, count, coefficients.values},
                               coefficients.basis, DirectionFrame::image, std::move(sphere), &machine.pool);
  }
  CGL_TRY_ASSIGN(const MappedVector<float> amplitudes,
                 sample_harmonics(coefficients.basis, coefficients.values, sphere.directions, true, machine));
  const std::size_t count = sphere.size();
  return make_amplitude_field(signals.geometry, stop_map, {signals.voxels, count, amplitudes}, std::move(sphere),
                              &machine.pool);
}

// Tensors of all volumes; `tensors` are those that the caller has fitted already, if any.
Status add_tensor_field(const DwiSeries& series, std::span<const float> stop_map, const TensorMaps* tensors,
                        const FieldRequest& request, const FitMachine& machine, const ProgressOptions& progress_options,
                        PreparedField& prepared) {
  TensorMaps own;
  if (tensors == nullptr) {
    Progress progress("fitting tensors", series.signals.voxels.size(), "voxels", progress_options);
    CGL_TRY_ASSIGN(own, fit_tensor_maps(series, request.min_signal, machine, &progress));
    tensors = &own;
  }
  prepared.facts["method"] = "wls";
  prepared.facts["min_signal"] = tensors->min_signal;
  warn_of_raised(prepared, series.signals, tensors->min_signal);
  CGL_TRY_ASSIGN(prepared.field,
                 make_tensor_field(series.signals.geometry, stop_map, {series.signals.voxels, 6, tensors->tensors},
                                   TensorOrder::mrtrix, DirectionFrame::image));
  return {};
}

}  // namespace

std::string_view field_model_name(FieldModel model) {
  constexpr std::array<std::string_view, 4> names = {"opdt", "csa", "csd", "dti"};
  return names[static_cast<std::size_t>(model)];
}

Result<TensorMaps> fit_tensor_maps(const DwiSeries& series, const SignalFloor& min_signal, const FitMachine& machine,
                                   Progress* progress) {
  TensorFitOptions options;
  if (min_signal.share_of_b0) {
    const auto volumes = volumes_for_floor(series.table.b_values, series.b0_threshold);
    CGL_TRY_ASSIGN(options.min_signal, settle_signal_floor(min_signal, series.signals, volumes));
  }
  CGL_TRY_ASSIGN(TensorFit fit,
                 fit_tensors(series.signals, series.table.b_values, series.directions, options, machine, progress));
  TensorMaps maps;
  maps.tensors = std::move(fit.tensor);
  maps.min_signal = options.min_signal;
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
      CGL_TRY(add_tensor_field(series, stop_map, tensors, request, machine, progress_options, prepared));
      return prepared;
    }

    CGL_TRY_ASSIGN(const VolumeSelection selection,
                   select_volumes(series.table, ShellChoice::one_shell, request.shell, series.b0_threshold));
    for (const std::string& warning : selection.warnings) warn(prepared, warning);
    for (const std::string& note : selection.notes) log_info("{}", note);
    restrict_signals(series.signals, selection.volumes);
    std::vector<Vec3d> directions;
    for (const std::size_t volume : selection.volumes) directions.push_back(series.directions[volume]);
    FitInput input = {.signals = series.signals,
                      .selection = selection,
                      .directions = directions,
                      .weighted_directions = selection.of_weighted(directions),
                      .degree = 0,
                      .min_signal = 0};
    input.degree = degree_for_directions(request.degree, input.weighted_directions.size());
    if (input.degree < request.degree) {
      warn(prepared, lowered_degree_text(request.degree, input.weighted_directions.size()));
    }
    if (selection.b0.empty()) {
      return fail(ErrorKind::invalid_argument, "the {} model needs a volume with b of at most {} s/mm^2, there is none",
                  field_model_name(request.model), series.b0_threshold);
    }
    facts["degree"] = input.degree;
    facts["weighted_volumes"] = selection.weighted.size();
    facts["b0_volumes"] = selection.b0.size();
    if (selection.shell) facts["shell"] = selection.shell->b_value;
    facts["unused_shells"] = shells_json(selection.unused);

    if (request.model == FieldModel::opdt || request.model == FieldModel::csa) {
      CGL_TRY_ASSIGN(input.min_signal, settle_signal_floor(request.min_signal, series.signals, selection.b0));
      warn_of_raised(prepared, series.signals, input.min_signal);
      prepared.min_signal = input.min_signal;
      facts["min_signal"] = input.min_signal;
    }

    FibreResponse response;
    if (request.model == FieldModel::csd) {
      CGL_TRY_ASSIGN(response, find_response(input, request, machine, prepared));
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
    series.signals.values = MappedVector<float>();  // `{}` would keep the memory
    CGL_TRY_ASSIGN(prepared.field, build_series_field(series.signals, stop_map, std::move(coefficients), request,
                                                      std::move(sphere), machine));
    clock.ended("field");
    return prepared;
  });
}

}  // namespace cingulum
