#include "runs/track/track_defaults.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/json_view.hpp"
#include "base/log.hpp"
#include "formats/sidecar.hpp"
#include "runs/track/track_fields.hpp"

namespace cingulum {
namespace {

// What another tool does by default, in our options; of getters that it does not have nothing is listed. Sources: the
// script of cuslines 2.0 (its ptt: nine amplitudes along two edges, curvatures up to 8 sin(angle / 2) per edge), the
// functions of dipy.tracking.tracker 1.12, tckgen 3.0 (prob is iFOD1, det SD_STREAM, tensor Tensor_Det), Trekker 0.9.
struct PresetRow {
  std::string_view preset;
  Getter getter;
  std::vector<NamedText> values;
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
  const auto found = std::find(getters_of_defaults.begin(), getters_of_defaults.end(), getter);
  return static_cast<std::size_t>(found - getters_of_defaults.begin());
}

Status set_by_name(TrackRequest& request, const NamedText& value) {
  const TrackField* const field = find_field(track_fields(), value.name);
  if (field == nullptr) return fail(ErrorKind::invalid_state, "a request has no '{}'", value.name);
  const std::string text(value.text);
  return field->set_texts(request, std::span(&text, 1), false);
}

Status apply_preset(Getter getter, TrackRequest& request) {
  const std::string preset = request.preset.value();
  std::vector<std::string_view> other_getters;
  for (const PresetRow& row : preset_rows()) {
    if (row.preset != preset) continue;
    if (row.getter != getter) {
      other_getters.push_back(getter_name(row.getter));
      continue;
    }
    std::string values;
    for (const NamedText& value : row.values) {
      const TrackField* const field = find_field(track_fields(), value.name);
      if (field != nullptr && field->given(request)) continue;
      CGL_TRY(set_by_name(request, value));
      values += fmt::format(" {}{}{}", argument_name(value.name), value.text.empty() ? "" : " ", value.text);
    }
    log_info("{} {}:{}", argument_name("preset"), preset, values);
    return {};
  }
  return fail(ErrorKind::invalid_argument, "{} {}: it has no {}; accepted with it is {} {}", argument_name("preset"),
              preset, getter_name(getter), argument_name("dg"), fmt::join(other_getters, ", "));
}

// Harmonics of a file are taken for CSD's, which those of MRtrix3 and nearly all others are, unless its sidecar has
// another model.
bool has_units_of_csd(const TrackRequest& request) {
  if (request.sf.given() || request.peaks.given()) return false;
  std::string model = request.model.value();
  if (request.sh.given()) {
    std::error_code ignored;
    if (!std::filesystem::exists(sidecar_path(request.sh.value()), ignored)) return true;
    // What is wrong with a sidecar is said where the file is read.
    const auto sidecar = read_sidecar(request.sh.value());
    model = sidecar ? JsonView(*sidecar)["model"].text_or("csd") : "csd";
  }
  return model != "opdt" && model != "csa";
}

bool has_amplitudes(const TrackRequest& request) {
  return request.sh.given() || request.sf.given() || request.peaks.given();
}

// --amplitude-cutoff becomes the thresholds that it stands for. A preset's threshold of the map is one of FA, so the
// cutoff goes before it; its threshold of amplitudes gives way to a cutoff that was given alone.
Status apply_cutoff(TrackRequest& request) {
  const bool given = request.amplitude_cutoff.given();
  if (given && !has_amplitudes(request)) {
    return fail(ErrorKind::invalid_argument, "{}: accepted with {}, {} or {}", argument_name("amplitude_cutoff"),
                argument_name("sh"), argument_name("sf"), argument_name("peaks"));
  }
  const bool acts_on_map = stops_by_amplitude(request);
  const double cutoff = request.amplitude_cutoff.value();
  if (!has_amplitudes(request) || !(cutoff > 0)) return {};
  if (acts_on_map && !request.fa_threshold.given() && !request.stop_threshold.given()) {
    request.fa_threshold.set_default(cutoff);
  }
  const bool free = !request.pmf_threshold_absolute.given() && (given || !request.pmf_threshold_absolute.has());
  if (free && (acts_on_map || given)) request.pmf_threshold_absolute.set_default(cutoff);
  return {};
}

}  // namespace

bool stops_by_amplitude(const TrackRequest& request) {
  return has_amplitudes(request) && !request.stop_map.given() && request.amplitude_cutoff.value() > 0;
}

bool cutoff_is_threshold(const TrackRequest& request) {
  const bool map_given = request.fa_threshold.given() || request.stop_threshold.given();
  return stops_by_amplitude(request) && !(map_given && request.pmf_threshold_absolute.given());
}

Status complete_request(TrackRequest& request) {
  CGL_TRY(fill_in_defaults(track_fields(), request));
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(request.dg.value()));
  if (request.preset.given()) CGL_TRY(apply_preset(getter, request));
  CGL_TRY(apply_cutoff(request));
  // The absolute threshold of the table is one of CSD, whose amplitudes have the unit of a fibre.
  if (!request.pmf_threshold_absolute.has() && !has_units_of_csd(request))
    request.pmf_threshold_absolute.set_default(0);
  for (const TrackField& field : track_fields()) {
    const std::string_view value = field.traits.default_by_getter[place_of(getter)];
    if (value.empty() || field.has(request)) continue;
    const std::string text(value);
    CGL_TRY(field.set_texts(request, std::span(&text, 1), false));
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

std::vector<NamedText> values_under_rules(int rules) {
  std::vector<NamedText> values;
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
