#include "cli/track_options.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "dmri/series/signal_floor.hpp"

#include "cli/response_arguments.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// A choice that has a flag as another name for one of its values.
Result<bool> chosen(const ParsedArguments& arguments, const char* flag, const char* choice, std::string_view value) {
  const bool by_choice = arguments.text(choice) == value;
  if (!arguments.given(choice)) return by_choice || arguments.flag(flag);
  if (arguments.given(flag) && !by_choice) {
    return fail(ErrorKind::invalid_argument, "--{} and --{} {} contradict each other; give one", flag, choice,
                arguments.text(choice));
  }
  return by_choice;
}

}  // namespace

Result<bool> interpolates_amplitudes(const ParsedArguments& arguments) {
  CGL_TRY_ASSIGN(const bool amplitudes, chosen(arguments, "amplitudes", "interpolate", "amplitudes"));
  return amplitudes || arguments.flag("full-sphere");
}

Result<fs::path> tracking_output(const ParsedArguments& arguments) {
  if (arguments.given("out") && arguments.given("output-prefix")) {
    return fail(ErrorKind::invalid_argument, "--out and --output-prefix both name the output; give one");
  }
  if (arguments.given("out")) return fs::path(arguments.text("out"));
  if (arguments.given("output-prefix")) {
    return fs::path(arguments.text("output-prefix") + "." + arguments.text("write-method"));
  }
  return fs::path("tracks.trx");
}

Result<TrackingOptions> tracking_options(const ParsedArguments& arguments, Getter getter, double smallest_edge_mm) {
  TrackingOptions options;
  const auto length = [&](const char* name) { return arguments.length(name).in_mm(smallest_edge_mm); };
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
  options.max_directions = whole("max-directions");
  options.draw_start = arguments.text("start") == "drawn";
  options.angular_weight = arguments.real("angular-weight");
  options.one_sided = arguments.flag("one-sided");
  options.second_half =
      arguments.text("second-half") == "initial-direction" ? SecondHalf::initial_direction : SecondHalf::first_step;
  options.refine = !arguments.flag("no-refine");
  options.rk4 = arguments.flag("rk4");
  options.boot_attempts = whole("boot-attempts");
  options.boot_retry =
      arguments.text("boot-retry") == "no-peak-or-angle" ? BootRetry::no_peak_or_angle : BootRetry::no_peak;
  options.boot_seed = arguments.flag("boot-seed");
  options.ptt_probe_length_mm = length("ptt-probe-length");
  options.ptt_probe_radius_mm = length("ptt-probe-radius");
  options.ptt_probe_quality = whole("ptt-probe-quality");
  options.ptt_probe_count = whole("ptt-probe-count");
  options.ptt_exponent = arguments.real("ptt-exponent");
  const bool radius_by_angle = arguments.given("max-angle") && !arguments.given("ptt-min-radius");
  options.ptt_min_radius_mm = radius_by_angle ? 0 : length("ptt-min-radius");
  CGL_TRY_ASSIGN(options.ptt_weak_links, chosen(arguments, "ptt-weak-links", "ptt-weak", "count"));
  options.ptt_tries = whole("ptt-tries");
  options.ptt_bound_interval = whole("ptt-bound-interval");
  options.ptt_substeps = whole("ptt-substeps");
  options.random_key = arguments.key("seed");
  CGL_TRY(parse_signal_floor(arguments.text("min-signal")));  // a field from a file does not ask for it
  if (options.rk4 && getter != Getter::tensor) {
    return fail(ErrorKind::invalid_argument, "--rk4: accepted with --dg tensor, not {}", getter_name(getter));
  }
  const bool by_amplitudes = getter != Getter::boot && getter != Getter::tensor && !arguments.given("peaks");
  if (options.draw_start && !by_amplitudes) {
    return fail(ErrorKind::invalid_argument,
                "--start drawn: accepted with prob, ptt, det and closest on amplitudes or harmonics; there are none "
                "with {}",
                arguments.given("peaks") ? "--peaks" : fmt::format("--dg {}", getter_name(getter)));
  }
  if (arguments.given("stop-threshold") && arguments.given("fa-threshold")) {
    return fail(ErrorKind::invalid_argument, "--stop-threshold and --fa-threshold are the same; give one");
  }
  return options;
}

Status limit_points(const ParsedArguments& arguments, SelectionRules& rules) {
  if (arguments.has("min-points")) rules.min_points = static_cast<std::uint64_t>(arguments.integer("min-points"));
  if (arguments.has("max-points")) rules.max_points = static_cast<std::uint64_t>(arguments.integer("max-points"));
  if (rules.min_points > rules.max_points) {
    return fail(ErrorKind::invalid_argument, "--min-points {} is more than --max-points {}: nothing would be kept",
                rules.min_points, rules.max_points);
  }
  return {};
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

Result<FieldRequest> field_request(const ParsedArguments& arguments, FieldModel model, const TrackingOptions& options,
                                   const TrackingPlan& plan) {
  FieldRequest request;
  request.model = model;
  request.bootstrap = options.getter == Getter::boot;
  request.degree = arguments.given("sh-order") ? static_cast<int>(arguments.integer("sh-order"))
                                               : (model == FieldModel::csd ? 8 : 4);
  if (request.degree % 2 != 0) {
    return fail(ErrorKind::invalid_argument, "--sh-order {}: accepted is an even number from 2 to 12", request.degree);
  }
  request.smoothing = arguments.real("sm-lambda");
  CGL_TRY_ASSIGN(request.min_signal, parse_signal_floor(arguments.text("min-signal")));
  if (arguments.given("shell")) request.shell = arguments.real("shell");
  CGL_TRY_ASSIGN(request.response_box, response_box(arguments));
  CGL_TRY_ASSIGN(request.amplitudes, interpolates_amplitudes(arguments));
  request.stop_threshold = options.stop_threshold;
  request.reach_voxels = plan.reach_voxels;
  return request;
}

Result<Sphere> tracking_sphere(const ParsedArguments& arguments, const GivenArrays& arrays) {
  if (arrays.sphere) return *arrays.sphere;
  return sphere_by_name_or_file(arguments.text("sphere"), arguments.flag("full-sphere"));
}

StopRule stop_rule(const ParsedArguments& arguments, const TrackingData& data) {
  const std::string& name = arguments.text("stop-rule");
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

double stop_threshold(const ParsedArguments& arguments) {
  return arguments.given("stop-threshold") ? arguments.real("stop-threshold") : arguments.real("fa-threshold");
}

}  // namespace cingulum
