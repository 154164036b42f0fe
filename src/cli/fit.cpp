// `cingulum fit`: models of the diffusion signal in every voxel of a mask.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "dmri/csd.hpp"
#include "dmri/dwi_signals.hpp"
#include "dmri/fit_folder.hpp"
#include "dmri/gradient_check.hpp"
#include "dmri/harmonic_fit.hpp"
#include "dmri/median_otsu.hpp"
#include "dmri/peaks.hpp"
#include "dmri/q_ball.hpp"
#include "dmri/response.hpp"
#include "dmri/sphere.hpp"
#include "dmri/spherical_function.hpp"
#include "dmri/tensor.hpp"
#include "dmri/volume_selection.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {

Verb fit_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using numerics::HarmonicConvention;
using numerics::Vec3d;

// What every model has been given: read, checked, and in the frame of the output.
struct FitInput {
  std::string model;
  bool world = false;  // frame of directions, coefficients, tensors and peaks
  DwiSignals signals;
  VolumeSelection selection;
  std::vector<Vec3d> image_directions;  // per volume of `signals`, image axes
  std::vector<Vec3d> directions;        // the same in the output's frame
};

// Everything that the verb keeps while it runs.
struct FitRun {
  const ParsedArguments& arguments;
  VerbContext& context;
  ThreadPool& pool;
  FitFolder folder;
  Json parameters = Json::object();
  Json results = Json::object();
  std::vector<std::string> warnings = {};
  std::optional<BrainMask> made_mask = {};  // written with the results

  void warn(std::string text) {
    log_warning("{}", text);
    warnings.push_back(std::move(text));
  }
};

Result<GradientTable> read_gradients(const ParsedArguments& arguments) {
  if (arguments.given("grad")) {
    if (arguments.given("bvals") || arguments.given("bvecs")) {
      return fail(ErrorKind::invalid_argument,
                  "--grad already holds b-values and vectors; leave --bvals and --bvecs out");
    }
    return read_mrtrix_gradients(arguments.text("grad"));
  }
  if (!arguments.given("bvals") || !arguments.given("bvecs")) {
    return fail(ErrorKind::invalid_argument, "gradients are missing: give --bvals and --bvecs, or --grad");
  }
  return read_fsl_gradients(arguments.text("bvals"), arguments.text("bvecs"));
}

// From image axes to scanner axes: along the columns of the affine, without their lengths.
std::vector<Vec3d> to_world(std::span<const Vec3d> directions, const Affine& affine) {
  Vec3d axes[3];
  for (int c = 0; c < 3; ++c) axes[c] = normalise(Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)});
  std::vector<Vec3d> result;
  for (const Vec3d& d : directions) result.push_back(normalise(combine(axes[0], d.x, axes[1], d.y, axes[2], d.z)));
  return result;
}

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

Result<std::vector<std::uint8_t>> make_mask(FitRun& run, const GradientTable& table, double b0_threshold) {
  const std::string& series = run.arguments.text("dwi");
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(series));
  const ImageGeometry geometry = reader.header().geometry;
  std::vector<float> volume(static_cast<std::size_t>(geometry.voxel_count()));
  std::vector<double> sum;
  std::size_t count = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CGL_TRY(check_interrupt());
    CGL_TRY(reader.next_volume(std::span(volume)));
    if (table.b_values[i] > b0_threshold) continue;
    add_to_sum(sum, volume);
    ++count;
  }
  if (count == 0) {
    return fail(ErrorKind::not_found, "making a brain mask of {}: there is no b0 volume; give --mask", series);
  }
  divide_sum(sum, count);
  CGL_TRY_ASSIGN(BrainMask brain, median_otsu(sum, geometry.size, {}, run.pool));
  run.warn(fmt::format("no --mask: a brain mask of {} voxels was made by median Otsu, to be written to {}",
                       format_count(brain.voxels), (run.folder.path() / "mask.nii.gz").string()));
  run.made_mask = std::move(brain);
  return run.made_mask->mask;
}

Result<std::vector<std::uint8_t>> take_mask(FitRun& run, const ImageGeometry& geometry, const GradientTable& table,
                                            double b0_threshold) {
  if (!run.arguments.given("mask")) return make_mask(run, table, b0_threshold);
  const std::string& path = run.arguments.text("mask");
  ImageGeometry mask_geometry;
  CGL_TRY_ASSIGN(auto mask, read_mask(path, mask_geometry));
  CGL_TRY(check_same_grid(mask_geometry, "the mask " + path, geometry, "the series " + run.arguments.text("dwi")));
  return mask;
}

// The frame that the b-vectors are in: as given; by the coherence of fibres with auto; otherwise that of the format,
// and the run ends where another is clearly better.
Result<GradientFrame> settle_frame(FitRun& run, const GradientTable& table, const FitInput& input) {
  const std::string wanted = run.arguments.given("bvec-frame") ? run.arguments.text("bvec-frame") : "";
  GradientFrame frame = table.frame;
  if (wanted == "voxel") frame = GradientFrame::voxel;
  if (wanted == "world") frame = GradientFrame::world;
  if (wanted == "fsl") frame = GradientFrame::fsl;
  GradientTable selected;
  selected.frame = table.frame;
  for (const std::size_t volume : input.selection.volumes) {
    selected.b_values.push_back(table.b_values[volume]);
    selected.vectors.push_back(table.vectors[volume]);
  }
  const auto checked = check_gradients(input.signals, selected, frame, run.pool);
  if (!checked) {
    if (checked.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(checked.error());
    log_debug("no gradient check: {}", checked.error().message());
    return frame;
  }
  run.parameters["gradient_check"] = {
      {"verdict", gradient_verdict_name(checked->verdict)}, {"voxels", checked->voxels}, {"message", checked->message}};
  if (checked->verdict != GradientVerdict::another_is_better) {
    log_debug("gradient check: {}", checked->message);
    return frame;
  }
  if (wanted == "auto" && checked->better_frame) {
    log_info("--bvec-frame auto: {} rather than {}", gradient_frame_name(*checked->better_frame),
             gradient_frame_name(frame));
    return *checked->better_frame;
  }
  if (wanted.empty() || wanted == "auto") return fail(ErrorKind::corrupt, "{}", checked->message);
  run.warn(checked->message);
  return frame;
}

Result<FitInput> read_input(FitRun& run) {
  const ParsedArguments& arguments = run.arguments;
  const std::string& series = arguments.text("dwi");
  FitInput input;
  input.model = arguments.text("model");
  const double b0_threshold = arguments.real("b0-threshold");
  CGL_TRY_ASSIGN(const GradientTable table, read_gradients(arguments));
  for (const std::string& warning : table.warnings) run.warn(warning);
  ImageGeometry geometry;
  {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(series));
    for (const std::string& warning : reader.header().warnings) run.warn(fmt::format("{}: {}", series, warning));
    geometry = reader.header().geometry;
    if (reader.header().volume_count() != static_cast<std::int64_t>(table.size())) {
      return fail(ErrorKind::corrupt, "{} has {} volumes, the gradient table has {} b-values", series,
                  reader.header().volume_count(), table.size());
    }
  }
  CGL_TRY_ASSIGN(const auto mask, take_mask(run, geometry, table, b0_threshold));
  const auto choice = input.model == "dti" ? ShellChoice::all_volumes : ShellChoice::one_shell;
  std::optional<double> shell;
  if (arguments.given("shell")) shell = arguments.real("shell");
  CGL_TRY_ASSIGN(input.selection, select_volumes(table, choice, shell, b0_threshold));
  for (const std::string& warning : input.selection.warnings) run.warn(warning);
  CGL_TRY_ASSIGN(input.signals, read_dwi_signals(series, mask, input.selection.volumes));
  if (input.signals.replaced > 0) {
    run.warn(
        fmt::format("{} values of {} were not finite and count as 0", format_count(input.signals.replaced), series));
  }

  CGL_TRY_ASSIGN(const GradientFrame frame, settle_frame(run, table, input));
  const auto all = directions_in_image_axes(table, frame, geometry.voxel_to_world);
  for (const std::size_t volume : input.selection.volumes) input.image_directions.push_back(all[volume]);
  for (const std::uint32_t position : input.selection.weighted) {
    if (length(input.image_directions[position]) == 0) {
      return fail(ErrorKind::corrupt, "volume {} has b = {} and no direction", input.selection.volumes[position],
                  input.selection.b_values[position]);
    }
  }
  const bool mrtrix_like =
      input.model == "dti" ? arguments.text("tensor-order") == "mrtrix" : arguments.text("sh-basis") == "tournier07";
  input.world = arguments.given("frame") ? arguments.text("frame") == "world" : mrtrix_like;
  input.directions = input.world ? to_world(input.image_directions, geometry.voxel_to_world) : input.image_directions;

  run.parameters["b0_threshold"] = b0_threshold;
  run.parameters["bvec_frame"] = gradient_frame_name(frame);
  run.parameters["frame"] = input.world ? "world" : "image";
  run.parameters["volumes"] = input.selection.volumes.size();
  run.parameters["b0_volumes"] = input.selection.b0.size();
  if (input.selection.shell) {
    run.parameters["shell"] = {{"b_value", input.selection.shell->b_value},
                               {"smallest", input.selection.shell->smallest},
                               {"largest", input.selection.shell->largest},
                               {"volumes", input.selection.shell->volumes.size()}};
  }
  return input;
}

Status describe(FitRun& run, const FitInput& input) {
  Json inputs = Json::object();
  for (const char* name : {"dwi", "bvals", "bvecs", "grad", "mask", "response"}) {
    if (!run.arguments.given(name)) continue;
    const fs::path path = run.arguments.text(name);
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
    inputs[name] = {{"file", path.filename().string()}, {"xxh3_128", hash}};
  }
  Json facts = {{"made_by", "cingulum fit"},
                {"model", input.model},
                {"parameters", run.parameters},
                {"inputs", inputs},
                {"voxels", input.signals.voxels.size()},
                {"replaced_values", input.signals.replaced},
                {"warnings", run.warnings}};
  run.folder.describe(input.signals.geometry, input.signals.voxels, std::move(facts));
  if (!run.made_mask) return {};
  return run.folder.write_mask(run.made_mask->mask, {{"threshold", run.made_mask->threshold}}, run.pool);
}

// --sh-order, lowered with a warning where the directions do not determine its coefficients.
int degree_of(FitRun& run, const FitInput& input, int usual) {
  const auto wanted = run.arguments.given("sh-order") ? static_cast<int>(run.arguments.integer("sh-order")) : usual;
  const int degree = degree_for_directions(wanted, input.selection.weighted.size());
  if (degree != wanted) {
    run.warn(fmt::format("--sh-order {} needs {} directions, there are {}: lowered to {}", wanted,
                         numerics::coefficient_count(wanted, false), input.selection.weighted.size(), degree));
  }
  run.parameters["sh_order"] = degree;
  run.parameters["sh_basis"] = run.arguments.text("sh-basis");
  return degree;
}

Result<Sphere> sphere_of_functions(const ParsedArguments& arguments) {
  const std::string& name = arguments.text("sphere");
  if (!arguments.flag("full-sphere")) return sphere_by_name_or_file(name);
  if (auto named = named_sphere(name + "-full")) return named;
  return read_sphere(name, true);
}

// Amplitudes and peaks, where asked for. Peaks are found a block of voxels at a time: amplitudes of all voxels are held
// only where they are written.
Status write_functions(FitRun& run, const FitInput& input, numerics::HarmonicBasis basis,
                       std::span<const float> coefficients) {
  const auto peak_count = static_cast<std::uint32_t>(run.arguments.integer("peaks"));
  if (!run.arguments.flag("odf") && peak_count == 0) return {};
  CGL_TRY_ASSIGN(const Sphere sphere, sphere_of_functions(run.arguments));
  Json more = frame_facts(input);
  more["sphere"] = sphere.name;
  more["half_sphere"] = sphere.half;
  if (run.arguments.flag("odf")) {
    const bool clip = !run.arguments.flag("keep-negative");
    const auto amplitudes = sample_harmonics(basis, coefficients, sphere.directions, clip, run.pool);
    Json odf_facts = more;
    odf_facts["negative_amplitudes"] = clip ? "set to zero" : "kept";
    CGL_TRY(run.folder.write_map("odf", amplitudes, sphere.size(), "amplitudes on the directions of odf_directions.txt",
                                 run.pool, odf_facts));
    std::string text;
    for (const Vec3d& d : sphere.directions) text += fmt::format("{} {} {}\n", d.x, d.y, d.z);
    CGL_TRY(run.folder.write_text("odf_directions.txt", text, "directions of odf.nii.gz, one per volume"));
  }
  if (peak_count == 0) return {};
  PeakOptions options;
  options.relative_threshold = run.arguments.real("relative-peak-threshold");
  options.min_separation_deg = run.arguments.real("min-separation-angle");
  options.max_peaks = peak_count;
  CGL_TRY_ASSIGN(const PeakFinder finder, PeakFinder::create(sphere, options));
  const auto count = static_cast<std::size_t>(numerics::coefficient_count(basis.degree, basis.full));
  constexpr std::size_t block = 8192;
  std::vector<float> peaks;
  peaks.reserve(input.signals.voxels.size() * 3 * peak_count);
  for (std::size_t first = 0; first < input.signals.voxels.size(); first += block) {
    CGL_TRY(check_interrupt());
    const std::size_t voxels = std::min(block, input.signals.voxels.size() - first);
    const auto amplitudes =
        sample_harmonics(basis, coefficients.subspan(first * count, voxels * count), sphere.directions, true, run.pool);
    const auto found = finder.peak_vectors(amplitudes, run.pool);
    peaks.insert(peaks.end(), found.begin(), found.end());
  }
  more["relative_peak_threshold"] = options.relative_threshold;
  more["min_separation_angle_deg"] = options.min_separation_deg;
  return run.folder.write_map("peaks", peaks, 3 * std::size_t{peak_count},
                              "directions of the peaks, strongest first, as long as their amplitude", run.pool, more);
}

Status fit_dti(FitRun& run, const FitInput& input) {
  TensorFitOptions options;
  options.method = run.arguments.text("fit-method") == "ols" ? TensorMethod::ols : TensorMethod::wls;
  if (run.arguments.given("min-signal")) options.min_signal = run.arguments.real("min-signal");
  run.parameters["fit_method"] = run.arguments.text("fit-method");
  run.parameters["min_signal"] = options.min_signal;
  run.parameters["tensor_order"] = run.arguments.text("tensor-order");
  CGL_TRY_ASSIGN(const TensorOrder order, parse_tensor_order(run.arguments.text("tensor-order")));
  Progress progress("fitting", input.signals.voxels.size(), "voxels", run.context.progress_options());
  CGL_TRY_ASSIGN(TensorFit fit,
                 fit_tensors(input.signals, input.selection.b_values, input.directions, options, run.pool, &progress));
  progress.finish();
  if (fit.unsolvable > 0) {
    run.warn(fmt::format("{} voxels could not be weighted and have the unweighted fit", format_count(fit.unsolvable)));
  }
  run.results["unsolvable_voxels"] = fit.unsolvable;
  CGL_TRY(describe(run, input));
  Json tensor_facts = frame_facts(input);
  tensor_facts["tensor_order"] = run.arguments.text("tensor-order");
  convert_tensors(fit.tensor, TensorOrder::mrtrix, order);
  CGL_TRY(run.folder.write_map("tensor", fit.tensor, 6, "diffusion tensor in mm^2/s", run.pool, tensor_facts));
  CGL_TRY(run.folder.write_map("fa", fit.fa, 1, "fractional anisotropy", run.pool));
  CGL_TRY(run.folder.write_map("md", fit.md, 1, "mean diffusivity in mm^2/s", run.pool));
  std::vector<float> ad(fit.size());
  for (std::size_t v = 0; v < ad.size(); ++v) ad[v] = fit.eigenvalues[3 * v];
  CGL_TRY(run.folder.write_map("ad", ad, 1, "axial diffusivity in mm^2/s", run.pool));
  CGL_TRY(run.folder.write_map("rd", fit.rd, 1, "radial diffusivity in mm^2/s", run.pool));
  CGL_TRY(run.folder.write_map("v1", fit.v1, 3, "principal direction, unit vectors", run.pool, frame_facts(input)));
  CGL_TRY(run.folder.write_map("colour_fa", colour_fa(fit), 3, "|v1| times fractional anisotropy", run.pool,
                               frame_facts(input)));
  return run.folder.write_map("s0", fit.s0, 1, "signal at b = 0 that the tensor predicts", run.pool);
}

Status fit_opdt_or_csa(FitRun& run, const FitInput& input) {
  QBallOptions options;
  options.kind = input.model == "opdt" ? QBallModelKind::opdt : QBallModelKind::csa;
  options.degree = degree_of(run, input, 4);
  options.convention = parse_convention(run.arguments.text("sh-basis"));
  options.smoothing = run.arguments.real("sm-lambda");
  if (run.arguments.given("min-signal")) options.min_signal = run.arguments.real("min-signal");
  run.parameters["sm_lambda"] = options.smoothing;
  run.parameters["min_signal"] = options.min_signal;
  CGL_TRY_ASSIGN(const QBallMatrices matrices,
                 make_q_ball_matrices(input.selection.of_weighted(input.directions), options));
  Progress progress("fitting", input.signals.voxels.size(), "voxels", run.context.progress_options());
  CGL_TRY_ASSIGN(const QBallFit fit,
                 fit_q_ball(matrices, options, input.signals.values, input.signals.volumes, input.selection.weighted,
                            input.selection.b0, run.pool, [&](std::size_t count) { progress.advance(count); }));
  progress.finish();
  CGL_TRY(describe(run, input));
  CGL_TRY(run.folder.write_map("sh", fit.coefficients, matrices.linear.rows,
                               "spherical harmonics of the orientation distribution", run.pool,
                               harmonics_facts(matrices.basis, input)));
  CGL_TRY(run.folder.write_map("gfa", fit.gfa, 1, "generalised fractional anisotropy", run.pool));
  return write_functions(run, input, matrices.basis, fit.coefficients);
}

Result<std::optional<std::array<std::int64_t, 3>>> parse_centre(const ParsedArguments& arguments) {
  if (!arguments.given("response-centre")) return std::nullopt;
  const std::string& text = arguments.text("response-centre");
  std::array<std::int64_t, 3> centre = {};
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto [stop, error] = std::from_chars(next, end, centre[axis]);
    const bool last = axis == 2;
    if (error != std::errc() || centre[axis] < 0 || (last ? stop != end : stop == end || *stop != ',')) {
      return fail(ErrorKind::invalid_argument, "--response-centre '{}' is not three voxel indices I,J,K", text);
    }
    next = last ? stop : stop + 1;
  }
  return centre;
}

Result<FibreResponse> take_response(FitRun& run, const FitInput& input) {
  if (run.arguments.given("response")) return read_response(run.arguments.text("response"));
  ResponseBox box;
  CGL_TRY_ASSIGN(box.centre, parse_centre(run.arguments));
  box.radius = run.arguments.integer("response-radius");
  box.least_fa = run.arguments.real("response-fa");
  run.parameters["response_fa"] = box.least_fa;
  run.parameters["response_radius"] = box.radius;
  if (box.centre) run.parameters["response_centre"] = *box.centre;
  CGL_TRY_ASSIGN(FibreResponse response,
                 estimate_response(input.signals, input.selection, input.image_directions, box, run.pool));
  const auto& [l1, l2, l3] = *response.eigenvalues;
  log_info("response from {} voxels: eigenvalues {:.3g} {:.3g} {:.3g} mm^2/s, b0 signal {:.4g}",
           format_count(response.voxels), l1, l2, l3, response.s0);
  return response;
}

Status fit_constrained(FitRun& run, const FitInput& input) {
  CGL_TRY_ASSIGN(const FibreResponse response, take_response(run, input));
  CsdOptions options;
  options.degree = degree_of(run, input, 8);
  if (!response.eigenvalues && response.zonal.size() < static_cast<std::size_t>(options.degree / 2 + 1)) {
    const int degree = 2 * (static_cast<int>(response.zonal.size()) - 1);
    run.warn(fmt::format("the response has degree {}: --sh-order {} lowered to it", degree, options.degree));
    options.degree = degree;
    run.parameters["sh_order"] = degree;
  }
  options.lambda = run.arguments.real("csd-lambda");
  options.tau = run.arguments.real("csd-tau");
  options.iterations = static_cast<int>(run.arguments.integer("csd-iterations"));
  options.convention = parse_convention(run.arguments.text("sh-basis"));
  CGL_TRY_ASSIGN(const Sphere sphere, sphere_by_name_or_file(run.arguments.text("csd-sphere")));
  run.parameters["csd_lambda"] = options.lambda;
  run.parameters["csd_tau"] = options.tau;
  run.parameters["csd_iterations"] = options.iterations;
  run.parameters["csd_sphere"] = {{"name", sphere.name}, {"directions", sphere.size()}};

  // The response is fitted at the gradients in image axes whatever the frame, and the constraint turns with them: the
  // result in one frame is then the result in the other, turned.
  const auto b_values = input.selection.of_weighted(input.selection.b_values);
  CGL_TRY_ASSIGN(const auto zonal, zonal_response(response, b_values,
                                                  input.selection.of_weighted(input.image_directions), options.degree));
  const auto constraint =
      input.world ? to_world(sphere.directions, input.signals.geometry.voxel_to_world) : sphere.directions;
  CGL_TRY_ASSIGN(const CsdModel model,
                 CsdModel::create(input.selection.of_weighted(input.directions), zonal, constraint, options));
  Progress progress("deconvolving", input.signals.voxels.size(), "voxels", run.context.progress_options());
  CGL_TRY_ASSIGN(const CsdFit fit, fit_csd(model, input.signals.values, input.signals.volumes, input.selection.weighted,
                                           run.pool, [&](std::size_t count) { progress.advance(count); }));
  progress.finish();
  if (fit.not_converged > 0) {
    run.warn(fmt::format("{} voxels did not converge in {} iterations", format_count(fit.not_converged),
                         options.iterations));
  }
  if (fit.not_solvable > 0) {
    run.warn(fmt::format("{} voxels could not be solved and are zero", format_count(fit.not_solvable)));
  }
  Json response_facts = {{"zonal", zonal}, {"s0", response.s0}};
  if (response.eigenvalues) response_facts["eigenvalues"] = *response.eigenvalues;
  if (!run.arguments.given("response")) response_facts["voxels"] = response.voxels;
  run.results["response"] = response_facts;
  run.results["mean_iterations"] =
      static_cast<double>(fit.iterations) / static_cast<double>(std::max<std::size_t>(1, input.signals.voxels.size()));
  run.results["unconstrained_voxels"] = fit.unconstrained;
  run.results["not_converged_voxels"] = fit.not_converged;
  run.results["not_solvable_voxels"] = fit.not_solvable;
  CGL_TRY(describe(run, input));
  CGL_TRY(run.folder.write_map("fod", fit.coefficients, model.coefficient_count(),
                               "spherical harmonics of the fibre orientation distribution", run.pool,
                               harmonics_facts(model.basis(), input)));
  if (response.eigenvalues) {
    CGL_TRY(run.folder.write_text("response.txt", format_tensor_response(response),
                                  "eigenvalues in mm^2/s of the response and its b0 signal"));
  }
  CGL_TRY(run.folder.write_text("response_zonal.txt", format_zonal_response(zonal),
                                "zonal harmonics of the response, as MRtrix3 reads them"));
  return write_functions(run, input, model.basis(), fit.coefficients);
}

Status run_fit(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(FitFolder folder, FitFolder::create(arguments.text("out"), context.write_options()));
  FitRun run = {.arguments = arguments, .context = context, .pool = *pool, .folder = std::move(folder)};
  CGL_TRY_ASSIGN(const FitInput input, read_input(run));
  if (input.model == "dti") {
    CGL_TRY(fit_dti(run, input));
  } else if (input.model == "csd") {
    CGL_TRY(fit_constrained(run, input));
  } else {
    CGL_TRY(fit_opdt_or_csa(run, input));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Json facts = run_facts(context.common().threads, seconds);
  CGL_TRY(run.folder.finish(run.results, facts));
  if (context.common().json) {
    const Json json = {
        {"out", run.folder.path().string()}, {"model", input.model},   {"voxels", input.signals.voxels.size()},
        {"parameters", run.parameters},      {"results", run.results}, {"files", run.folder.files()},
        {"warnings", run.warnings}};
    context.print(json_text(json));
    return {};
  }
  for (const Json& file : run.folder.files()) {
    context.print_format("{}  {}\n", (run.folder.path() / file["file"].get<std::string>()).string(),
                         file["meaning"].get<std::string>());
  }
  return {};
}

}  // namespace

Verb fit_verb() {
  return {
      .name = "fit",
      .summary = "fit a model of the diffusion signal in every voxel",
      .description =
          "Fits tensors (dti), orientation distributions (opdt, csa) or fibre orientation distributions by constrained "
          "spherical deconvolution (csd) to a diffusion series and writes NIfTI images, each with a JSON sidecar, into "
          "a folder. fit.json is written last: a folder without it is not complete.\n\n"
          "dti uses all volumes, the other models one shell: the highest, or --shell. Without --mask a brain mask is "
          "made by median Otsu and written too.\n\n"
          "Spherical harmonics are written in --sh-basis and --frame; both stand in the sidecar. The defaults are what "
          "MRtrix3 reads.",
      .arguments =
          {{.name = "dwi",
            .type = ArgumentType::file_in,
            .help = "diffusion series, NIfTI",
            .metavar = "DWI",
            .positional = true,
            .required = true},
           {.name = "bvals", .type = ArgumentType::file_in, .help = "b-values, FSL"},
           {.name = "bvecs", .type = ArgumentType::file_in, .help = "b-vectors, FSL, in rows or columns"},
           {.name = "grad", .type = ArgumentType::file_in, .help = "gradient table of MRtrix3 instead of both"},
           {.name = "bvec-frame",
            .type = ArgumentType::choice,
            .help =
                "axes of the b-vectors: fsl (image axes, x negated when the determinant of the affine is positive), "
                "voxel (image axes), world (scanner axes), auto (the one with the most coherent fibres). A table of "
                "--grad is world, FSL files are fsl unless said otherwise",
            .choices = {"fsl", "voxel", "world", "auto"}},
           {.name = "mask", .type = ArgumentType::file_in, .help = "brain mask, NIfTI, voxels above zero"},
           {.name = "model",
            .type = ArgumentType::choice,
            .help = "what to fit",
            .choices = {"dti", "opdt", "csa", "csd"},
            .required = true},
           {.name = "out",
            .type = ArgumentType::text,
            .help = "folder for the results, made where it is not there",
            .metavar = "DIR",
            .required = true},
           {.name = "b0-threshold",
            .type = ArgumentType::real,
            .help = "volumes up to this b-value are b0",
            .unit = "s/mm^2",
            .range = {.minimum = 0},
            .default_text = "50"},
           {.name = "shell",
            .type = ArgumentType::real,
            .help = "b-value of the shell to use, with the b0 volumes; by default all for dti, the highest otherwise",
            .unit = "s/mm^2",
            .range = {.minimum = 0, .above = true}},
           {.name = "sh-order",
            .type = ArgumentType::integer,
            .help =
                "even degree of the spherical harmonics: 8 for csd, 4 for opdt and csa; lowered with a warning when "
                "the directions do not suffice",
            .range = {.minimum = 0, .maximum = 12}},
           {.name = "sh-basis",
            .type = ArgumentType::choice,
            .help = "convention of the spherical harmonics",
            .default_text = "tournier07",
            .choices = {"tournier07", "descoteaux07", "descoteaux07-legacy"}},
           {.name = "frame",
            .type = ArgumentType::choice,
            .help =
                "axes of coefficients, tensors and directions; world for tournier07 and for tensors in the order of "
                "mrtrix, otherwise image",
            .choices = {"image", "world"}},
           {.name = "min-signal",
            .type = ArgumentType::real,
            .help = "smaller signals count as this, in units of the data: 1e-4 for dti, 1e-5 for opdt and csa",
            .range = {.minimum = 0, .above = true}},
           {.name = "sm-lambda",
            .type = ArgumentType::real,
            .help = "Laplace-Beltrami smoothing of opdt and csa",
            .range = {.minimum = 0},
            .default_text = "0.006"},
           {.name = "response",
            .type = ArgumentType::file_in,
            .help = "response of csd: 'l1 l2 l3 S0', or zonal harmonics as MRtrix3 writes them"},
           {.name = "response-fa",
            .type = ArgumentType::real,
            .help = "voxels with a higher fractional anisotropy make the response",
            .range = {.minimum = 0, .maximum = 1},
            .default_text = "0.7"},
           {.name = "response-radius",
            .type = ArgumentType::integer,
            .help = "they are looked for in a box with this many voxels to each side",
            .range = {.minimum = 0},
            .default_text = "10"},
           {.name = "response-centre",
            .type = ArgumentType::text,
            .help = "the box's middle voxel; that of the image when not given",
            .metavar = "I,J,K"},
           {.name = "csd-lambda",
            .type = ArgumentType::real,
            .help = "weight of the constraint of csd",
            .range = {.minimum = 0},
            .default_text = "1"},
           {.name = "csd-tau",
            .type = ArgumentType::real,
            .help = "amplitudes below this share of their mean are constrained",
            .range = {.minimum = 0},
            .default_text = "0.1"},
           {.name = "csd-iterations",
            .type = ArgumentType::integer,
            .help = "at most this many iterations per voxel",
            .range = {.minimum = 1, .maximum = 10000},
            .default_text = "50"},
           {.name = "csd-sphere",
            .type = ArgumentType::text,
            .help = "directions of the constraint: a sphere by name, or a file with 'x y z' per line",
            .metavar = "NAME|FILE",
            .default_text = "repulsion362"},
           {.name = "sphere",
            .type = ArgumentType::text,
            .help = "sphere of --odf and --peaks",
            .metavar = "NAME|FILE",
            .default_text = "default"},
           {.name = "full-sphere", .type = ArgumentType::flag, .help = "the whole sphere rather than one half"},
           {.name = "odf", .type = ArgumentType::flag, .help = "write amplitudes on the sphere, odf.nii.gz"},
           {.name = "keep-negative", .type = ArgumentType::flag, .help = "do not raise negative amplitudes to zero"},
           {.name = "peaks",
            .type = ArgumentType::integer,
            .help = "write this many peaks per voxel, peaks.nii.gz: 3 volumes each",
            .range = {.minimum = 0, .maximum = 100},
            .default_text = "0"},
           {.name = "relative-peak-threshold",
            .type = ArgumentType::real,
            .help = "smallest peak, as a share of the greatest",
            .range = {.minimum = 0, .maximum = 1},
            .default_text = "0.25"},
           {.name = "min-separation-angle",
            .type = ArgumentType::angle,
            .help = "smallest angle between peaks",
            .range = {.minimum = 0, .maximum = 90},
            .default_text = "25"},
           {.name = "fit-method",
            .type = ArgumentType::choice,
            .help = "least squares of dti: ordinary or weighted",
            .default_text = "wls",
            .choices = {"ols", "wls"}},
           {.name = "tensor-order",
            .type = ArgumentType::choice,
            .help = "mrtrix: Dxx Dyy Dzz Dxy Dxz Dyz; dipy: lower triangle; fsl: upper triangle",
            .default_text = "mrtrix",
            .choices = {"mrtrix", "dipy", "fsl"}}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples =
          {{"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --mask mask.nii.gz --model csd --out csd",
            "fibre orientation distributions, readable by MRtrix3"},
           {"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --model dti --shell 1000 --out dti",
            "tensors from the b0 volumes and one shell, in a mask that is made"}},
      .references =
          {"Basser, Mattiello, LeBihan: Estimation of the effective self-diffusion tensor from the NMR spin "
           "echo. J. Magn. Reson. B 103, 1994",
           "Tournier, Calamante, Connelly: Robust determination of the fibre orientation distribution in "
           "diffusion MRI. NeuroImage 35, 2007",
           "Tristan-Vega, Westin, Aja-Fernandez: A new methodology for the estimation of fiber populations in "
           "the white matter of the brain with the Funk-Radon transform. NeuroImage 49, 2010",
           "Aganj et al.: Reconstruction of the orientation distribution function in single- and "
           "multiple-shell q-ball imaging within constant solid angle. Magn. Reson. Med. 64, 2010"},
      .run = run_fit,
  };
}

}  // namespace cingulum
