// A field over the pixels of a tile that is smooth: a polynomial of two coordinates from -1 to 1, fitted by least
// squares. Flat field, curvature and the mean tile are such fields; few tiles do not suffice for more.
#pragma once

#include <span>

#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// The polynomial of total degree `degree` next to the image; `weights` (none: all 1) has one number per pixel.
[[nodiscard]] HostImage fit_polynomial(const HostImage& image, int degree, std::span<const double> weights = {});

}  // namespace cingulum::oct
