#include "runs/fit/fit_models.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.hpp"
#include "dmri/models/deconvolution.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/peaks.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/response.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/series/signal_floor.hpp"
#include "dmri/sphere/sphere.hpp"
#include "runs/response_parameters.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using numerics::HarmonicConvention;
using numerics::Vec3d;

std::string convention_name(HarmonicConvention convention) {
  switch (convention) {
    case HarmonicConvention::descoteaux07_legacy: return "descoteaux07-legacy";
    case HarmonicConvention::descoteaux07: return "descoteaux07";
    case HarmonicConvention::tournier07: break;
  }
  return "tournier07";
}

HarmonicConvention parse_convention(const std::string& name) {
  if (name == "descoteaux07") return HarmonicConvention::descoteaux07;
  return name == "tournier07" ? HarmonicConvention::tournier07 : HarmonicConvention::descoteaux07_legacy;
}

Json harmonics_facts(numerics::HarmonicBasis basis, const FitInput& input) {
  return {{"spherical_harmonics",
           {{"basis", convention_name(basis.convention)},
            {"degree", basis.degree},
            {"coefficients", numerics::coefficient_count(basis.degree, basis.full)},
            {"even_only", !basis.full},
            {"frame", input.world ? "world" : "image"}}}};
}

Json frame_facts(const FitInput& input) {
  return {{"frame", input.world ? "world" : "image"}};
}

// --sh-order, lowered with a warning where the directions do not determine its coefficients.
int degree_of(FitRun& run, const FitInput& input, int usual) {
  const auto wanted = run.request.sh_order.given() ? static_cast<int>(run.request.sh_order.value()) : usual;
  const int degree = degree_for_directions(wanted, input.selection.weighted.size());
  if (degree != wanted) run.warn(lowered_degree_text(wanted, input.selection.weighted.size()));
  run.parameters["sh_order"] = degree;
  run.parameters["sh_basis"] = run.request.sh_basis.value();
  return degree;
}

// Amplitudes and peaks, where asked for. Peaks are found a block of voxels at a time: amplitudes of all voxels are held
// only where they are written.
Status write_functions(FitRun& run, const FitInput& input, numerics::HarmonicBasis basis,
                       std::span<const float> coefficients) {
  const auto peak_count = static_cast<std::uint32_t>(run.request.peaks.value());
  if (!run.request.odf.value() && peak_count == 0) return {};
  CGL_TRY_ASSIGN(const Sphere sphere,
                 sphere_by_name_or_file(run.request.sphere.value(), run.request.full_sphere.value()));
  Json more = frame_facts(input);
  more["sphere"] = sphere.name;
  more["half_sphere"] = sphere.is_hemisphere;
  if (run.request.odf.value()) {
    const bool clip = !run.request.keep_negative.value();
    CGL_TRY_ASSIGN(const auto amplitudes,
                   sample_harmonics(basis, coefficients, sphere.directions, clip, run.fitting()));
    Json odf_facts = more;
    odf_facts["negative_amplitudes"] = clip ? "set to zero" : "kept";
    CGL_TRY(run.maps.write_map("odf", amplitudes, sphere.size(), "amplitudes on the directions of odf_directions.txt",
                               run.pool, odf_facts));
    std::string text;
    for (const Vec3d& d : sphere.directions) text += fmt::format("{} {} {}\n", d.x, d.y, d.z);
    CGL_TRY(run.maps.write_text("odf_directions.txt", text, "directions of odf.nii.gz, one per volume"));
  }
  if (peak_count == 0) return {};
  PeakOptions options;
  options.relative_threshold = run.request.relative_peak_threshold.value();
  options.min_separation_deg = run.request.min_separation_angle.value();
  options.max_peaks = peak_count;
  CGL_TRY_ASSIGN(const PeakFinder finder, PeakFinder::create(sphere, options));
  const auto count = static_cast<std::size_t>(numerics::coefficient_count(basis.degree, basis.full));
  constexpr std::size_t block = 8192;
  std::vector<float> peaks;
  peaks.reserve(input.signals.voxels.size() * 3 * peak_count);
  for (std::size_t first = 0; first < input.signals.voxels.size(); first += block) {
    CGL_TRY(run.machine.cancel().check());
    const std::size_t voxels = std::min(block, input.signals.voxels.size() - first);
    CGL_TRY_ASSIGN(const auto amplitudes, sample_harmonics(basis, coefficients.subspan(first * count, voxels * count),
                                                           sphere.directions, true, run.fitting()));
    const auto found = finder.peak_vectors(amplitudes, run.pool);
    peaks.insert(peaks.end(), found.begin(), found.end());
  }
  more["relative_peak_threshold"] = options.relative_threshold;
  more["min_separation_angle_deg"] = options.min_separation_deg;
  return run.maps.write_map("peaks", peaks, 3 * std::size_t{peak_count},
                            "directions of the peaks, strongest first, as long as their amplitude", run.pool, more);
}

// --min-signal in units of the data.
Result<double> take_min_signal(FitRun& run, const FitInput& input) {
  CGL_TRY_ASSIGN(const SignalFloor floor, parse_signal_floor(run.request.min_signal.value()));
  const auto volumes = volumes_for_floor(input.selection.b_values, run.request.b0_threshold.value());
  CGL_TRY_ASSIGN(const double least, settle_signal_floor(floor, input.signals, volumes, &run.pool));
  if (std::string raised = warning_of_raised_signals(input.signals, least, &run.pool); !raised.empty())
    run.warn(std::move(raised));
  run.parameters["min_signal"] = least;
  run.parameters["min_signal_asked"] = run.request.min_signal.value();
  return least;
}

Result<FibreResponse> take_response(FitRun& run, const FitInput& input) {
  CGL_TRY_ASSIGN(const ResponseBox box, response_box(run.request));
  if (run.request.response.given()) return read_response(run.request.response.value());
  CGL_TRY_ASSIGN(FibreResponse response,
                 estimate_response(input.signals, input.selection, input.image_directions, box, run.fitting()));
  run.parameters["response_fa"] = response.box.least_fa;
  run.parameters["response_radius"] = response.box.radius;
  if (box.centre) run.parameters["response_centre"] = *box.centre;
  if (std::string widened = widened_text(box, response); !widened.empty()) run.warn(std::move(widened));
  log_info("{}", response_text(response));
  return response;
}

}  // namespace

Status fit_model(FitRun& run, const FitInput& input) {
  if (input.model == "dti") return fit_dti(run, input);
  if (input.model == "csd") return fit_constrained(run, input);
  return fit_opdt_or_csa(run, input);
}

Status fit_dti(FitRun& run, const FitInput& input) {
  TensorFitOptions options;
  options.method = run.request.fit_method.value() == "ols" ? TensorMethod::ols : TensorMethod::wls;
  CGL_TRY_ASSIGN(options.min_signal, take_min_signal(run, input));
  run.parameters["fit_method"] = run.request.fit_method.value();
  run.parameters["tensor_order"] = run.request.tensor_order.value();
  CGL_TRY_ASSIGN(const TensorOrder order, parse_tensor_order(run.request.tensor_order.value()));
  Progress progress("fitting", input.signals.voxels.size(), "voxels", run.machine.progress_options());
  CGL_TRY_ASSIGN(TensorFit fit, fit_tensors(input.signals, input.selection.b_values, input.directions, options,
                                            run.fitting(), &progress));
  progress.finish();
  if (fit.unsolvable > 0) {
    run.warn(fmt::format("{} voxels could not be weighted and have the unweighted fit", format_count(fit.unsolvable)));
  }
  run.results["unsolvable_voxels"] = fit.unsolvable;
  CGL_TRY(describe_fit(run, input));
  Json tensor_facts = frame_facts(input);
  tensor_facts["tensor_order"] = run.request.tensor_order.value();
  convert_tensors(fit.tensor, TensorOrder::mrtrix, order);
  CGL_TRY(run.maps.write_map("tensor", fit.tensor, 6, "diffusion tensor in mm^2/s", run.pool, tensor_facts));
  CGL_TRY(run.maps.write_map("fa", fit.fa, 1, "fractional anisotropy", run.pool));
  CGL_TRY(run.maps.write_map("md", fit.md, 1, "mean diffusivity in mm^2/s", run.pool));
  std::vector<float> ad(fit.size());
  for (std::size_t v = 0; v < ad.size(); ++v) ad[v] = fit.eigenvalues[3 * v];
  CGL_TRY(run.maps.write_map("ad", ad, 1, "axial diffusivity in mm^2/s", run.pool));
  CGL_TRY(run.maps.write_map("rd", fit.rd, 1, "radial diffusivity in mm^2/s", run.pool));
  CGL_TRY(run.maps.write_map("v1", fit.v1, 3, "principal direction, unit vectors", run.pool, frame_facts(input)));
  CGL_TRY(run.maps.write_map("colour_fa", colour_fa(fit), 3, "|v1| times fractional anisotropy", run.pool,
                             frame_facts(input)));
  return run.maps.write_map("s0", fit.s0, 1, "signal at b = 0 that the tensor predicts", run.pool);
}

Status fit_opdt_or_csa(FitRun& run, const FitInput& input) {
  QBallOptions options;
  options.kind = input.model == "opdt" ? QBallModelKind::opdt : QBallModelKind::csa;
  options.degree = degree_of(run, input, 4);
  options.convention = parse_convention(run.request.sh_basis.value());
  options.smoothing = run.request.sm_lambda.value();
  CGL_TRY_ASSIGN(options.min_signal, take_min_signal(run, input));
  run.parameters["sm_lambda"] = options.smoothing;
  CGL_TRY_ASSIGN(const QBallMatrices matrices,
                 make_q_ball_matrices(input.selection.of_weighted(input.directions), options));
  Progress progress("fitting", input.signals.voxels.size(), "voxels", run.machine.progress_options());
  CGL_TRY_ASSIGN(const QBallFit fit,
                 fit_q_ball(matrices, options, input.signals.values, input.signals.volumes, input.selection.weighted,
                            input.selection.b0, run.fitting(), [&](std::size_t count) { progress.advance(count); }));
  progress.finish();
  CGL_TRY(describe_fit(run, input));
  CGL_TRY(run.maps.write_map("sh", fit.coefficients, matrices.linear.rows,
                             "spherical harmonics of the orientation distribution", run.pool,
                             harmonics_facts(matrices.basis, input)));
  CGL_TRY(run.maps.write_map("gfa", fit.gfa, 1, "generalised fractional anisotropy", run.pool));
  return write_functions(run, input, matrices.basis, fit.coefficients);
}

Status fit_constrained(FitRun& run, const FitInput& input) {
  CGL_TRY_ASSIGN(const FibreResponse response, take_response(run, input));
  CsdOptions options;
  options.degree = degree_of(run, input, 8);
  if (const int degree = degree_for_response(options.degree, response); degree < options.degree) {
    run.warn(lowered_degree_text(options.degree, response));
    options.degree = degree;
    run.parameters["sh_order"] = degree;
  }
  options.lambda = run.request.csd_lambda.value();
  options.tau = run.request.csd_tau.value();
  options.iterations = static_cast<int>(run.request.csd_iterations.value());
  options.convention = parse_convention(run.request.sh_basis.value());
  CGL_TRY_ASSIGN(const Sphere sphere, sphere_by_name_or_file(run.request.csd_sphere.value()));
  run.parameters["csd_lambda"] = options.lambda;
  run.parameters["csd_tau"] = options.tau;
  run.parameters["csd_iterations"] = options.iterations;
  run.parameters["csd_sphere"] = {{"name", sphere.name}, {"directions", sphere.size()}};

  const auto constraint =
      input.world ? to_world(sphere.directions, input.signals.geometry.voxel_to_world) : sphere.directions;
  Progress progress("deconvolving", input.signals.voxels.size(), "voxels", run.machine.progress_options());
  CGL_TRY_ASSIGN(const Deconvolution result,
                 deconvolve({input.signals, input.selection, input.image_directions, input.directions, constraint},
                            response, options, run.fitting(), [&](std::size_t count) { progress.advance(count); }));
  progress.finish();
  for (const std::string& warning : result.warnings) run.warn(warning);
  const CsdFit& fit = result.fit;
  Json response_facts = {{"zonal", result.zonal}, {"s0", response.s0}};
  if (response.eigenvalues) response_facts["eigenvalues"] = *response.eigenvalues;
  if (!run.request.response.given()) response_facts["voxels"] = response.voxels;
  run.results["response"] = response_facts;
  run.results["mean_iterations"] =
      static_cast<double>(fit.iterations) / static_cast<double>(std::max<std::size_t>(1, input.signals.voxels.size()));
  run.results["unconstrained_voxels"] = fit.unconstrained;
  run.results["not_converged_voxels"] = fit.not_converged;
  run.results["not_solvable_voxels"] = fit.not_solvable;
  CGL_TRY(describe_fit(run, input));
  CGL_TRY(run.maps.write_map("fod", fit.coefficients, result.coefficient_count,
                             "spherical harmonics of the fibre orientation distribution", run.pool,
                             harmonics_facts(result.basis, input)));
  if (response.eigenvalues) {
    CGL_TRY(run.maps.write_text("response.txt", format_tensor_response(response),
                                "eigenvalues in mm^2/s of the response and its b0 signal"));
  }
  CGL_TRY(run.maps.write_text("response_zonal.txt", format_zonal_response(result.zonal),
                              "zonal harmonics of the response, as MRtrix3 reads them"));
  return write_functions(run, input, result.basis, fit.coefficients);
}

}  // namespace cingulum
