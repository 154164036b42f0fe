// What is fitted over all tiles of a run before slices are made of them: focal curvature, depths of tiles, light; and
// the planes of tiles that become a slice. Called by reconstruction.cpp, once tiles are summarised and placed.
#pragma once

#include "base/result.hpp"
#include "oct/run/run_state.hpp"

namespace cingulum::oct {

// Fits over all slices at once, since what they have in common is the instrument. The projections of tiles are taken.
[[nodiscard]] Status fit_instrument(RunState& run);
// The planes of tiles that become a slice: from its surface on, as many in each slice as all A-lines of all have; and
// the size of a tile as it enters a slice.
[[nodiscard]] Status choose_planes(RunState& run);
// Says both, with reasons.
void note_fit_decisions(RunState& run);

}  // namespace cingulum::oct
