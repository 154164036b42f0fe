// The slices of a run against each other: neighbours are registered, and the plan is made by which all become one
// volume. Called by reconstruction.cpp, once slices are in the work folder.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "oct/run/run_state.hpp"

namespace cingulum::oct {

// Slice s to the one before it. A pair that cannot be registered is placed by the motors, with a warning.
[[nodiscard]] Status register_pair(RunState& run, std::size_t s);
[[nodiscard]] Status plan_stack(RunState& run);

}  // namespace cingulum::oct
