// A few planes of a slice as one image, and where it shows something: what slices are registered by. Called by
// slice_registration.cpp and rigid_fit.cpp.
#pragma once

#include <cstddef>

#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// An image and where it shows something: 1 there, 0 where no tile was. What lies outside is no edge to be matched.
struct SeenImage {
  HostImage image;
  HostImage seen;
};
inline constexpr double fully_seen = 0.999;  // of a value between pixels, or of several of them

[[nodiscard]] SeenImage all_seen(const HostImage& image);

// The logarithm of the mean of some planes, smoothed. A pixel that is empty in one of them, or near to such a one, is
// not seen.
[[nodiscard]] SeenImage seen_slab(const HostVolume& volume, std::size_t first, std::size_t count, double smoothing_px,
                                  ThreadPool* pool);
// 5 % to 95 % of the values count, what is beyond is cut.
void stretch(SeenImage& slab);

}  // namespace cingulum::oct
