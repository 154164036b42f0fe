// Seeds at random places of a ball in world space: `--seed-sphere`, and the sphere that is dragged in the viewer. Each
// is a function of its index, as all seeds are (seeds.hpp). The ball alone decides where they lie: those beyond the
// image, or where the stopping map does not pass, start nothing, and the run counts them as outside.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/philox.hpp"
#include "streamlines/sphere_text.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

// `count` seeds, evenly over the ball's volume in mm, also where voxels are not cubes. count 0: without end. Attempt a
// of seed i is the block of Philox with purpose seed_position, index i and attempt a: its first three words, as numbers
// in [-1, 1), are a place in the ball's cube, and the first attempt inside the ball is taken. World positions are made
// in float64, mapped to voxels in float64 and rounded once. Refuses a ball that cannot reach the image: its box along
// the image's axes and the image are apart.
[[nodiscard]] Result<std::unique_ptr<Seeds>> sphere_seeds(const ImageGeometry& geometry, const WorldSphere& sphere,
                                                          std::uint64_t count, numerics::PhiloxKey key);

}  // namespace cingulum
