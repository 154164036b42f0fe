// What `cingulum track` takes for options that were not given: by the direction getter, since angle, step and
// thresholds that suit one do not suit another, or by `--preset`, which gives the options that another tool has. Called
// by track.cpp before anything reads the arguments; the sidecar holds the values that result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

// Gives a value to every option that has none: first those of the preset, then those of the getter.
[[nodiscard]] Status complete_arguments(const Verb& verb, Getter getter, ParsedArguments& arguments);

// Whether the greatest amplitude of each voxel is the stopping map: of a file without one, unless the cutoff is 0; and
// whether --amplitude-cutoff is then the threshold of the map or of amplitudes, which both may be given.
[[nodiscard]] bool stops_by_amplitude(const ParsedArguments& arguments);
[[nodiscard]] bool cutoff_is_threshold(const ParsedArguments& arguments);

// "boot 45, prob 30, ...": what help says of an option whose default depends on the getter; empty for any other option.
[[nodiscard]] std::string default_by_getter(std::string_view option);

[[nodiscard]] std::vector<std::string> preset_names();

// The number of the rules by which a run reads its options. It stands in every sidecar, and rises when the same options
// come to mean another result, so that `--from` gives the bytes that a sidecar was written with.
inline constexpr int present_rules = 3;

// What options that a sidecar of older rules does not have meant then: name and value.
struct OptionValue {
  std::string_view option;
  std::string_view value;
};
[[nodiscard]] std::vector<OptionValue> values_under_rules(int rules);

// The one value of an option, from its text; a flag is true unless the text is "false".
[[nodiscard]] Result<std::vector<ParsedArguments::Value>> parse_option(const Argument& argument, std::string_view text);

}  // namespace cingulum
