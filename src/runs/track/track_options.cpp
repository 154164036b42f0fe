#include "runs/track/track_options.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "dmri/series/signal_floor.hpp"

#include "runs/response_parameters.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// A choice that has a flag as another name for one of its values.
Result<bool> chosen(const Parameter<bool>& flag, std::string_view flag_name, const Parameter<std::string>& choice,
                    std::string_view choice_name, std::string_view value) {
  const bool by_choice = choice.value() == value;
  if (!choice.given()) return by_choice || flag.value();
  if (flag.given() && !by_choice) {
    return fail(ErrorKind::invalid_argument, "{} and {} {} contradict each other; give one", argument_name(flag_name),
                argument_name(choice_name), choice.value());
  }
  return by_choice;
}

}  // namespace

Result<bool> interpolates_amplitudes(const TrackRequest& request) {
  CGL_TRY_ASSIGN(const bool amplitudes,
                 chosen(request.amplitudes, "amplitudes", request.interpolate, "interpolate", "amplitudes"));
  return amplitudes || request.full_sphere.value();
}

Result<fs::path> tracking_output(const TrackRequest& request) {
  if (request.out.given() && request.output_prefix.given()) {
    return fail(ErrorKind::invalid_argument, "{} and {} both name the output; give one", argument_name("out"),
                argument_name("output_prefix"));
  }
  if (request.out.given()) return fs::path(request.out.value());
  if (request.output_prefix.given()) {
    return fs::path(request.output_prefix.value() + "." + request.write_method.value());
  }
  return fs::path("tracks.trx");
}

Result<TrackingOptions> tracking_options(const TrackRequest& request, Getter getter, double smallest_edge_mm) {
  TrackingOptions options;
  const auto in_mm = [&](const Parameter<Length>& length) { return length.value().in_mm(smallest_edge_mm); };
  const auto whole = [](const Parameter<std::int64_t>& number) { return static_cast<std::uint32_t>(number.value()); };
  options.getter = getter;
  options.step_mm = in_mm(request.step_size);
  options.max_angle_deg = request.max_angle.value();
  options.min_length_mm = in_mm(request.min_length);
  options.max_length_mm = in_mm(request.max_length);
  options.stop_threshold = stop_threshold(request);
  options.relative_threshold = request.pmf_threshold.value();
  options.absolute_threshold = request.pmf_threshold_absolute.value();
  options.relative_peak_threshold = request.relative_peak_threshold.value();
  options.min_separation_deg = request.min_separation_angle.value();
  options.max_directions = whole(request.max_directions);
  options.draw_start = request.start.value() == "drawn";
  options.angular_weight = request.angular_weight.value();
  options.one_sided = request.one_sided.value();
  options.second_half =
      request.second_half.value() == "initial-direction" ? SecondHalf::initial_direction : SecondHalf::first_step;
  options.refine = !request.no_refine.value();
  options.rk4 = request.rk4.value();
  options.boot_attempts = whole(request.boot_attempts);
  options.boot_retry =
      request.boot_retry.value() == "no-peak-or-angle" ? BootRetry::no_peak_or_angle : BootRetry::no_peak;
  options.boot_seed = request.boot_seed.value();
  options.ptt_probe_length_mm = in_mm(request.ptt_probe_length);
  options.ptt_probe_radius_mm = in_mm(request.ptt_probe_radius);
  options.ptt_probe_quality = whole(request.ptt_probe_quality);
  options.ptt_probe_count = whole(request.ptt_probe_count);
  options.ptt_exponent = request.ptt_exponent.value();
  const bool radius_by_angle = request.max_angle.given() && !request.ptt_min_radius.given();
  options.ptt_min_radius_mm = radius_by_angle ? 0 : in_mm(request.ptt_min_radius);
  CGL_TRY_ASSIGN(options.ptt_weak_links,
                 chosen(request.ptt_weak_links, "ptt_weak_links", request.ptt_weak, "ptt_weak", "count"));
  options.ptt_tries = whole(request.ptt_tries);
  options.ptt_bound_interval = whole(request.ptt_bound_interval);
  options.ptt_substeps = whole(request.ptt_substeps);
  options.random_key = request.seed.value();
  CGL_TRY(parse_signal_floor(request.min_signal.value()));  // a field from a file does not ask for it
  if (options.rk4 && getter != Getter::tensor) {
    return fail(ErrorKind::invalid_argument, "{}: accepted with {} tensor, not {}", argument_name("rk4"),
                argument_name("dg"), getter_name(getter));
  }
  const bool by_amplitudes = getter != Getter::boot && getter != Getter::tensor && !request.peaks.given();
  if (options.draw_start && !by_amplitudes) {
    return fail(ErrorKind::invalid_argument,
                "{} drawn: accepted with prob, ptt, det and closest on amplitudes or harmonics; there are none with {}",
                argument_name("start"),
                request.peaks.given() ? fmt::format("{}", argument_name("peaks"))
                                      : fmt::format("{} {}", argument_name("dg"), getter_name(getter)));
  }
  if (request.stop_threshold.given() && request.fa_threshold.given()) {
    return fail(ErrorKind::invalid_argument, "{} and {} are the same; give one", argument_name("stop_threshold"),
                argument_name("fa_threshold"));
  }
  return options;
}

Status limit_points(const TrackRequest& request, SelectionRules& rules) {
  if (request.min_points.has()) rules.min_points = static_cast<std::uint64_t>(request.min_points.value());
  if (request.max_points.has()) rules.max_points = static_cast<std::uint64_t>(request.max_points.value());
  if (rules.min_points > rules.max_points) {
    return fail(ErrorKind::invalid_argument, "{} {} is more than {} {}: nothing would be kept",
                argument_name("min_points"), rules.min_points, argument_name("max_points"), rules.max_points);
  }
  return {};
}

Result<FieldModel> choose_model(const TrackRequest& request, Getter getter) {
  const std::string& name = request.model.value();
  FieldModel model = FieldModel::csd;
  if (name == "opdt") model = FieldModel::opdt;
  if (name == "csa") model = FieldModel::csa;
  if (name == "dti") model = FieldModel::dti;
  if (name == "default") {
    model = getter == Getter::boot ? FieldModel::opdt : getter == Getter::tensor ? FieldModel::dti : FieldModel::csd;
  }
  const bool q_ball = model == FieldModel::opdt || model == FieldModel::csa;
  if (getter == Getter::boot && !q_ball) {
    return fail(ErrorKind::invalid_argument, "{} {}: accepted with {} boot is opdt or csa", argument_name("model"),
                name, argument_name("dg"));
  }
  if ((getter == Getter::tensor) != (model == FieldModel::dti)) {
    return fail(ErrorKind::invalid_argument, "{} {} with {} {}: dti and tensor go together", argument_name("model"),
                name, argument_name("dg"), getter_name(getter));
  }
  return model;
}

Result<FieldRequest> field_request(const TrackRequest& request, FieldModel model, const TrackingOptions& options,
                                   const TrackingPlan& plan) {
  FieldRequest wanted;
  wanted.model = model;
  wanted.bootstrap = options.getter == Getter::boot;
  wanted.degree =
      request.sh_order.given() ? static_cast<int>(request.sh_order.value()) : (model == FieldModel::csd ? 8 : 4);
  if (wanted.degree % 2 != 0) {
    return fail(ErrorKind::invalid_argument, "{} {}: accepted is an even number from 2 to 12",
                argument_name("sh_order"), wanted.degree);
  }
  wanted.smoothing = request.sm_lambda.value();
  CGL_TRY_ASSIGN(wanted.min_signal, parse_signal_floor(request.min_signal.value()));
  if (request.shell.given()) wanted.shell = request.shell.value();
  CGL_TRY_ASSIGN(wanted.response_box, response_box(request));
  CGL_TRY_ASSIGN(wanted.amplitudes, interpolates_amplitudes(request));
  wanted.stop_threshold = options.stop_threshold;
  wanted.reach_voxels = plan.reach_voxels;
  return wanted;
}

Result<Sphere> tracking_sphere(const TrackRequest& request) {
  if (request.arrays.sphere) return *request.arrays.sphere;
  return sphere_by_name_or_file(request.sphere.value(), request.full_sphere.value());
}

StopRule stop_rule(const TrackRequest& request, const TrackingData& data) {
  const std::string& name = request.stop_rule.value();
  if (name != "auto") return name == "nearest" ? StopRule::nearest : StopRule::trilinear;
  // Interpolated, a mask passes up to a voxel beyond its border. Outside of the brain mask the map was made zero.
  std::vector<float> values;
  for (std::size_t i = 0; i < data.stop_map.size(); ++i) {
    if (data.mask[i] == 0 || std::find(values.begin(), values.end(), data.stop_map[i]) != values.end()) continue;
    if (values.size() == 2) return StopRule::trilinear;
    values.push_back(data.stop_map[i]);
  }
  return StopRule::nearest;
}

double stop_threshold(const TrackRequest& request) {
  return request.stop_threshold.given() ? request.stop_threshold.value() : request.fa_threshold.value();
}

}  // namespace cingulum
