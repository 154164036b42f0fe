#include "cli/track_data.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.hpp"
#include "base/part_clock.hpp"
#include "base/quantity.hpp"
#include "cli/track_cache.hpp"
#include "cli/track_options.hpp"
#include "dmri/series/gradient_check.hpp"
#include "dmri/series/median_otsu.hpp"
#include "formats/nifti.hpp"
#include "tract/field/file_field.hpp"
#include "tract/field/fit_cache.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

// Where the mask of a run without --mask is written.
Result<fs::path> made_mask_path(const SeriesPaths& paths, const fs::path& out, VerbContext& context) {
  if (!paths.mask.empty()) return fs::path();
  const fs::path made = beside_series(out, ".mask.nii.gz");
  CGL_TRY(check_output(made, context.write_options()));
  return made;
}

Status write_made_mask(const TrackingData& data, ThreadPool& pool, VerbContext& context) {
  if (data.made_mask.empty()) return {};
  NiftiWriteOptions options;
  options.file = context.write_options();
  options.type = element_type_of<std::uint8_t>();
  options.pool = &pool;
  const std::vector<float> values(data.mask.begin(), data.mask.end());
  CGL_TRY(write_image(data.made_mask, data.geometry, 1, values, options));
  const auto voxels = static_cast<std::uint64_t>(std::count(data.mask.begin(), data.mask.end(), std::uint8_t{1}));
  log_info("no --mask given: {} voxels by median Otsu, written to {}", format_count(voxels), data.made_mask.string());
  return {};
}

// The frame in which b-vectors are read: given, or what the format says after the check of fibre coherence.
Result<GradientFrame> settle_frame(const ParsedArguments& arguments, const GradientTable& table,
                                   const DwiSignals& signals, const SeriesPaths& paths, const FitMachine& machine,
                                   PreparedField& prepared) {
  Json& facts = prepared.facts;
  GradientFrame frame = table.frame;
  const std::string wanted = arguments.given("bvec-frame") ? arguments.text("bvec-frame") : "";
  if (wanted == "fsl") frame = GradientFrame::fsl;
  if (wanted == "voxel") frame = GradientFrame::voxel;
  if (wanted == "world") frame = GradientFrame::world;
  const bool by_hand = !wanted.empty() && wanted != "auto";
  if (!paths.phantom) {
    CGL_TRY_ASSIGN(const GradientCheck check, check_gradients(signals, table, frame, machine));
    facts["gradient_check"] = gradient_verdict_name(check.verdict);
    if (check.verdict == GradientVerdict::another_is_better) {
      if (by_hand) {
        prepared.warnings.push_back(check.message);
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

// The steps that --cache-dir saves: everything that reads the volumes of the series. Fills the mask where it is made,
// the stopping map and the field.
Status fit_series(const ParsedArguments& arguments, const SeriesPaths& paths, const GradientTable& table,
                  const FieldRequest& request, Sphere sphere, const WantedDevices& wanted, VerbContext& context,
                  TrackingData& data) {
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const std::unique_ptr<FitDevice> device, fitting_device(wanted));
  const FitMachine machine = {*pool, device.get()};
  data.fitted_on = device ? device->name() : "cpu";
  PartClock clock("preparing");
  const double b0_threshold = arguments.real("b0-threshold");
  if (paths.mask.empty()) {
    CGL_TRY_ASSIGN(const std::vector<double> b0, mean_b0(paths.dwi, table, b0_threshold));
    CGL_TRY_ASSIGN(BrainMask brain, median_otsu(b0, data.geometry.size, {}, *pool));
    data.mask = std::move(brain.mask);
  } else {
    CGL_TRY_ASSIGN(data.mask, read_mask_on(paths.mask, "mask", data.geometry, paths.dwi));
  }
  CGL_TRY(write_made_mask(data, *pool, context));
  clock.ended("mask");
  CGL_TRY_ASSIGN(DwiSeries series, read_dwi_series(paths.dwi, table, table.frame, data.mask, b0_threshold));
  clock.ended("reading the series");
  PreparedField found;  // what is known before the model is fitted
  if (series.signals.replaced > 0) {
    found.warnings.push_back(fmt::format("{}: {} values are not finite and count as 0", paths.dwi.string(),
                                         format_count(series.signals.replaced)));
  }
  CGL_TRY_ASSIGN(const GradientFrame frame, settle_frame(arguments, table, series.signals, paths, machine, found));
  clock.ended("gradient check");
  for (const std::string& warning : found.warnings) log_warning("{}", warning);
  series.directions = directions_in_image_axes(table, frame, data.geometry.voxel_to_world);

  std::optional<TensorMaps> tensors;
  if (!arguments.given("stop-map") || request.model == FieldModel::dti) {
    Progress progress("fitting tensors", series.signals.voxels.size(), "voxels", context.progress_options());
    CGL_TRY_ASSIGN(tensors, fit_tensor_maps(series, machine, &progress));
    progress.finish();
    clock.ended("tensors");
  }
  if (arguments.given("stop-map")) {
    CGL_TRY_ASSIGN(data.stop_map, read_stop_map(arguments, data.geometry, paths.dwi));
    for (std::size_t i = 0; i < data.mask.size(); ++i) {
      if (data.mask[i] == 0) data.stop_map[i] = 0.0f;
    }
  } else {
    data.stop_map = tensors->fa;
  }
  CGL_TRY_ASSIGN(data.prepared, make_dwi_field(std::move(series), data.stop_map, tensors ? &*tensors : nullptr, request,
                                               std::move(sphere), machine, context.progress_options()));
  clock.ended("model and field");
  for (auto& [key, value] : found.facts.items()) data.prepared.facts[key] = std::move(value);
  data.prepared.warnings.insert(data.prepared.warnings.begin(), found.warnings.begin(), found.warnings.end());
  return {};
}

}  // namespace

bool is_field_file_run(const ParsedArguments& arguments) {
  return arguments.given("sf") || arguments.given("sh") || arguments.given("peaks") || arguments.given("tensor");
}

Result<std::vector<std::uint8_t>> read_mask_on(const fs::path& path, std::string_view option,
                                               const ImageGeometry& geometry, const fs::path& data) {
  ImageGeometry grid;
  CGL_TRY_ASSIGN(std::vector<std::uint8_t> mask, read_mask(path, grid));
  CGL_TRY(check_same_grid(grid, fmt::format("--{} {}", option, path.string()), geometry, data.string()));
  return mask;
}

Result<TrackingData> prepare_series(const ParsedArguments& arguments, const SeriesPaths& paths, Getter getter,
                                    const fs::path& out, const WantedDevices& wanted, VerbContext& context) {
  CGL_TRY_ASSIGN(const FieldModel model, choose_model(arguments, getter));
  CGL_TRY_ASSIGN(Sphere sphere, tracking_sphere(arguments));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const GradientTable table, read_gradients(paths));
  TrackingData data;
  {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(paths.dwi));
    for (const std::string& warning : reader.header().warnings) log_warning("{}: {}", paths.dwi.string(), warning);
    data.geometry = reader.header().geometry;
  }
  CGL_TRY_ASSIGN(const TrackingOptions options, tracking_options(arguments, getter, data.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, data.geometry));
  CGL_TRY_ASSIGN(const FieldRequest request, field_request(arguments, model, options, plan));
  CGL_TRY_ASSIGN(data.made_mask, made_mask_path(paths, out, context));
  if (!arguments.given("cache-dir")) {
    CGL_TRY(fit_series(arguments, paths, table, request, std::move(sphere), wanted, context, data));
    return data;
  }

  const FitCache cache(arguments.text("cache-dir"));
  CGL_TRY_ASSIGN(const FitKey key, FitKey::create(arguments, paths, request, sphere));
  if (auto kept = cache.load(key.json(), data.geometry, sphere)) {
    log_info("using the fit kept in {}", cache.path_of(key.json()).string());
    data.mask = std::move(kept->mask);
    data.stop_map = std::move(kept->stop_map);
    data.prepared = std::move(kept->prepared);
    for (const std::string& warning : data.prepared.warnings) log_warning("{}", warning);
    CGL_TRY(write_made_mask(data, *pool, context));
    return data;
  }
  CGL_TRY(fit_series(arguments, paths, table, request, std::move(sphere), wanted, context, data));
  if (!key.inputs_unchanged()) {
    log_warning("an input has changed while it was read: the fit is not kept");
    return data;
  }
  const Status stored = cache.store(key.json(), about_fit(paths, request), data.prepared, data.stop_map, data.mask);
  if (!stored) log_warning("the fit is not kept: {}", stored.error());
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
  CGL_TRY_ASSIGN(Sphere sphere, tracking_sphere(arguments));
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

}  // namespace cingulum
