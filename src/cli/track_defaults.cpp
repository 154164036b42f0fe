#include "cli/track_defaults.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "cli/argument_value.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

constexpr std::array<Getter, 6> getters = {Getter::boot, Getter::prob,    Getter::ptt,
                                           Getter::det,  Getter::closest, Getter::tensor};

// One value per getter, in the order of `getters`.
struct GetterDefault {
  std::string_view option;
  std::array<std::string_view, getters.size()> values;
};

// By tools/track-study (docs/design/tractography.md, "The study"). The absolute threshold is that of CSD, whose
// amplitudes have the unit of a fibre; `of_other_models` has that of everything else.
// clang-format off
constexpr std::array<GetterDefault, 7> getter_defaults = {{
    //                          boot    prob    ptt     det     closest tensor
    {"step-size",              {"0.5",  "0.5",  "0.5",  "0.5",  "0.5",  "0.5"}},
    {"max-angle",              {"30",   "30",   "60",   "20",   "45",   "45"}},
    {"fa-threshold",           {"0.2",  "0.2",  "0.2",  "0.2",  "0.2",  "0.2"}},
    {"max-directions",         {"32",   "1",    "32",   "1",    "32",   "32"}},
    {"pmf-threshold",          {"0.1",  "0.2",  "0.4",  "0.1",  "0.1",  "0.1"}},
    {"pmf-threshold-absolute", {"0",    "0",    "0.2",  "0",    "0",    "0"}},
    {"interpolate", {"harmonics", "harmonics", "amplitudes", "harmonics", "harmonics", "harmonics"}},
}};
constexpr std::array<GetterDefault, 1> of_other_models = {{
    {"pmf-threshold-absolute", {"0",    "0",    "0",    "0",    "0",    "0"}},
}};
// clang-format on

// What another tool does by default, in our options; of getters that it does not have nothing is listed. Sources: the
// script of cuslines 2.0 (its ptt: nine amplitudes along two edges, curvatures up to 8 sin(angle / 2) per edge), the
// functions of dipy.tracking.tracker 1.12, tckgen 3.0 (prob is iFOD1, det SD_STREAM, tensor Tensor_Det), Trekker 0.9.
struct PresetRow {
  std::string_view preset;
  Getter getter;
  std::vector<OptionValue> options;
};

const std::vector<PresetRow>& preset_rows() {
  static const std::vector<PresetRow> rows = {
      {"cuslines",
       Getter::boot,
       {{"sphere", "repulsion724"},
        {"sh-order", "4"},
        {"step-size", "0.5"},
        {"max-angle", "60"},
        {"fa-threshold", "0.1"},
        {"relative-peak-threshold", "0.25"},
        {"min-separation-angle", "45"},
        {"min-signal", "1"},
        {"boot-attempts", "5"},
        {"boot-retry", "no-peak-or-angle"},
        {"boot-seed", ""},
        {"max-directions", "32"}}},
      {"cuslines",
       Getter::prob,
       {{"sphere", "repulsion724"},
        {"sh-order", "4"},
        {"interpolate", "amplitudes"},
        {"step-size", "0.5"},
        {"max-angle", "60"},
        {"fa-threshold", "0.1"},
        {"relative-peak-threshold", "0.25"},
        {"min-separation-angle", "45"},
        {"pmf-threshold", "0.05"},
        {"pmf-threshold-absolute", "0"},
        {"max-directions", "32"}}},
      {"cuslines",
       Getter::ptt,
       {{"sphere", "repulsion724"},
        {"sh-order", "4"},
        {"interpolate", "amplitudes"},
        {"step-size", "0.5"},
        {"max-angle", "60"},
        {"fa-threshold", "0.1"},
        {"relative-peak-threshold", "0.25"},
        {"min-separation-angle", "45"},
        {"pmf-threshold", "0.05"},
        {"pmf-threshold-absolute", "0"},
        {"ptt-substeps", "20"},
        {"ptt-probe-length", "2vox"},
        {"ptt-probe-quality", "9"},
        {"ptt-probe-count", "1"},
        {"ptt-probe-radius", "0"},
        {"ptt-min-radius", "0.25vox"},
        {"ptt-exponent", "1"},
        {"ptt-tries", "1024"},
        {"ptt-bound-interval", "1"},
        {"ptt-weak", "count"},
        {"max-directions", "32"}}},
      {"dipy",
       Getter::boot,
       {{"sphere", "repulsion724"},
        {"step-size", "0.5mm"},
        {"max-angle", "60"},
        {"relative-peak-threshold", "0.5"},
        {"min-separation-angle", "25"},
        {"boot-attempts", "5"},
        {"boot-retry", "no-peak"},
        {"max-directions", "32"}}},
      {"dipy",
       Getter::prob,
       {{"sphere", "repulsion724"},
        {"step-size", "0.2mm"},
        {"max-angle", "20"},
        {"relative-peak-threshold", "0.5"},
        {"min-separation-angle", "25"},
        {"pmf-threshold", "0.1"},
        {"pmf-threshold-absolute", "0"},
        {"max-directions", "32"}}},
      {"dipy",
       Getter::ptt,
       {{"sphere", "repulsion724"},
        {"step-size", "0.5mm"},
        {"max-angle", "10"},
        {"relative-peak-threshold", "0.5"},
        {"min-separation-angle", "25"},
        {"pmf-threshold", "0"},
        {"pmf-threshold-absolute", "0.1"},
        {"ptt-substeps", "1"},
        {"ptt-probe-length", "1.5mm"},
        {"ptt-probe-quality", "7"},
        {"ptt-probe-count", "1"},
        {"ptt-probe-radius", "0"},
        {"ptt-min-radius", "0"},
        {"ptt-exponent", "1"},
        {"ptt-tries", "100"},
        {"ptt-bound-interval", "1"},
        {"ptt-weak", "end"},
        {"max-directions", "32"}}},
      {"dipy",
       Getter::det,
       {{"sphere", "repulsion724"},
        {"no-refine", ""},
        {"step-size", "0.2mm"},
        {"max-angle", "20"},
        {"relative-peak-threshold", "0.5"},
        {"min-separation-angle", "25"},
        {"pmf-threshold", "0.1"},
        {"pmf-threshold-absolute", "0"},
        {"max-directions", "32"}}},
      {"dipy",
       Getter::closest,
       {{"sphere", "repulsion724"},
        {"step-size", "0.5mm"},
        {"max-angle", "60"},
        {"relative-peak-threshold", "0.5"},
        {"min-separation-angle", "25"},
        {"pmf-threshold", "0.1"},
        {"pmf-threshold-absolute", "0"},
        {"max-directions", "32"}}},
      {"mrtrix3",
       Getter::prob,
       {{"step-size", "0.1"},
        {"max-angle", "15"},
        {"pmf-threshold", "0"},
        {"pmf-threshold-absolute", "0.1"},
        {"max-directions", "1"},
        {"min-length", "5vox"},
        {"max-length", "100vox"}}},
      {"mrtrix3",
       Getter::det,
       {{"step-size", "0.1"},
        {"max-angle", "60"},
        {"pmf-threshold", "0"},
        {"pmf-threshold-absolute", "0.1"},
        {"max-directions", "1"},
        {"min-length", "5vox"},
        {"max-length", "100vox"}}},
      {"mrtrix3",
       Getter::tensor,
       {{"step-size", "0.1"},
        {"max-angle", "60"},
        {"fa-threshold", "0.1"},
        {"min-length", "5vox"},
        {"max-length", "100vox"}}},
      {"trekker",
       Getter::ptt,
       {{"step-size", "0.5"},
        {"ptt-substeps", "20"},
        {"ptt-probe-length", "0.25vox"},
        {"ptt-probe-quality", "4"},
        {"ptt-probe-count", "1"},
        {"ptt-probe-radius", "0"},
        {"ptt-min-radius", "0.5vox"},
        {"ptt-exponent", "1"},
        {"ptt-tries", "1000"},
        {"ptt-bound-interval", "1"},
        {"ptt-weak", "count"},
        {"pmf-threshold", "0"},
        {"pmf-threshold-absolute", "0.05"},
        {"start", "drawn"},
        {"interpolate", "amplitudes"},
        {"max-directions", "32"}}},
  };
  return rows;
}

std::size_t place_of(Getter getter) {
  return static_cast<std::size_t>(std::find(getters.begin(), getters.end(), getter) - getters.begin());
}

Status set_option(const Verb& verb, const OptionValue& option, ParsedArguments& arguments) {
  for (const Argument& argument : all_arguments(verb)) {
    if (argument.name != option.option) continue;
    CGL_TRY_ASSIGN(auto values, parse_option(argument, option.value));
    arguments.set(argument.name, std::move(values), false);
    return {};
  }
  return fail(ErrorKind::invalid_state, "`{}` has no option --{}", verb.name, option.option);
}

Status apply_preset(const Verb& verb, Getter getter, ParsedArguments& arguments) {
  const std::string preset = arguments.text("preset");
  std::vector<std::string_view> other_getters;
  for (const PresetRow& row : preset_rows()) {
    if (row.preset != preset) continue;
    if (row.getter != getter) {
      other_getters.push_back(getter_name(row.getter));
      continue;
    }
    std::string said;
    for (const OptionValue& option : row.options) {
      if (arguments.given(option.option)) continue;
      CGL_TRY(set_option(verb, option, arguments));
      said += fmt::format(" --{}{}{}", option.option, option.value.empty() ? "" : " ", option.value);
    }
    log_info("--preset {}:{}", preset, said);
    return {};
  }
  return fail(ErrorKind::invalid_argument, "--preset {}: it has no {}; accepted with it is --dg {}", preset,
              getter_name(getter), fmt::join(other_getters, ", "));
}

// Harmonics of a file are taken for CSD's, which those of MRtrix3 and nearly all others are, unless its sidecar has
// another model.
bool has_units_of_csd(const ParsedArguments& arguments) {
  if (arguments.given("sf") || arguments.given("peaks")) return false;
  std::string model = arguments.text("model");
  if (arguments.given("sh")) {
    std::error_code ignored;
    if (!std::filesystem::exists(sidecar_path(arguments.text("sh")), ignored)) return true;
    // What is wrong with a sidecar is said where the file is read.
    const auto sidecar = read_sidecar(arguments.text("sh"));
    const bool named = sidecar && sidecar->is_object() && sidecar->contains("model") && (*sidecar)["model"].is_string();
    model = named ? (*sidecar)["model"].get<std::string>() : "csd";
  }
  return model != "opdt" && model != "csa";
}

bool has_amplitudes(const ParsedArguments& arguments) {
  return arguments.given("sh") || arguments.given("sf") || arguments.given("peaks");
}

// --amplitude-cutoff becomes the thresholds that it stands for. A preset's threshold of the map is one of FA, so the
// cutoff goes before it; its threshold of amplitudes gives way to a cutoff that was given alone.
Status apply_cutoff(const Verb& verb, ParsedArguments& arguments) {
  const bool given = arguments.given("amplitude-cutoff");
  if (given && !has_amplitudes(arguments)) {
    return fail(ErrorKind::invalid_argument, "--amplitude-cutoff: accepted with --sh, --sf or --peaks");
  }
  const bool acts_on_map = stops_by_amplitude(arguments);
  const double cutoff = arguments.real("amplitude-cutoff");
  if (!has_amplitudes(arguments) || !(cutoff > 0)) return {};
  const std::string text = fmt::format("{}", cutoff);
  if (acts_on_map && !arguments.given("fa-threshold") && !arguments.given("stop-threshold")) {
    CGL_TRY(set_option(verb, {"fa-threshold", text}, arguments));
  }
  const bool free = !arguments.given("pmf-threshold-absolute") && (given || !arguments.has("pmf-threshold-absolute"));
  if (free && (acts_on_map || given)) CGL_TRY(set_option(verb, {"pmf-threshold-absolute", text}, arguments));
  return {};
}

}  // namespace

bool stops_by_amplitude(const ParsedArguments& arguments) {
  return has_amplitudes(arguments) && !arguments.given("stop-map") && arguments.real("amplitude-cutoff") > 0;
}

bool cutoff_is_threshold(const ParsedArguments& arguments) {
  const bool map_given = arguments.given("fa-threshold") || arguments.given("stop-threshold");
  return stops_by_amplitude(arguments) && !(map_given && arguments.given("pmf-threshold-absolute"));
}

Result<std::vector<ParsedArguments::Value>> parse_option(const Argument& argument, std::string_view text) {
  std::vector<ParsedArguments::Value> values;
  if (argument.type == ArgumentType::flag) {
    values.emplace_back(text != "false");
  } else {
    CGL_TRY_ASSIGN(ParsedArguments::Value value, parse_value(argument, text));
    values.push_back(std::move(value));
  }
  return values;
}

Status complete_arguments(const Verb& verb, Getter getter, ParsedArguments& arguments) {
  if (arguments.given("preset")) CGL_TRY(apply_preset(verb, getter, arguments));
  CGL_TRY(apply_cutoff(verb, arguments));
  const auto fill_in = [&](std::span<const GetterDefault> rows) -> Status {
    for (const GetterDefault& row : rows) {
      if (arguments.has(row.option)) continue;
      CGL_TRY(set_option(verb, {row.option, row.values[place_of(getter)]}, arguments));
    }
    return {};
  };
  if (!has_units_of_csd(arguments)) CGL_TRY(fill_in(of_other_models));
  return fill_in(getter_defaults);
}

std::string default_by_getter(std::string_view option) {
  for (const GetterDefault& row : getter_defaults) {
    if (row.option != option) continue;
    if (std::all_of(row.values.begin(), row.values.end(), [&](auto value) { return value == row.values[0]; })) {
      return std::string(row.values[0]);
    }
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < getters.size(); ++i) {
      parts.push_back(fmt::format("{} {}", getter_name(getters[i]), row.values[i]));
    }
    return fmt::format("by getter: {}", fmt::join(parts, ", "));
  }
  return {};
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const PresetRow& row : preset_rows()) {
    if (names.empty() || names.back() != row.preset) names.emplace_back(row.preset);
  }
  return names;
}

std::vector<OptionValue> values_under_rules(int rules) {
  std::vector<OptionValue> values;
  // Sidecars of the first rules have no number. Options hold every value that was a default then; what stands here are
  // the options that came since, and that had no value.
  if (rules < 3) values.push_back({"max-directions", "32"});
  if (rules < 2) {
    values.insert(values.end(), {{"interpolate", "harmonics"},
                                 {"start", "peaks"},
                                 {"ptt-probe-length", "2vox"},
                                 {"ptt-min-radius", "0"},
                                 {"ptt-weak", "end"},
                                 {"ptt-bound-interval", "1"},
                                 {"second-half", "initial-direction"},
                                 {"stop-rule", "trilinear"},
                                 {"amplitude-cutoff", "0"},
                                 {"all-peaks", "true"},
                                 {"response-fa", "0.7"},
                                 {"response-radius", "10"},
                                 {"max-segment-length", "10mm"}});
    // Given to no one, so it speaks for peaks alone that have no other word of their frame.
    values.push_back({"frame", "image"});
  }
  return values;
}

}  // namespace cingulum
