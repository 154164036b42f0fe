// The order in which trackers visit seeds: neighbours in space one after the other, so that they read the same records.
// It changes no result: streamlines are put in the order of the seeds afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/vec3.hpp"

namespace cingulum {

// The positions' indices along a curve on which neighbours are neighbours in space.
[[nodiscard]] std::vector<std::uint32_t> order_in_space(const std::vector<numerics::Vec3>& positions);

}  // namespace cingulum
