// What a request has where nothing was given: by the direction getter, since angle, step and thresholds that suit one
// do not suit another, or by a preset, which gives the options that another tool has. Called before anything reads the
// request; the sidecar holds the values that result. The defaults themselves stand in the table (track_fields.cpp).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runs/track/track_request.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

// The order of FieldTraits::default_by_getter.
inline constexpr std::array<Getter, 6> getters_of_defaults = {Getter::boot, Getter::prob,    Getter::ptt,
                                                              Getter::det,  Getter::closest, Getter::tensor};

// Gives a value to every setting that has none and has a default: first those of the table, then those of the preset,
// then those of the getter.
[[nodiscard]] Status complete_request(TrackRequest& request);

// Whether the greatest amplitude of each voxel is the stopping map: of a file without one, unless the cutoff is 0; and
// whether `amplitude_cutoff` is then the threshold of the map or of amplitudes, which both may be given.
[[nodiscard]] bool stops_by_amplitude(const TrackRequest& request);
[[nodiscard]] bool cutoff_is_threshold(const TrackRequest& request);

[[nodiscard]] std::vector<std::string> preset_names();

// The number of the rules by which a run reads its options. It stands in every sidecar, and rises when the same options
// come to mean another result, so that `--from` gives the bytes that a sidecar was written with.
inline constexpr int present_rules = 3;

// What members that a sidecar of older rules does not have meant then: name and value.
struct NamedText {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::vector<NamedText> values_under_rules(int rules);

}  // namespace cingulum
