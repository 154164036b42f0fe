#include "tract/field/series_field.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/part_clock.hpp"
#include "base/quantity.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

Json frame_facts(const SettledFrame& frame) {
  Json facts = Json::object();
  if (frame.check) facts["gradient_check"] = gradient_verdict_name(frame.check->verdict);
  facts["bvec_frame"] = gradient_frame_name(frame.frame);
  return facts;
}

// What is known before the model is fitted, in the log and for the result.
std::vector<std::string> say_of_series(const SettledSeries& series) {
  std::vector<std::string> warnings;
  if (const std::size_t replaced = series.dwi.signals.replaced; replaced > 0) {
    warnings.push_back(fmt::format("{} values of the series are not finite and count as 0", format_count(replaced)));
  }
  if (!series.frame.warning.empty()) warnings.push_back(series.frame.warning);
  for (const std::string& warning : warnings) log_warning("{}", warning);
  if (!series.frame.not_checked.empty()) log_debug("no gradient check: {}", series.frame.not_checked);
  if (series.frame.check && series.frame.check->verdict == GradientVerdict::undecided) {
    log_debug("{}", series.frame.check->message);
  }
  if (series.frame.check && series.frame.check->verdict == GradientVerdict::another_is_better &&
      series.frame.warning.empty()) {
    log_info("{}", series.frame.check->message);
  }
  return warnings;
}

}  // namespace

Result<TrackingData> make_series_field(SettledSeries series, std::optional<std::vector<float>> stop_map,
                                       const SeriesFieldRequest& request, const FitMachine& machine,
                                       const ProgressOptions& progress_options) {
  PartClock clock("preparing");
  const std::vector<std::string> warnings = say_of_series(series);
  Json facts = frame_facts(series.frame);
  TrackingData data;
  data.geometry = series.dwi.signals.geometry;
  data.mask = std::move(series.mask.mask);
  data.mask_made = series.mask_made;
  std::optional<TensorMaps> tensors;
  if (!stop_map || request.field.model == FieldModel::dti) {
    Progress progress("fitting tensors", series.dwi.signals.voxels.size(), "voxels", progress_options);
    CGL_TRY_ASSIGN(tensors, fit_tensor_maps(series.dwi, request.field.min_signal, machine, &progress));
    progress.finish();
    clock.ended("tensors");
  }
  if (stop_map && stop_map->size() != data.mask.size()) {
    return fail(ErrorKind::invalid_argument, "the stopping map has {} voxels, the series {}", stop_map->size(),
                data.mask.size());
  }
  data.stop_map = stop_map ? std::move(*stop_map) : tensors->fa;
  stop_outside(data.stop_map, data.mask);
  CGL_TRY_ASSIGN(data.prepared, make_dwi_field(std::move(series.dwi), data.stop_map, tensors ? &*tensors : nullptr,
                                               request.field, request.sphere, machine, progress_options));
  clock.ended("model and field");
  for (auto& [key, value] : facts.items()) data.prepared.facts[key] = std::move(value);
  data.prepared.warnings.insert(data.prepared.warnings.begin(), warnings.begin(), warnings.end());
  return data;
}

Result<TrackingData> read_series_field(const SeriesFieldFiles& files, const SeriesHead& head,
                                       const SeriesFieldRequest& request, const FitMachine& machine,
                                       const ProgressOptions& progress) {
  const auto found = [&]() -> Result<FitMachine> { return machine; };
  return read_series_field(files, head, request, machine.pool, machine.cancel, found, progress);
}

Result<TrackingData> read_series_field(const SeriesFieldFiles& files, const SeriesHead& head,
                                       const SeriesFieldRequest& request, ThreadPool& pool, const CancelToken& cancel,
                                       const FindFitMachine& find, const ProgressOptions& progress) {
  SeriesFieldRequest whole = request;
  if (!files.response.empty() && request.field.model == FieldModel::csd) {
    CGL_TRY_ASSIGN(whole.field.response, read_response(files.response));
  }
  std::optional<std::vector<float>> stop_map;
  if (!files.stop_map.empty()) {
    CGL_TRY_ASSIGN(stop_map, read_stop_map(files.stop_map, series_grid(files.series, head)));
  }
  std::optional<FitMachine> machine;
  const auto find_once = [&]() -> Result<FitMachine> {
    CGL_TRY_ASSIGN(const FitMachine found, find());
    machine.emplace(found);
    return found;
  };
  CGL_TRY_ASSIGN(SettledSeries series, read_series(files.series, head, request.series, pool, cancel, find_once));
  return make_series_field(std::move(series), std::move(stop_map), whole, *machine, progress);
}

}  // namespace cingulum
