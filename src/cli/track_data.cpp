#include "cli/track_data.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/version.hpp"
#include "cli/track_defaults.hpp"
#include "cli/track_options.hpp"
#include "formats/nifti.hpp"
#include "tract/field/amplitude_cutoff.hpp"
#include "tract/field/fit_cache.hpp"
#include "tract/field/fit_key.hpp"
#include "tract/field/series_field.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

Status write_made_mask(const TrackingData& data, const fs::path& path, ThreadPool& pool, VerbContext& context) {
  NiftiWriteOptions options;
  options.file = context.write_options();
  options.type = element_type_of<std::uint8_t>();
  options.pool = &pool;
  const std::vector<float> values(data.mask.begin(), data.mask.end());
  CGL_TRY(write_image(path, data.geometry, 1, values, options));
  const auto voxels = static_cast<std::uint64_t>(std::count(data.mask.begin(), data.mask.end(), std::uint8_t{1}));
  log_info("no --mask given: {} voxels by median Otsu, written to {}", format_count(voxels), path.string());
  return {};
}

Result<FieldFileRequest> image_request(const ParsedArguments& arguments, Getter getter) {
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
  if (arguments.given("frame")) {
    request.frame = arguments.text("frame");
  } else if (arguments.has("frame")) {
    // Older rules asked nobody: values_under_rules().
    request.frame_of_silent_peaks = arguments.text("frame");
  }
  if (arguments.given("all-peaks") && !arguments.given("peaks")) {
    return fail(ErrorKind::invalid_argument, "--all-peaks: accepted with --peaks");
  }
  if (!arguments.flag("all-peaks")) {
    request.peaks.relative_threshold = arguments.real("relative-peak-threshold");
    request.peaks.absolute_threshold = arguments.real("pmf-threshold-absolute");
    // Whoever made the peaks has kept them apart: 45 degrees, which noise asks for, would take true ones.
    if (arguments.given("min-separation-angle")) {
      request.peaks.min_separation_deg = arguments.real("min-separation-angle");
    }
  }
  if (arguments.given("tensor-order")) request.tensor_order = arguments.text("tensor-order");
  CGL_TRY_ASSIGN(request.amplitudes, interpolates_amplitudes(arguments));
  return request;
}

// What stops where no map was given, named and stated.
Result<std::vector<float>> amplitude_stop_map(const FieldFile& file, std::span<const std::uint8_t> mask,
                                              const Sphere& sphere, const ParsedArguments& arguments,
                                              ThreadPool& pool) {
  CGL_TRY_ASSIGN(std::vector<float> greatest, greatest_amplitudes(file, sphere, pool));
  const double threshold = stop_threshold(arguments);
  std::string reached;
  if (cutoff_is_threshold(arguments)) {
    CGL_TRY_ASSIGN(const CutoffReach reach, check_cutoff(file, greatest, mask, arguments.real("amplitude-cutoff")));
    reached = fmt::format(" (--amplitude-cutoff {}, which {} of {} voxels exceed)", arguments.real("amplitude-cutoff"),
                          format_count(reach.above), format_count(reach.voxels));
  }
  log_info(
      "no --stop-map given: tracked where the greatest amplitude of a voxel is above {}{}; --pmf-threshold-absolute "
      "is {}",
      threshold, reached, arguments.real("pmf-threshold-absolute"));
  return greatest;
}

Result<TrackingData> prepare_image(const FieldFile& file, const NamedGrid& grid, const ParsedArguments& arguments,
                                   const GivenArrays& arrays, ThreadPool& pool) {
  const std::string name = file.request.path.string();
  const bool whole_sphere = arguments.flag("full-sphere") || file.full_basis;
  CGL_TRY_ASSIGN(Sphere sphere, arrays.sphere ? Result<Sphere>(*arrays.sphere)
                                              : sphere_by_name_or_file(arguments.text("sphere"), whole_sphere));
  if (file.full_basis) {
    log_info("{} has harmonics of all degrees up to {} ({}): sampled once on the {} directions of the whole sphere",
             name, file.degree, file.basis, sphere.size());
  }
  std::vector<std::uint8_t> mask;
  if (arrays.mask) {
    mask = *arrays.mask;
  } else if (arguments.given("mask")) {
    CGL_TRY_ASSIGN(mask, read_mask_on(arguments.text("mask"), "the mask", grid));
  }
  std::vector<float> stop_map;
  if (arrays.stop_map) {
    stop_map = *arrays.stop_map;
  } else if (arguments.given("stop-map")) {
    CGL_TRY_ASSIGN(stop_map, read_stop_map(arguments.text("stop-map"), grid));
  } else if (stops_by_amplitude(arguments)) {
    CGL_TRY_ASSIGN(stop_map, amplitude_stop_map(file, mask, sphere, arguments, pool));
  } else {
    log_info("no --stop-map given: {}", file.request.kind == FieldFileKind::tensor
                                            ? "FA of the tensors stops"
                                            : "1 where the file has numbers, 0 elsewhere, stops");
  }
  return make_file_tracking_data(file, std::move(mask), std::move(stop_map), std::move(sphere), pool);
}

Result<SeriesFieldRequest> series_request(const ParsedArguments& arguments, const GivenArrays& arrays,
                                          const SeriesPaths& paths, const TrackingOptions& options,
                                          const TrackingPlan& plan) {
  CGL_TRY_ASSIGN(const FieldModel model, choose_model(arguments, options.getter));
  SeriesFieldRequest request;
  CGL_TRY_ASSIGN(request.sphere, tracking_sphere(arguments, arrays));
  CGL_TRY_ASSIGN(request.field, field_request(arguments, model, options, plan));
  request.series.b0_threshold = arguments.real("b0-threshold");
  CGL_TRY_ASSIGN(request.series.frame,
                 parse_wanted_frame(arguments.given("bvec-frame") ? arguments.text("bvec-frame") : ""));
  request.series.check_frame = !paths.phantom;
  return request;
}

// The field of a series that is an array; masks and maps beside it may be arrays or files.
Result<TrackingData> take_series_field(const GivenArrays& arrays, const SeriesFieldFiles& files, const NamedGrid& grid,
                                       SeriesFieldRequest request, const FitMachine& machine,
                                       const ProgressOptions& progress) {
  if (!files.response.empty() && request.field.model == FieldModel::csd) {
    CGL_TRY_ASSIGN(request.field.response, read_response(files.response));
  }
  std::optional<std::vector<float>> stop_map = arrays.stop_map;
  if (!stop_map && !files.stop_map.empty()) {
    CGL_TRY_ASSIGN(stop_map, read_stop_map(files.stop_map, grid));
  }
  std::vector<std::uint8_t> mask = arrays.mask.value_or(std::vector<std::uint8_t>());
  if (mask.empty() && !files.series.mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(files.series.mask, "the mask", grid));
  }
  CGL_TRY_ASSIGN(SettledSeries series, series_of_arrays(*arrays.head, arrays.series, mask, request.series, machine));
  return make_series_field(std::move(series), std::move(stop_map), request, machine, progress);
}

}  // namespace

Result<TrackSource> open_source(const ParsedArguments& arguments, const GivenArrays& arrays, Getter getter,
                                const fs::path& out, const PreparedRun* prepared_run, WantedDevices& wanted,
                                VerbContext& context) {
  TrackSource source;
  if (prepared_run != nullptr) {
    source.series = SeriesPaths();
    source.series->phantom = !prepared_run->phantom_hash.empty();
    if (arguments.given("seed-mask")) source.series->seed_mask = arguments.text("seed-mask");
    for (const auto& input : prepared_run->found) {
      source.series->found.push_back({input["option"].get<std::string>(), input["path"].get<std::string>()});
    }
    source.geometry = prepared_run->geometry;
    source.name = fmt::format("the prepared field {}", prepared_run->path.string());
    source.oriented = prepared_run->oriented;
    return source;
  }
  if (arguments.given("sf") || arguments.given("sh") || arguments.given("peaks") || arguments.given("tensor")) {
    CGL_TRY_ASSIGN(const FieldFileRequest request, image_request(arguments, getter));
    CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
    CGL_TRY_ASSIGN(source.image, arrays.image ? take_field_array(arrays.image->geometry, arrays.image->numbers, request,
                                                                 arrays.image_facts)
                                              : read_field_file(request, pool));
    source.geometry = source.image->image.geometry;
    source.name = fmt::format("the tracked image {}", request.path.string());
    source.oriented = source.image->oriented;
    return source;
  }
  if (arrays.head) {
    source.series = SeriesPaths();
    if (arguments.given("mask") && !arrays.mask) source.series->files.mask = arguments.text("mask");
    if (arguments.given("seed-mask") && !arrays.seed_mask) source.series->seed_mask = arguments.text("seed-mask");
    source.head = *arrays.head;
    source.geometry = source.head.geometry;
    source.name = "the series";
    return source;
  }
  if (arrays.mask || arrays.stop_map) {
    return fail_argument(arrays.mask ? "mask" : "stop_map",
                         "{}: an array beside a series that is a file; give both as files or both as arrays",
                         argument_name(arrays.mask ? "mask" : "stop_map"));
  }
  // Making a phantom takes a while, and leaves files.
  if (arguments.texts("data").empty()) CGL_TRY(wanted.registry());
  CGL_TRY_ASSIGN(source.series, series_paths(arguments, out, context));
  CGL_TRY_ASSIGN(source.head, read_series_head(source.series->files));
  for (const std::string& warning : source.head.warnings) log_warning("{}", warning);
  source.geometry = source.head.geometry;
  source.name = series_grid(source.series->files, source.head).name;
  source.oriented = source.head.oriented;
  return source;
}

Result<PreparedSource> prepare_source(TrackSource& source, const ParsedArguments& arguments, const GivenArrays& arrays,
                                      const TrackingOptions& options, const TrackingPlan& plan,
                                      const fs::path& made_mask, const PreparedRun* prepared_run, WantedDevices& wanted,
                                      VerbContext& context) {
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  PreparedSource prepared;
  if (source.image) {
    CGL_TRY_ASSIGN(prepared.data, prepare_image(*source.image, source.grid(), arguments, arrays, *pool));
    source.image.reset();
    return prepared;
  }
  CGL_TRY_ASSIGN(const SeriesFieldRequest request, series_request(arguments, arrays, *source.series, options, plan));
  if (prepared_run != nullptr) {
    CGL_TRY_ASSIGN(prepared.data, read_prepared_field(*prepared_run, request));
    return prepared;
  }
  SeriesFieldFiles files = {.series = source.series->files};
  if (arguments.given("stop-map") && !arrays.stop_map) files.stop_map = arguments.text("stop-map");
  if (arguments.given("response")) files.response = arguments.text("response");
  if (arguments.given("prepare")) {
    CGL_TRY_ASSIGN(const FitKey key, FitKey::create(version_text(), files, request));
    prepared.key = key.json();
  }
  if (files.series.mask.empty() && !arrays.mask && !made_mask.empty())
    CGL_TRY(check_output(made_mask, context.write_options()));
  std::unique_ptr<FitDevice> device;
  const auto find_machine = [&]() -> Result<FitMachine> {
    CGL_TRY_ASSIGN(device, fitting_device(wanted));
    prepared.fitted_on = device ? device->name() : "cpu";
    return FitMachine(*pool, device.get(), context.cancel());
  };
  const auto make = [&]() -> Result<TrackingData> {
    if (arrays.head) {
      CGL_TRY_ASSIGN(const FitMachine machine, find_machine());
      return take_series_field(arrays, files, source.grid(), request, machine, context.progress_options());
    }
    return read_series_field(files, source.head, request, *pool, context.cancel(), find_machine,
                             context.progress_options());
  };
  if (arguments.given("cache-dir") && !arrays.head) {
    CGL_TRY_ASSIGN(prepared.data, kept_or_made(FitCache(arguments.text("cache-dir")), version_text(), files,
                                               source.geometry, request, make));
  } else {
    CGL_TRY_ASSIGN(prepared.data, make());
  }
  if (prepared.data.mask_made && !made_mask.empty()) {
    // A device that is not there leaves no file.
    CGL_TRY(wanted.registry());
    CGL_TRY(write_made_mask(prepared.data, made_mask, *pool, context));
  }
  return prepared;
}

}  // namespace cingulum
