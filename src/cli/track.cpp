// `cingulum track`: from a diffusion series, a fit or a phantom to streamlines in a file.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "cli/table.hpp"
#include "cli/track_arguments.hpp"
#include "cli/track_devices.hpp"
#include "cli/verb.hpp"
#include "dmri/gradient_check.hpp"
#include "dmri/median_otsu.hpp"
#include "dmri/phantom_files.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "tract/dwi_preparation.hpp"
#include "tract/file_field.hpp"
#include "tract/regions.hpp"
#include "tract/seeds.hpp"
#include "tract/tracker.hpp"
#include "tract/tracking_plan.hpp"
#include "tract/tracking_run.hpp"

namespace cingulum {

Verb track_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// The paths of a diffusion series, wherever they came from: options, their place after DWI, or the phantom.
struct SeriesPaths {
  fs::path dwi;
  fs::path bvals;
  fs::path bvecs;
  fs::path grad;
  fs::path mask;       // empty: to be made
  fs::path seed_mask;  // empty: where the stopping map passes
  bool phantom = false;
  std::vector<FoundInput> found;  // no option names them
};

// What is tracked, and where.
struct TrackingData {
  ImageGeometry geometry;
  PreparedField prepared;
  std::vector<float> stop_map;
  std::vector<std::uint8_t> mask;  // one byte per voxel
  fs::path made_mask;              // written beside the output
};

struct Timing {
  double prepare_seconds = 0;
  double track_seconds = 0;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<fs::path> output_path(const ParsedArguments& arguments) {
  if (arguments.given("out") && arguments.given("output-prefix")) {
    return fail(ErrorKind::invalid_argument, "--out and --output-prefix both name the output; give one");
  }
  if (arguments.given("out")) return fs::path(arguments.text("out"));
  if (arguments.given("output-prefix")) {
    return fs::path(arguments.text("output-prefix") + "." + arguments.text("write-method"));
  }
  return fs::path("tracks.trx");
}

// "dwi.nii.gz" -> "dwi", with `ending` after it.
fs::path beside_series(const fs::path& series, std::string_view ending) {
  std::string name = series.string();
  for (const std::string_view known : {".nii.gz", ".nii"}) {
    if (name.ends_with(known)) {
      name.resize(name.size() - known.size());
      break;
    }
  }
  return name + std::string(ending);
}

Result<fs::path> one_of(const ParsedArguments& arguments, const std::string& option,
                        const std::vector<std::string>& data, std::size_t place) {
  const bool positional = data.size() > place;
  if (positional && arguments.given(option)) {
    return fail(ErrorKind::invalid_argument, "--{} {}: argument {} after DWI already names it: {}", option,
                arguments.text(option), place, data[place]);
  }
  if (positional) return fs::path(data[place]);
  return arguments.given(option) ? fs::path(arguments.text(option)) : fs::path();
}

bool is_field_file_run(const ParsedArguments& arguments) {
  return arguments.given("sf") || arguments.given("sh") || arguments.given("peaks") || arguments.given("tensor");
}

// The phantom of a run without data, made once and kept: the score needs its truth.
Result<fs::path> phantom_folder(const ParsedArguments& arguments, const fs::path& out, VerbContext& context) {
  const fs::path folder =
      (arguments.given("cache-dir") ? fs::path(arguments.text("cache-dir")) : out.parent_path()) / "brain-phantom";
  std::error_code ignored;
  if (fs::exists(folder / "phantom.json", ignored)) {
    log_info("no data given: tracking the phantom in {}", folder.string());
    return folder;
  }
  log_info("no data given: making the phantom `brain` in {} and tracking it", folder.string());
  PhantomRequest request;
  CGL_TRY_ASSIGN(request.model, brain_phantom());
  request.grid.voxel_mm = {request.model.voxel_mm, request.model.voxel_mm, request.model.voxel_mm};
  CGL_TRY_ASSIGN(request.scheme, named_scheme(request.model.scheme));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY(write_phantom(request, folder, context.write_options(), *pool, context.progress_options()));
  return folder;
}

Result<SeriesPaths> series_paths(const ParsedArguments& arguments, const fs::path& out, VerbContext& context) {
  const std::vector<std::string> data = arguments.texts("data");
  if (data.size() > 5) {
    return fail(ErrorKind::invalid_argument, "{} files given: accepted are DWI BVALS BVECS MASK SEED_MASK",
                data.size());
  }
  SeriesPaths paths;
  if (data.empty()) {
    CGL_TRY_ASSIGN(const fs::path folder, phantom_folder(arguments, out, context));
    paths = {.dwi = folder / "dwi.nii.gz",
             .bvals = folder / "dwi.bval",
             .bvecs = folder / "dwi.bvec",
             .grad = {},
             .mask = folder / "mask.nii.gz",
             .seed_mask = {},
             .phantom = true,
             .found = {}};
    if (arguments.given("mask")) paths.mask = arguments.text("mask");
    if (arguments.given("seed-mask")) paths.seed_mask = arguments.text("seed-mask");
    return paths;
  }
  paths.dwi = data[0];
  CGL_TRY_ASSIGN(paths.bvals, one_of(arguments, "bvals", data, 1));
  CGL_TRY_ASSIGN(paths.bvecs, one_of(arguments, "bvecs", data, 2));
  CGL_TRY_ASSIGN(paths.mask, one_of(arguments, "mask", data, 3));
  CGL_TRY_ASSIGN(paths.seed_mask, one_of(arguments, "seed-mask", data, 4));
  if (arguments.given("grad")) {
    if (!paths.bvals.empty() || !paths.bvecs.empty()) {
      return fail(ErrorKind::invalid_argument, "--grad and --bvals with --bvecs exclude each other");
    }
    paths.grad = arguments.text("grad");
    return paths;
  }
  const auto find = [&](fs::path& path, const std::string& option, std::string_view ending) -> Status {
    if (!path.empty()) return {};
    path = beside_series(paths.dwi, ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      log_info("--{} {}", option, path.string());
      paths.found.push_back({option, path});
      return {};
    }
    return fail(ErrorKind::invalid_argument, "--{} is missing, and there is no {}", option, path.string());
  };
  CGL_TRY(find(paths.bvals, "bvals", ".bval"));
  CGL_TRY(find(paths.bvecs, "bvecs", ".bvec"));
  return paths;
}

Result<GradientTable> read_gradients(const SeriesPaths& paths) {
  Result<GradientTable> table =
      paths.grad.empty() ? read_fsl_gradients(paths.bvals, paths.bvecs) : read_mrtrix_gradients(paths.grad);
  if (table) {
    for (const std::string& warning : table->warnings) log_warning("{}", warning);
  }
  return table;
}

Result<Sphere> choose_sphere(const ParsedArguments& arguments) {
  const std::string& name = arguments.text("sphere");
  if (!arguments.flag("full-sphere")) return sphere_by_name_or_file(name);
  if (auto named = named_sphere(name + "-full")) return named;
  return read_sphere(name, true);
}

double stop_threshold(const ParsedArguments& arguments) {
  return arguments.given("stop-threshold") ? arguments.real("stop-threshold") : arguments.real("fa-threshold");
}

Result<std::vector<std::uint8_t>> read_mask_on(const fs::path& path, std::string_view option,
                                               const ImageGeometry& geometry, const fs::path& data) {
  ImageGeometry grid;
  CGL_TRY_ASSIGN(std::vector<std::uint8_t> mask, read_mask(path, grid));
  CGL_TRY(check_same_grid(grid, fmt::format("--{} {}", option, path.string()), geometry, data.string()));
  return mask;
}

Result<std::vector<float>> read_stop_map(const ParsedArguments& arguments, const ImageGeometry& geometry,
                                         const fs::path& data) {
  const std::string& path = arguments.text("stop-map");
  CGL_TRY_ASSIGN(Image image, read_image(path));
  CGL_TRY(check_same_grid(image.geometry, fmt::format("--stop-map {}", path), geometry, data.string()));
  if (image.volumes != 1) {
    return fail(ErrorKind::invalid_argument, "--stop-map {}: {} volumes; accepted is one", path, image.volumes);
  }
  return std::move(image.values);
}

// The brain mask: given, or made and written beside the output.
Result<std::vector<std::uint8_t>> take_mask(const SeriesPaths& paths, const GradientTable& table,
                                            const ImageGeometry& geometry, double b0_threshold, const fs::path& out,
                                            VerbContext& context, fs::path& made) {
  if (!paths.mask.empty()) return read_mask_on(paths.mask, "mask", geometry, paths.dwi);
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  made = beside_series(out, ".mask.nii.gz");
  CGL_TRY(check_output(made, context.write_options()));
  CGL_TRY_ASSIGN(const std::vector<double> b0, mean_b0(paths.dwi, table, b0_threshold));
  CGL_TRY_ASSIGN(BrainMask brain, median_otsu(b0, geometry.size, {}, *pool));
  NiftiWriteOptions options;
  options.file = context.write_options();
  options.type = element_type_of<std::uint8_t>();
  options.pool = pool;
  std::vector<float> values(brain.mask.begin(), brain.mask.end());
  CGL_TRY(write_image(made, geometry, 1, values, options));
  log_info("no --mask given: {} voxels by median Otsu, written to {}", format_count(brain.voxels), made.string());
  return std::move(brain.mask);
}

// The frame in which b-vectors are read: given, or what the format says after the check of fibre coherence.
Result<GradientFrame> settle_frame(const ParsedArguments& arguments, const GradientTable& table,
                                   const DwiSignals& signals, const SeriesPaths& paths, ThreadPool& pool, Json& facts) {
  GradientFrame frame = table.frame;
  const std::string wanted = arguments.given("bvec-frame") ? arguments.text("bvec-frame") : "";
  if (wanted == "fsl") frame = GradientFrame::fsl;
  if (wanted == "voxel") frame = GradientFrame::voxel;
  if (wanted == "world") frame = GradientFrame::world;
  const bool by_hand = !wanted.empty() && wanted != "auto";
  if (!paths.phantom) {
    CGL_TRY_ASSIGN(const GradientCheck check, check_gradients(signals, table, frame, pool));
    facts["gradient_check"] = gradient_verdict_name(check.verdict);
    if (check.verdict == GradientVerdict::another_is_better) {
      if (by_hand) {
        log_warning("{}", check.message);
      } else if (wanted == "auto" && check.better_frame) {
        log_info("{}", check.message);
        frame = *check.better_frame;
      } else {
        return fail(ErrorKind::corrupt, "{}", check.message);
      }
    } else if (check.verdict == GradientVerdict::undecided) {
      log_debug("{}", check.message);
    }
  }
  facts["bvec_frame"] = gradient_frame_name(frame);
  return frame;
}

Result<FieldModel> choose_model(const ParsedArguments& arguments, Getter getter) {
  const std::string& name = arguments.text("model");
  FieldModel model = FieldModel::csd;
  if (name == "opdt") model = FieldModel::opdt;
  if (name == "csa") model = FieldModel::csa;
  if (name == "dti") model = FieldModel::dti;
  if (name == "default") {
    model = getter == Getter::boot ? FieldModel::opdt : getter == Getter::tensor ? FieldModel::dti : FieldModel::csd;
  }
  const bool q_ball = model == FieldModel::opdt || model == FieldModel::csa;
  if (getter == Getter::boot && !q_ball) {
    return fail(ErrorKind::invalid_argument, "--model {}: accepted with --dg boot is opdt or csa", name);
  }
  if ((getter == Getter::tensor) != (model == FieldModel::dti)) {
    return fail(ErrorKind::invalid_argument, "--model {} with --dg {}: dti and tensor go together", name,
                getter_name(getter));
  }
  return model;
}

Result<TrackingOptions> tracking_options(const ParsedArguments& arguments, Getter getter, double smallest_edge) {
  TrackingOptions options;
  const auto length = [&](const char* name) { return arguments.length(name).in_mm(smallest_edge); };
  const auto whole = [&](const char* name) { return static_cast<std::uint32_t>(arguments.integer(name)); };
  options.getter = getter;
  options.step_mm = length("step-size");
  options.max_angle_deg = arguments.real("max-angle");
  options.min_length_mm = length("min-length");
  options.max_length_mm = length("max-length");
  options.stop_threshold = stop_threshold(arguments);
  options.relative_threshold = arguments.real("pmf-threshold");
  options.absolute_threshold = arguments.real("pmf-threshold-absolute");
  options.relative_peak_threshold = arguments.real("relative-peak-threshold");
  options.min_separation_deg = arguments.real("min-separation-angle");
  options.max_directions = arguments.has("max-directions") ? whole("max-directions") : 0;
  options.angular_weight = arguments.real("angular-weight");
  options.one_sided = arguments.flag("one-sided");
  options.refine = !arguments.flag("no-refine");
  options.rk4 = arguments.flag("rk4");
  options.boot_attempts = whole("boot-attempts");
  options.boot_retry =
      arguments.text("boot-retry") == "no-peak-or-angle" ? BootRetry::no_peak_or_angle : BootRetry::no_peak;
  options.boot_seed = arguments.flag("boot-seed");
  options.boot_min_signal = arguments.real("min-signal");
  options.ptt_probe_length_mm = arguments.has("ptt-probe-length") ? length("ptt-probe-length") : 0;
  options.ptt_probe_radius_mm = length("ptt-probe-radius");
  options.ptt_probe_quality = whole("ptt-probe-quality");
  options.ptt_probe_count = whole("ptt-probe-count");
  options.ptt_exponent = arguments.real("ptt-exponent");
  options.ptt_min_radius_mm = arguments.has("ptt-min-radius") ? length("ptt-min-radius") : 0;
  options.ptt_weak_links = arguments.flag("ptt-weak-links");
  options.ptt_tries = whole("ptt-tries");
  options.ptt_substeps = whole("ptt-substeps");
  options.random_key = arguments.key("seed");
  if (options.rk4 && getter != Getter::tensor) {
    return fail(ErrorKind::invalid_argument, "--rk4: accepted with --dg tensor, not {}", getter_name(getter));
  }
  if (arguments.given("stop-threshold") && arguments.given("fa-threshold")) {
    return fail(ErrorKind::invalid_argument, "--stop-threshold and --fa-threshold are the same; give one");
  }
  return options;
}

// Voxels that a streamline can read lie this far from one where the stopping map passes.
std::int64_t reach_of(const TrackingPlan& plan) {
  if (static_cast<Getter>(plan.getter) != Getter::ptt) return 1;
  const double reach_mm = static_cast<double>(plan.ptt_probe_length_mm) + plan.ptt_probe_radius_mm + plan.step_mm;
  const double voxels_per_mm = std::max(plan.voxels_per_mm[0], std::max(plan.voxels_per_mm[1], plan.voxels_per_mm[2]));
  return 2 + static_cast<std::int64_t>(reach_mm * voxels_per_mm);
}

Result<TrackingData> prepare_series(const ParsedArguments& arguments, const SeriesPaths& paths, Getter getter,
                                    const fs::path& out, VerbContext& context) {
  CGL_TRY_ASSIGN(const FieldModel model, choose_model(arguments, getter));
  CGL_TRY_ASSIGN(Sphere sphere, choose_sphere(arguments));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const GradientTable table, read_gradients(paths));
  const double b0_threshold = arguments.real("b0-threshold");
  TrackingData data;
  {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(paths.dwi));
    for (const std::string& warning : reader.header().warnings) log_warning("{}: {}", paths.dwi.string(), warning);
    data.geometry = reader.header().geometry;
  }
  CGL_TRY_ASSIGN(const TrackingOptions options, tracking_options(arguments, getter, data.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, data.geometry));
  CGL_TRY_ASSIGN(data.mask, take_mask(paths, table, data.geometry, b0_threshold, out, context, data.made_mask));
  CGL_TRY_ASSIGN(DwiSeries series, read_dwi_series(paths.dwi, table, table.frame, data.mask, b0_threshold));
  if (series.signals.replaced > 0) {
    log_warning("{}: {} values are not finite and count as 0", paths.dwi.string(),
                format_count(series.signals.replaced));
  }
  Json facts = Json::object();
  CGL_TRY_ASSIGN(const GradientFrame frame, settle_frame(arguments, table, series.signals, paths, *pool, facts));
  series.directions = directions_in_image_axes(table, frame, data.geometry.voxel_to_world);

  std::optional<TensorMaps> tensors;
  if (!arguments.given("stop-map") || model == FieldModel::dti) {
    Progress progress("fitting tensors", series.signals.voxels.size(), "voxels", context.progress_options());
    CGL_TRY_ASSIGN(tensors, fit_tensor_maps(series, *pool, &progress));
    progress.finish();
  }
  if (arguments.given("stop-map")) {
    CGL_TRY_ASSIGN(data.stop_map, read_stop_map(arguments, data.geometry, paths.dwi));
    for (std::size_t i = 0; i < data.mask.size(); ++i) {
      if (data.mask[i] == 0) data.stop_map[i] = 0.0f;
    }
  } else {
    data.stop_map = tensors->fa;
  }
  FieldRequest request;
  request.model = model;
  request.bootstrap = getter == Getter::boot;
  request.degree = arguments.given("sh-order") ? static_cast<int>(arguments.integer("sh-order"))
                                               : (model == FieldModel::csd ? 8 : 4);
  if (request.degree % 2 != 0) {
    return fail(ErrorKind::invalid_argument, "--sh-order {}: accepted is an even number from 2 to 12", request.degree);
  }
  request.smoothing = arguments.real("sm-lambda");
  request.min_signal = arguments.real("min-signal");
  if (arguments.given("shell")) request.shell = arguments.real("shell");
  if (arguments.given("response")) request.response = arguments.text("response");
  request.amplitudes = arguments.flag("amplitudes") || arguments.flag("full-sphere");
  request.stop_threshold = options.stop_threshold;
  request.reach_voxels = reach_of(plan);
  CGL_TRY_ASSIGN(data.prepared, make_dwi_field(std::move(series), data.stop_map, tensors ? &*tensors : nullptr, request,
                                               std::move(sphere), *pool, context.progress_options()));
  for (auto& [key, value] : facts.items()) data.prepared.facts[key] = std::move(value);
  return data;
}

Result<TrackingData> prepare_file(const ParsedArguments& arguments, Getter getter, VerbContext& context) {
  FieldFileRequest request;
  std::string option;
  for (const auto& [name, kind] : {std::pair{"sf", FieldFileKind::amplitudes},
                                   {"sh", FieldFileKind::harmonics},
                                   {"peaks", FieldFileKind::peaks},
                                   {"tensor", FieldFileKind::tensor}}) {
    if (!arguments.given(name)) continue;
    if (!option.empty()) {
      return fail(ErrorKind::invalid_argument, "--{} and --{} both name what is tracked; give one", option, name);
    }
    option = name;
    request.kind = kind;
    request.path = arguments.text(name);
  }
  if (!arguments.texts("data").empty()) {
    return fail(ErrorKind::invalid_argument, "a series ({}) and --{} both name what is tracked; give one",
                arguments.texts("data").front(), option);
  }
  if (getter == Getter::boot) {
    return fail(ErrorKind::invalid_argument,
                "--dg boot resamples the signals of a series; with --{} use prob, ptt, det, closest or tensor", option);
  }
  if (arguments.given("sh-basis")) request.basis = arguments.text("sh-basis");
  if (arguments.given("frame")) request.frame = arguments.text("frame");
  if (arguments.given("tensor-order")) request.tensor_order = arguments.text("tensor-order");
  request.amplitudes = arguments.flag("amplitudes") || arguments.flag("full-sphere");
  CGL_TRY_ASSIGN(Sphere sphere, choose_sphere(arguments));
  CGL_TRY_ASSIGN(const FieldFile file, read_field_file(request));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  TrackingData data;
  data.geometry = file.image.geometry;
  if (arguments.given("mask")) {
    CGL_TRY_ASSIGN(data.mask, read_mask_on(arguments.text("mask"), "mask", data.geometry, request.path));
  } else {
    data.mask.assign(static_cast<std::size_t>(data.geometry.voxel_count()), 1);
  }
  if (arguments.given("stop-map")) {
    CGL_TRY_ASSIGN(data.stop_map, read_stop_map(arguments, data.geometry, request.path));
  } else {
    CGL_TRY_ASSIGN(data.stop_map, default_stop_map(file));
    log_info("no --stop-map given: {}", request.kind == FieldFileKind::tensor
                                            ? "FA of the tensors stops"
                                            : "1 where the file has numbers, 0 elsewhere, stops");
  }
  for (std::size_t i = 0; i < data.mask.size(); ++i) {
    if (data.mask[i] == 0) data.stop_map[i] = 0.0f;
  }
  CGL_TRY_ASSIGN(data.prepared, make_file_field(file, data.stop_map, data.mask, std::move(sphere), *pool));
  return data;
}

Result<std::array<std::uint32_t, 3>> parse_grid(const std::string& text) {
  std::vector<std::uint32_t> parts;
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto number = parse_integer(rest.substr(0, end));
    if (!number || *number < 1 || *number > 1000) {
      return fail(ErrorKind::invalid_argument, "--seed-grid '{}': accepted is N or NxNxN with N from 1 to 1000", text);
    }
    parts.push_back(static_cast<std::uint32_t>(*number));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() == 1) parts.resize(3, parts[0]);
  if (parts.size() != 3) {
    return fail(ErrorKind::invalid_argument, "--seed-grid '{}': accepted is N or NxNxN with N from 1 to 1000", text);
  }
  return std::array<std::uint32_t, 3>{parts[0], parts[1], parts[2]};
}

Result<std::unique_ptr<Seeds>> make_seeds(const ParsedArguments& arguments, const TrackingData& data,
                                          const fs::path& seed_mask, const fs::path& name_of_data) {
  int ways = 0;
  for (const char* name : {"seeds-per-voxel", "seed-grid", "seed-file", "seed-ends"})
    ways += arguments.given(name) ? 1 : 0;
  if (ways > 1 || (ways == 1 && arguments.given("nseeds"))) {
    return fail(ErrorKind::invalid_argument,
                "--nseeds, --seeds-per-voxel, --seed-grid, --seed-file and --seed-ends exclude each other");
  }
  const SeedSpace space = arguments.text("seed-space") == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  if (arguments.given("seed-file")) {
    CGL_TRY_ASSIGN(auto positions, read_seed_positions(arguments.text("seed-file"), space, data.geometry));
    return listed_seeds(std::move(positions));
  }
  if (arguments.given("seed-ends")) {
    CGL_TRY_ASSIGN(auto positions, seed_positions_of_ends(arguments.text("seed-ends"), data.geometry));
    return listed_seeds(std::move(positions));
  }
  std::vector<std::uint8_t> mask;
  if (!seed_mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(seed_mask, "seed-mask", data.geometry, name_of_data));
  } else {
    const auto threshold = static_cast<float>(stop_threshold(arguments));
    mask.assign(data.stop_map.size(), 0);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = data.mask[i] != 0 && data.stop_map[i] > threshold ? 1 : 0;
  }
  const numerics::PhiloxKey key =
      numerics::philox_key(arguments.has("seed-seed") ? arguments.key("seed-seed") : arguments.key("seed"));
  if (arguments.given("seeds-per-voxel")) {
    const std::int64_t per_voxel = arguments.integer("seeds-per-voxel");
    if (per_voxel > std::int64_t{0xffffffff}) {
      return fail(ErrorKind::invalid_argument, "--seeds-per-voxel {}: a run takes at most 2^32 seeds", per_voxel);
    }
    return random_seeds_per_voxel(data.geometry, mask, static_cast<std::uint32_t>(per_voxel), key);
  }
  if (arguments.given("seed-grid")) {
    CGL_TRY_ASSIGN(const auto per_axis, parse_grid(arguments.text("seed-grid")));
    return grid_seeds(data.geometry, mask, per_axis);
  }
  if (arguments.given("select") && arguments.given("nseeds")) {
    return fail(ErrorKind::invalid_argument,
                "--select draws seeds until enough streamlines are kept; limit them by --max-seeds, not by --nseeds");
  }
  const bool endless = arguments.given("select");
  return random_seeds(data.geometry, mask, endless ? 0 : static_cast<std::uint64_t>(arguments.integer("nseeds")), key);
}

Result<std::optional<GivenDirections>> given_directions(const ParsedArguments& arguments, const Seeds& seeds,
                                                        const ImageGeometry& geometry) {
  if (!arguments.given("directions")) return std::nullopt;
  const SeedSpace space = arguments.text("seed-space") == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  GivenDirections given;
  CGL_TRY_ASSIGN(given.directions, read_directions(arguments.text("directions"), space, geometry));
  if (given.directions.size() != seeds.count()) {
    return fail(ErrorKind::invalid_argument, "--directions {}: {} directions for {} seeds; one for each is needed",
                arguments.text("directions"), given.directions.size(), seeds.count());
  }
  return given;
}

Result<RegionRules> read_rules(const ParsedArguments& arguments, const ImageGeometry& geometry) {
  RegionRules rules;
  const auto read = [&](const char* option, std::vector<Region>& list) -> Status {
    for (const std::string& text : arguments.texts(option)) {
      CGL_TRY_ASSIGN(Region region, add_context(read_region(text, geometry), "--{}", option));
      list.push_back(std::move(region));
    }
    return {};
  };
  CGL_TRY(read("include", rules.include));
  CGL_TRY(read("include-ordered", rules.include_ordered));
  CGL_TRY(read("exclude", rules.exclude));
  CGL_TRY(read("stop", rules.stop));
  return rules;
}

Json plan_json(const TrackingPlan& plan, const TrackingOptions& options) {
  return {{"getter", getter_name(options.getter)},
          {"size", {plan.size.x, plan.size.y, plan.size.z}},
          {"step_mm", plan.step_mm},
          {"step_in_voxels", {plan.step_in_voxels[0], plan.step_in_voxels[1], plan.step_in_voxels[2]}},
          {"cos_max_angle", plan.cos_max_angle},
          {"stop_threshold", plan.stop_threshold},
          {"max_steps", plan.max_steps},
          {"min_length_mm", options.min_length_mm},
          {"max_length_mm", options.max_length_mm},
          {"relative_threshold", plan.relative_threshold},
          {"absolute_threshold", plan.absolute_threshold},
          {"relative_peak_threshold", plan.relative_peak_threshold},
          {"cos_min_separation", plan.cos_min_separation},
          {"max_directions", plan.max_directions},
          {"angular_weight", plan.angular_weight},
          {"one_sided", plan.one_sided != 0},
          {"refine", plan.refine != 0},
          {"rk4", plan.rk4 != 0},
          {"boot_attempts", plan.boot_attempts},
          {"boot_retry", options.boot_retry == BootRetry::no_peak ? "no-peak" : "no-peak-or-angle"},
          {"boot_seed", plan.boot_seed != 0},
          {"boot_min_signal", plan.boot_min_signal},
          {"ptt_probe_length_mm", plan.ptt_probe_length_mm},
          {"ptt_probe_step_mm", plan.ptt_probe_step_mm},
          {"ptt_probe_radius_mm", plan.ptt_probe_radius_mm},
          {"ptt_probe_quality", plan.ptt_probe_quality},
          {"ptt_probe_count", plan.ptt_probe_count},
          {"ptt_exponent", plan.ptt_exponent},
          {"ptt_max_curvature_per_mm", plan.ptt_max_curvature},
          {"ptt_weak_links", plan.ptt_weak_links != 0},
          {"ptt_tries", plan.ptt_tries},
          {"ptt_substeps", plan.ptt_substeps},
          {"random_key", options.random_key}};
}

std::string_view field_kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::amplitudes: return "amplitudes";
    case FieldKind::harmonics: return "harmonics";
    case FieldKind::bootstrap: return "bootstrap";
    case FieldKind::peaks: return "peaks";
    case FieldKind::tensor: return "tensor";
  }
  return "unknown";
}

std::uint64_t field_bytes(const Field& field) {
  return field.records.size() * sizeof(float) + field.record_of_voxel.size() * sizeof(std::uint32_t);
}

Json end_reason_json(const TrackingStatistics& statistics) {
  Json reasons = Json::object();
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    reasons[std::string(end_reason_name(static_cast<EndReason>(i)))] = statistics.end_reasons[i];
  }
  return reasons;
}

// What is the same for equal runs.
Json result_json(const TrackingStatistics& statistics, bool select) {
  Json json = {{"seeds", statistics.seeds},
               {"seeds_with_streamlines", statistics.seeds_with_streamlines},
               {"streamlines", statistics.streamlines},
               {"kept", statistics.kept},
               {"too_short", statistics.too_short},
               {"too_long", statistics.too_long},
               {"refused_by_regions", statistics.refused_by_regions},
               {"points", statistics.points},
               {"points_written", statistics.points_written},
               {"mean_length_mm", statistics.lengths.mean_mm()},
               {"median_length_mm", statistics.lengths.quantile_mm(0.5)},
               {"smallest_length_mm", statistics.lengths.smallest_mm()},
               {"largest_length_mm", statistics.lengths.largest_mm()},
               {"end_reasons", end_reason_json(statistics)},
               {"partial", statistics.interrupted}};
  if (select) {
    json["select_reached"] = statistics.select_reached;
  } else {
    // With --select the device may have gone beyond the last seed that counts.
    json["seeds_outside"] = statistics.seeds_outside;
    json["seeds_without_direction"] = statistics.seeds_without_direction;
    json["steps"] = statistics.steps;
  }
  return json;
}

Json run_json(const TrackingStatistics& statistics, const ParsedArguments& arguments, VerbContext& context,
              const TrackingDevices& devices, const Timing& timing, double seconds) {
  Json run = run_facts(context.common().threads, seconds);
  run["device"] = devices.names;
  run["seeds_of_devices"] = statistics.seeds_of_trackers;
  run["chunk_size"] = arguments.integer("chunk-size");
  run["prepare_seconds"] = timing.prepare_seconds;
  run["tracking_seconds"] = statistics.tracking_seconds;
  run["tracking_and_writing_seconds"] = timing.track_seconds;
  run["seeds_tracked"] = statistics.seeds_tracked;
  run["steps"] = statistics.steps;
  std::error_code ignored;
  run["folder"] = fs::current_path(ignored).string();
  return run;
}

void print_result(const TrackingStatistics& statistics, const fs::path& out, const TrackingDevices& devices,
                  const Timing& timing, VerbContext& context) {
  Table table({{""}, {"", Align::right}});
  table.add_row({"seeds", format_count(statistics.seeds)});
  table.add_row({"streamlines", format_count(statistics.streamlines)});
  if (statistics.too_short > 0) table.add_row({"too short", format_count(statistics.too_short)});
  if (statistics.too_long > 0) table.add_row({"too long", format_count(statistics.too_long)});
  if (statistics.refused_by_regions > 0)
    table.add_row({"refused by regions", format_count(statistics.refused_by_regions)});
  table.add_row({"kept", format_count(statistics.kept)});
  table.add_row({"points", format_count(statistics.points)});
  table.add_row({"mean length", fmt::format("{:.2f} mm", statistics.lengths.mean_mm())});
  table.add_row({"median length", fmt::format("{:.1f} mm", statistics.lengths.quantile_mm(0.5))});
  for (std::size_t i = 1; i < end_reason_count; ++i) {
    if (statistics.end_reasons[i] == 0) continue;
    table.add_row(
        {fmt::format("ends: {}", end_reason_name(static_cast<EndReason>(i))), format_count(statistics.end_reasons[i])});
  }
  const double seconds = std::max(timing.track_seconds, 1e-9);
  context.print_format("{}\n{}", out.string(), table.text(2));
  context.print_format("  prepared in {}, tracked on {} and written in {} ({:.2f} M points/s)\n",
                       format_duration(std::chrono::duration<double>(timing.prepare_seconds)), devices.names,
                       format_duration(std::chrono::duration<double>(timing.track_seconds)),
                       static_cast<double>(statistics.points) / seconds / 1e6);
}

// A repeated run without data must find the phantom that it had.
Status check_phantom(const ParsedArguments& command_line, const fs::path& dwi, const std::string& hash) {
  if (!command_line.given("from")) return {};
  CGL_TRY_ASSIGN(const std::string text, read_text_file(command_line.text("from")));
  CGL_TRY_ASSIGN(const Json json, parse_json(text));
  if (!json.contains("phantom") || !json["phantom"].is_object()) return {};
  const Json& stored = json["phantom"].value("dwi_xxh3_128", Json());
  if (stored.is_string() && stored.get<std::string>() == hash) return {};
  return fail(ErrorKind::corrupt, "repeating the run of {}: the phantom {} is another than it had; remove its folder",
              command_line.text("from"), dwi.string());
}

Status run_track(const ParsedArguments& command_line, VerbContext& context) {
  const auto begin = Clock::now();
  const Verb verb = track_verb();
  ParsedArguments arguments = command_line;
  if (command_line.given("from")) {
    CGL_TRY_ASSIGN(arguments, arguments_from_sidecar(verb, command_line.text("from"), command_line));
  }
  CGL_TRY_ASSIGN(const WantedDevices wanted, wanted_devices(arguments, context));
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(arguments.text("dg")));
  CGL_TRY_ASSIGN(const fs::path out, output_path(arguments));
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(out));
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  for (const char* option : {"save-seeds", "float16"}) {
    if (arguments.flag(option) && !trx) {
      return fail(ErrorKind::invalid_argument, "--{}: {} has no place for it; write .trx", option, out.string());
    }
  }
  const WriteOptions write_options = context.write_options();
  if (format != TractogramFormat::trx_folder) CGL_TRY(check_output(out, write_options));
  CGL_TRY(check_output(sidecar_path(out), write_options));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());

  // What is tracked.
  TrackingData data;
  fs::path name_of_data;
  fs::path seed_mask = arguments.given("seed-mask") ? fs::path(arguments.text("seed-mask")) : fs::path();
  std::vector<FoundInput> found;
  std::string phantom_hash;
  if (is_field_file_run(arguments)) {
    CGL_TRY_ASSIGN(data, prepare_file(arguments, getter, context));
    name_of_data = "the tracked image";
  } else {
    CGL_TRY_ASSIGN(const SeriesPaths paths, series_paths(arguments, out, context));
    CGL_TRY_ASSIGN(data, prepare_series(arguments, paths, getter, out, context));
    name_of_data = paths.dwi;
    seed_mask = paths.seed_mask;
    found = paths.found;
    if (paths.phantom) {
      CGL_TRY_ASSIGN(phantom_hash, hash_of_file(paths.dwi));
      CGL_TRY(check_phantom(command_line, paths.dwi, phantom_hash));
    }
  }
  const double smallest_edge = data.geometry.smallest_edge_mm();
  CGL_TRY_ASSIGN(const TrackingOptions options, tracking_options(arguments, getter, smallest_edge));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, data.geometry));
  if (data.prepared.field.replaced > 0) {
    log_warning("{} numbers of the field were not finite or too small and count as 0",
                format_count(data.prepared.field.replaced));
  }
  CGL_TRY_ASSIGN(const std::unique_ptr<Seeds> seeds, make_seeds(arguments, data, seed_mask, name_of_data));
  CGL_TRY_ASSIGN(const std::optional<GivenDirections> directions, given_directions(arguments, *seeds, data.geometry));

  TrackingRunOptions run_options;
  run_options.selection.min_length_mm = options.min_length_mm;
  run_options.selection.max_length_mm = options.max_length_mm;
  run_options.selection.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
  CGL_TRY_ASSIGN(run_options.selection.regions, read_rules(arguments, data.geometry));
  if (arguments.given("max-seeds") && !arguments.given("select")) {
    return fail(ErrorKind::invalid_argument, "--max-seeds limits --select; without it use --nseeds");
  }
  run_options.select = arguments.has("select") ? static_cast<std::uint64_t>(arguments.integer("select")) : 0;
  run_options.max_seeds = arguments.has("max-seeds") ? static_cast<std::uint64_t>(arguments.integer("max-seeds")) : 0;
  run_options.chunk_seeds = static_cast<std::uint64_t>(arguments.integer("chunk-size"));
  run_options.fixed_chunks = arguments.given("chunk-size");
  run_options.save_seeds = arguments.flag("save-seeds");
  run_options.double_positions = arguments.flag("float16");
  run_options.linearise_mm = arguments.has("linearise") ? arguments.length("linearise").in_mm(smallest_edge) : 0;
  run_options.keep_partial = arguments.flag("keep-partial");
  run_options.overlap = pool->threads() > 1;

  CGL_TRY_ASSIGN(const TrackingDevices devices, tracking_devices(wanted, *pool, plan, data.prepared.field, *seeds,
                                                                 directions ? &*directions : nullptr));

  TractogramLayout layout;
  layout.format = format;
  layout.reference = data.geometry;
  layout.position_type =
      arguments.flag("float16") ? ElementType{ElementType::Code::floating, 16} : element_type_of<float>();
  if (run_options.save_seeds) layout.streamline_fields = seed_fields(seeds->count());
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramWriter> writer, TractogramWriter::create(out, layout, write_options));

  Timing timing;
  timing.prepare_seconds = seconds_since(begin);
  const auto track_begin = Clock::now();
  Progress progress("tracking", run_options.select > 0 ? 0 : seeds->count(), "seeds", context.progress_options());
  CGL_TRY_ASSIGN(const TrackingStatistics statistics,
                 run_tracking(devices.pointers(), *seeds, data.geometry, run_options, *writer, &progress));
  // What is finished is written in full; another Ctrl-C asks anew.
  if (statistics.interrupted) clear_interrupt();
  CGL_TRY(writer->commit());
  progress.finish();
  timing.track_seconds = seconds_since(track_begin);

  Json sidecar = {{"made_by", "cingulum track"}};
  sidecar["arguments"] = options_for_sidecar(verb, arguments);
  CGL_TRY_ASSIGN(sidecar["inputs"], input_facts(verb, arguments, found));
  if (!phantom_hash.empty()) sidecar["phantom"] = {{"preset", "brain"}, {"dwi_xxh3_128", phantom_hash}};
  sidecar["model"] = data.prepared.facts;
  const Field& field = data.prepared.field;
  sidecar["field"] = {{"kind", field_kind_name(field.kind)}, {"channels", field.channels},
                      {"bytes", field_bytes(field)},         {"replaced", field.replaced},
                      {"sphere", field.sphere.name},         {"directions", field.sphere.size()},
                      {"half_sphere", field.sphere.half}};
  sidecar["plan"] = plan_json(plan, options);
  Json codes = Json::object();
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    codes[std::to_string(i)] = end_reason_name(static_cast<EndReason>(i));
  }
  sidecar["end_reason_codes"] = std::move(codes);
  sidecar["result"] = result_json(statistics, run_options.select > 0);
  sidecar["run"] = run_json(statistics, arguments, context, devices, timing, seconds_since(begin));
  CGL_TRY(write_sidecar(out, sidecar, write_options));

  if (!statistics.select_reached) {
    log_warning("--select {}: {} streamlines kept after {} seeds; raise --max-seeds or loosen the rules",
                format_count(run_options.select), format_count(statistics.kept), format_count(statistics.seeds));
  }
  if (context.common().json) {
    sidecar["file"] = out.string();
    context.print(json_text(sidecar));
  } else {
    print_result(statistics, out, devices, timing, context);
  }
  if (statistics.interrupted) {
    return fail(ErrorKind::interrupted, "stopped: {} holds the {} finished seeds of {}", out.string(),
                format_count(statistics.seeds), format_count(seeds->count()));
  }
  return {};
}

}  // namespace

Verb track_verb() {
  return {
      .name = "track",
      .summary = "track streamlines through a diffusion series, a fit or a phantom",
      .description =
          "Reads a diffusion series and fits what the direction getter asks for (--dg: boot on OPDT or CSA; prob, ptt, "
          "det and closest on CSD; tensor on DTI), or takes amplitudes, spherical harmonics, peaks or tensors from a "
          "file. Streamlines start at every seed along each of its peaks and go both ways until the stopping map (FA "
          "unless given) falls to its threshold, the image ends, no direction lies within --max-angle, or the length "
          "is "
          "reached. With no data at all the phantom `brain` is made and tracked.\n\n"
          "The result depends on the data, the options and --seed alone: not on threads, chunks or devices. The "
          "sidecar "
          "FILE.json holds every parameter and the hashes of the inputs; --from repeats a run to the bit.\n\n"
          "--select N draws seeds until N streamlines are kept; the result is the first N in the order of the seeds. A "
          "region is met when a segment enters one of its voxels, judged on the whole streamline.",
      .arguments = track_arguments(),
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress,
                 CommonOption::seed},
      .examples =
          {{"cingulum track", "the phantom `brain`, by residual bootstrap, into tracks.trx"},
           {"cingulum track dwi.nii.gz --mask mask.nii.gz --dg prob --out prob.trx",
            "100 000 seeds, probabilistic on CSD; b-values and b-vectors are found beside the series"},
           {"cingulum track dwi.nii.gz --dg ptt --select 10000 --include 0,0,20,8 --min-length 30 --out callosum.trx",
            "ten thousand streamlines through a sphere"},
           {"cingulum track --sh fod.nii.gz --dg det --stop-map fa.nii.gz --seeds-per-voxel 2 --out det.tck",
            "deterministic, from MRtrix3's FOD"},
           {"cingulum track --from prob.trx.json --out again.trx", "the same run again, to the bit"}},
      .references =
          {"J. I. Berman et al., Probabilistic streamline q-ball tractography using the residual bootstrap, NeuroImage "
           "39, 215-222, 2008",
           "D. B. Aydogan, Y. Shi, Parallel transport tractography, IEEE Trans. Med. Imaging 40, 635-647, 2021",
           "J.-D. Tournier, F. Calamante, A. Connelly, Robust determination of the fibre orientation distribution, "
           "NeuroImage 35, 1459-1472, 2007"},
      .run = run_track,
  };
}

}  // namespace cingulum
