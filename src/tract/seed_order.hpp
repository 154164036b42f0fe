// The order in which trackers visit seeds: neighbours in space one after the other, so that they read the same records.
// It changes no result: streamlines are put in the order of the seeds afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/vec3.hpp"

namespace cingulum {

// The bits of x, y and z by turns: neighbours on this curve are neighbours in space (Morton 1966).
[[nodiscard]] std::uint64_t morton_code(numerics::Vec3 position_voxel);

// The positions' indices along that curve.
[[nodiscard]] std::vector<std::uint32_t> order_in_space(const std::vector<numerics::Vec3>& positions);

}  // namespace cingulum
