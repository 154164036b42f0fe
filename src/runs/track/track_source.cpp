#include "runs/track/track_source.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/version.hpp"
#include "formats/nifti.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_options.hpp"
#include "tract/field/amplitude_cutoff.hpp"
#include "tract/field/fit_cache.hpp"
#include "tract/field/fit_key.hpp"
#include "tract/field/series_field.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

Status write_made_mask(const TrackingData& data, const fs::path& path, ThreadPool& pool, RunMachine& machine) {
  NiftiWriteOptions options;
  options.file = machine.write_options();
  options.type = element_type_of<std::uint8_t>();
  options.pool = &pool;
  const std::vector<float> values(data.mask.begin(), data.mask.end());
  CGL_TRY(write_image(path, data.geometry, 1, values, options));
  const auto voxels = static_cast<std::uint64_t>(std::count(data.mask.begin(), data.mask.end(), std::uint8_t{1}));
  log_info("no {} given: {} voxels by median Otsu, written to {}", argument_name("mask"), format_count(voxels),
           path.string());
  return {};
}

Result<FieldFileRequest> image_request(const TrackRequest& request, Getter getter) {
  FieldFileRequest file;
  std::string_view option;
  struct Kind {
    std::string_view name;
    const Parameter<std::string>& parameter;
    FieldFileKind kind;
  };
  for (const Kind& one : {Kind{"sf", request.sf, FieldFileKind::amplitudes},
                          {"sh", request.sh, FieldFileKind::harmonics},
                          {"peaks", request.peaks, FieldFileKind::peaks},
                          {"tensor", request.tensor, FieldFileKind::tensor}}) {
    if (!one.parameter.given()) continue;
    if (!option.empty()) {
      return fail(ErrorKind::invalid_argument, "{} and {} both name what is tracked; give one", argument_name(option),
                  argument_name(one.name));
    }
    option = one.name;
    file.kind = one.kind;
    file.path = one.parameter.value();
  }
  if (!request.data.value().empty()) {
    return fail(ErrorKind::invalid_argument, "a series ({}) and {} both name what is tracked; give one",
                request.data.value().front(), argument_name(option));
  }
  if (getter == Getter::boot) {
    return fail(ErrorKind::invalid_argument,
                "{} boot resamples the signals of a series; with {} use prob, ptt, det, closest or tensor",
                argument_name("dg"), argument_name(option));
  }
  if (request.sh_basis.given()) file.basis = request.sh_basis.value();
  if (request.frame.given()) {
    file.frame = request.frame.value();
  } else if (request.frame.has()) {
    // Older rules asked nobody: values_under_rules().
    file.frame_of_silent_peaks = request.frame.value();
  }
  if (request.all_peaks.given() && !request.peaks.given()) {
    return fail(ErrorKind::invalid_argument, "{}: accepted with {}", argument_name("all_peaks"),
                argument_name("peaks"));
  }
  if (!request.all_peaks.value()) {
    file.peaks.relative_threshold = request.relative_peak_threshold.value();
    file.peaks.absolute_threshold = request.pmf_threshold_absolute.value();
    // Whoever made the peaks has kept them apart: 45 degrees, which noise asks for, would take true ones.
    if (request.min_separation_angle.given()) {
      file.peaks.min_separation_deg = request.min_separation_angle.value();
    }
  }
  if (request.tensor_order.given()) file.tensor_order = request.tensor_order.value();
  CGL_TRY_ASSIGN(file.amplitudes, interpolates_amplitudes(request));
  return file;
}

// What stops where no map was given, named and stated.
Result<std::vector<float>> amplitude_stop_map(const FieldFile& file, std::span<const std::uint8_t> mask,
                                              const Sphere& sphere, const TrackRequest& request, ThreadPool& pool) {
  CGL_TRY_ASSIGN(std::vector<float> greatest, greatest_amplitudes(file, sphere, pool));
  const double threshold = stop_threshold(request);
  std::string reached;
  if (cutoff_is_threshold(request)) {
    CGL_TRY_ASSIGN(const CutoffReach reach, check_cutoff(file, greatest, mask, request.amplitude_cutoff.value()));
    reached = fmt::format(" ({} {}, which {} of {} voxels exceed)", argument_name("amplitude_cutoff"),
                          request.amplitude_cutoff.value(), format_count(reach.above), format_count(reach.voxels));
  }
  log_info("no {} given: tracked where the greatest amplitude of a voxel is above {}{}; {} is {}",
           argument_name("stop_map"), threshold, reached, argument_name("pmf_threshold_absolute"),
           request.pmf_threshold_absolute.value());
  return greatest;
}

Result<TrackingData> prepare_image(const FieldFile& file, const NamedGrid& grid, const TrackRequest& request,
                                   ThreadPool& pool) {
  const GivenArrays& arrays = request.arrays;
  const std::string name = file.request.path.string();
  const bool whole_sphere = request.full_sphere.value() || file.full_basis;
  CGL_TRY_ASSIGN(Sphere sphere, arrays.sphere ? Result<Sphere>(*arrays.sphere)
                                              : sphere_by_name_or_file(request.sphere.value(), whole_sphere));
  if (file.full_basis) {
    log_info("{} has harmonics of all degrees up to {} ({}): sampled once on the {} directions of the whole sphere",
             name, file.degree, file.basis, sphere.size());
  }
  std::vector<std::uint8_t> mask;
  if (arrays.mask) {
    mask = *arrays.mask;
  } else if (request.mask.given()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(request.mask.value(), "the mask", grid));
  }
  std::vector<float> stop_map;
  if (arrays.stop_map) {
    stop_map = *arrays.stop_map;
  } else if (request.stop_map.given()) {
    CGL_TRY_ASSIGN(stop_map, read_stop_map(request.stop_map.value(), grid));
  } else if (stops_by_amplitude(request)) {
    CGL_TRY_ASSIGN(stop_map, amplitude_stop_map(file, mask, sphere, request, pool));
  } else {
    log_info("no {} given: {}", argument_name("stop_map"),
             file.request.kind == FieldFileKind::tensor ? "FA of the tensors stops"
                                                        : "1 where the file has numbers, 0 elsewhere, stops");
  }
  return make_file_tracking_data(file, std::move(mask), std::move(stop_map), std::move(sphere), pool);
}

Result<SeriesFieldRequest> series_request(const TrackRequest& request, const SeriesPaths& paths,
                                          const TrackingOptions& options, const TrackingPlan& plan) {
  CGL_TRY_ASSIGN(const FieldModel model, choose_model(request, options.getter));
  SeriesFieldRequest wanted;
  CGL_TRY_ASSIGN(wanted.sphere, tracking_sphere(request));
  CGL_TRY_ASSIGN(wanted.field, field_request(request, model, options, plan));
  wanted.series.b0_threshold = request.b0_threshold.value();
  CGL_TRY_ASSIGN(wanted.series.frame, parse_wanted_frame(request.bvec_frame.given() ? request.bvec_frame.value() : ""));
  wanted.series.check_frame = !paths.phantom;
  return wanted;
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

Result<TrackSource> open_source(const TrackRequest& request, Getter getter, const fs::path& out,
                                const PreparedRun* prepared_run, WantedDevices& wanted, RunMachine& machine) {
  const GivenArrays& arrays = request.arrays;
  TrackSource source;
  if (prepared_run != nullptr) {
    source.series = SeriesPaths();
    source.series->phantom = !prepared_run->phantom_hash.empty();
    if (request.seed_mask.given()) source.series->seed_mask = request.seed_mask.value();
    source.series->found = prepared_run->found;
    source.geometry = prepared_run->geometry;
    source.name = fmt::format("the prepared field {}", prepared_run->path.string());
    source.oriented = prepared_run->oriented;
    return source;
  }
  if (request.sf.given() || request.sh.given() || request.peaks.given() || request.tensor.given()) {
    CGL_TRY_ASSIGN(const FieldFileRequest file, image_request(request, getter));
    CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
    CGL_TRY_ASSIGN(source.image, arrays.image ? take_field_array(arrays.image->geometry, arrays.image->numbers, file,
                                                                 arrays.image_facts)
                                              : read_field_file(file, pool));
    source.geometry = source.image->image.geometry;
    source.name = fmt::format("the tracked image {}", file.path.string());
    source.oriented = source.image->oriented;
    return source;
  }
  if (arrays.head) {
    source.series = SeriesPaths();
    if (request.mask.given() && !arrays.mask) source.series->files.mask = request.mask.value();
    if (request.seed_mask.given() && !arrays.seed_mask) source.series->seed_mask = request.seed_mask.value();
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
  if (request.data.value().empty()) CGL_TRY(wanted.registry());
  CGL_TRY_ASSIGN(source.series, series_paths(request, out, machine));
  CGL_TRY_ASSIGN(source.head, read_series_head(source.series->files));
  for (const std::string& warning : source.head.warnings) log_warning("{}", warning);
  source.geometry = source.head.geometry;
  source.name = series_grid(source.series->files, source.head).name;
  source.oriented = source.head.oriented;
  return source;
}

Result<PreparedSource> prepare_source(TrackSource& source, const TrackRequest& request, const TrackingOptions& options,
                                      const TrackingPlan& plan, const fs::path& made_mask,
                                      const PreparedRun* prepared_run, WantedDevices& wanted, RunMachine& machine) {
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  const GivenArrays& arrays = request.arrays;
  PreparedSource prepared;
  if (source.image) {
    CGL_TRY_ASSIGN(prepared.data, prepare_image(*source.image, source.grid(), request, *pool));
    source.image.reset();
    return prepared;
  }
  CGL_TRY_ASSIGN(const SeriesFieldRequest field, series_request(request, *source.series, options, plan));
  if (prepared_run != nullptr) {
    CGL_TRY_ASSIGN(prepared.data, read_prepared_field(*prepared_run, field));
    return prepared;
  }
  SeriesFieldFiles files = {.series = source.series->files};
  if (request.stop_map.given() && !arrays.stop_map) files.stop_map = request.stop_map.value();
  if (request.response.given()) files.response = request.response.value();
  if (request.prepare.given()) {
    CGL_TRY_ASSIGN(const FitKey key, FitKey::create(version_text(), files, field));
    prepared.key = key.json();
  }
  if (files.series.mask.empty() && !arrays.mask && !made_mask.empty())
    CGL_TRY(check_output(made_mask, machine.write_options()));
  std::unique_ptr<FitDevice> device;
  const auto find_machine = [&]() -> Result<FitMachine> {
    CGL_TRY_ASSIGN(device, fitting_device(wanted));
    prepared.fitted_on = device ? device->name() : "cpu";
    return FitMachine(*pool, device.get(), machine.cancel());
  };
  const auto make = [&]() -> Result<TrackingData> {
    if (arrays.head) {
      CGL_TRY_ASSIGN(const FitMachine fitting, find_machine());
      return take_series_field(arrays, files, source.grid(), field, fitting, machine.progress_options());
    }
    return read_series_field(files, source.head, field, *pool, machine.cancel(), find_machine,
                             machine.progress_options());
  };
  if (request.cache_dir.given() && !arrays.head) {
    CGL_TRY_ASSIGN(prepared.data, kept_or_made(FitCache(request.cache_dir.value()), version_text(), files,
                                               source.geometry, field, make));
  } else {
    CGL_TRY_ASSIGN(prepared.data, make());
  }
  if (prepared.data.mask_made && !made_mask.empty()) {
    // A device that is not there leaves no file.
    CGL_TRY(wanted.registry());
    CGL_TRY(write_made_mask(prepared.data, made_mask, *pool, machine));
  }
  return prepared;
}

}  // namespace cingulum
