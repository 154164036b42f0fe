// The depths of the tiles of a slice: by how many planes the surface of each lies deeper than that of the others; the
// beam's path differs a little from tile to tile. Where neighbours overlap they see one surface, so what differs there
// is the depths of the two tiles; one least-squares fit takes all overlaps together. A slope of the sample stays, since
// both tiles see it.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// `interfaces` are free of focal curvature; a missing tile has an empty one. Depths have a mean of 0 over the tiles; a
// tile without overlaps has depth 0.
[[nodiscard]] std::vector<double> fit_tile_depths(std::span<const HostImage> interfaces,
                                                  std::span<const OverlapPair> pairs, ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
