// How a tile's surface is bent by the optics: from maps of the interface, one per tile, to a map of planes by which
// each A-line is too deep. Maps come from the interface kernel; A-lines are moved by the roll kernel. Our fit is
// additive, so that it holds whatever the depth of each tile. The multiplicative form of BaSiC is kept for comparison.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// The median over tiles of (map less its own median), as a polynomial of degree 4, mean 0.
[[nodiscard]] Result<HostImage> fit_curvature(const std::vector<HostImage>& interfaces, ThreadPool* pool = nullptr);

// (F - 1) times the mean interface, F by BaSiC of the maps over the number of planes.
[[nodiscard]] Result<HostImage> fit_curvature_basic(const std::vector<HostImage>& interfaces, std::size_t planes);

}  // namespace cingulum::oct
