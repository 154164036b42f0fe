#include "runs/track/track_result.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "base/json_fields.hpp"
#include "base/quantity.hpp"
#include "formats/sidecar.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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
  return field.stored_bytes().size() + field.record_of_voxel.size() * sizeof(std::uint32_t);
}

}  // namespace

Json field_json(const Field& field) {
  return {{"kind", field_kind_name(field.kind)},
          {"channels", field.channels},
          {"precision", field.is_float16() ? "half" : "float"},
          {"bytes", field_bytes(field)},
          {"replaced", field.replaced},
          {"sphere", field.sphere.name},
          {"directions", field.sphere.size()},
          {"half_sphere", field.sphere.is_hemisphere}};
}

Json plan_json(const TrackingPlan& plan, const TrackingOptions& options) {
  return {{"getter", getter_name(options.getter)},
          {"size", {plan.size.x, plan.size.y, plan.size.z}},
          {"step_mm", plan.step_mm},
          {"step_in_voxels", {plan.step_in_voxels[0], plan.step_in_voxels[1], plan.step_in_voxels[2]}},
          {"cos_max_angle", plan.cos_max_angle},
          {"stop_threshold", plan.stop_threshold},
          {"stop_rule", plan.stop_nearest != 0 ? "nearest" : "trilinear"},
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
          {"second_half", plan.turns_back != 0 ? "first-step" : "initial-direction"},
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

Json end_reason_codes_json() {
  Json codes = Json::object();
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    codes[std::to_string(i)] = end_reason_name(static_cast<EndReason>(i));
  }
  return codes;
}

Json result_json(const TrackingStatistics& statistics, bool select) {
  JsonWriter write;
  visit_counts(write, statistics);
  write("points_written", statistics.points_written);
  write("mean_length_mm", statistics.lengths.mean_mm());
  write("median_length_mm", statistics.lengths.quantile_mm(0.5));
  write("smallest_length_mm", statistics.lengths.smallest_mm());
  write("largest_length_mm", statistics.lengths.largest_mm());
  JsonWriter reasons;
  visit_end_reasons(reasons, statistics);
  write("end_reasons", reasons.take());
  write("partial", statistics.interrupted);
  if (select) {
    write("select_reached", statistics.select_reached);
  } else {
    visit_all_seeds(write, statistics);
  }
  return write.take();
}

Json run_json(const TrackingStatistics& statistics, const TrackRequest& request, RunMachine& machine,
              const TrackTiming& timing, double seconds) {
  Json run = run_facts(machine.threads(), seconds);
  run["device"] = timing.device;
  if (!timing.fitted_on.empty()) run["fitted_on"] = timing.fitted_on;
  run["seeds_of_devices"] = statistics.seeds_of_trackers;
  run["chunk_size"] = request.chunk_size.value();
  run["prepare_seconds"] = timing.prepare_seconds;
  run["tracking_seconds"] = statistics.tracking_seconds;
  run["waiting_seconds"] = statistics.waiting_seconds;
  run["finishing_seconds"] = statistics.finishing_seconds;
  run["writing_seconds"] = statistics.writing_seconds;
  run["tracking_and_writing_seconds"] = timing.track_seconds;
  run["seeds_tracked"] = statistics.seeds_tracked;
  run["steps"] = statistics.steps;
  std::error_code ignored;
  run["folder"] = fs::current_path(ignored).string();
  return run;
}

}  // namespace cingulum
