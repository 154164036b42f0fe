#include "cli/track_data.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "cli/track_options.hpp"
#include "dmri/gradient_check.hpp"
#include "dmri/median_otsu.hpp"
#include "formats/nifti.hpp"
#include "tract/file_field.hpp"

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
                                    const fs::path& out, VerbContext& context) {
  CGL_TRY_ASSIGN(const FieldModel model, choose_model(arguments, getter));
  CGL_TRY_ASSIGN(Sphere sphere, tracking_sphere(arguments));
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
  CGL_TRY_ASSIGN(const FieldRequest request, field_request(arguments, model, options, plan));
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
