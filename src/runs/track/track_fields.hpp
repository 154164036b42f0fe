// The table of TrackRequest: what each member means, wherever it acts. Whoever looks for what `--max-angle` is finds it
// here: its unit, range and default by getter, and the phase of the run that it decides.
#pragma once

#include <string_view>
#include <vector>

#include "runs/request_table.hpp"
#include "runs/track/track_request.hpp"

namespace cingulum {

using TrackField = RequestField<TrackRequest>;

// A region is an image or a sphere in text.
inline constexpr std::string_view region_metavar = "REGION";

// The last one is `seed`, which the command line has among its common options.
[[nodiscard]] RequestTable<TrackRequest> track_fields();

// The arguments of all fields, in the order of the table.
[[nodiscard]] std::vector<Argument> track_arguments();

// What a field that stays may be tracked with, over and over: any plan, seeds and rules, how the result is stored, and
// in how large pieces it is computed. What the field was made for is checked besides (FieldLimits).
[[nodiscard]] inline bool may_change_while_field_stays(const TrackField& field) {
  const Phase phase = field.phase;
  return phase == Phase::plan || phase == Phase::seeds || phase == Phase::selection || phase == Phase::output ||
         field.member == decltype(field.member)(&TrackRequest::chunk_size);
}

// What one request of a page may say: of these, what has a meaning for seeds in one sphere.
[[nodiscard]] inline bool may_change_per_answer(const TrackField& field) {
  return may_change_while_field_stays(field) && decides_result(field.phase) && field.phase != Phase::output &&
         !field.traits.whole_run;
}

}  // namespace cingulum
