// The "approximate" fit of BaSiC (Peng et al. 2017, Nat Commun 8:14836) as BaSiCPy 2 makes it by default, without a
// dark field: tiles D_t are taken as B_t S + R_t, S smooth (few DCT coefficients), R sparse. For comparison with
// pipelines that use it; flat_field.hpp and focal_curvature.hpp are ours. Host, float64.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct BasicFitOptions {
  std::size_t working_size = 128;  // tiles are fitted at this many rows and columns
  double smoothness = 1;
  int iterations = 500;
  double tolerance = 1e-3;
  int reweightings = 10;
  double reweighting_tolerance = 1e-2;
};
// S at the tiles' size, mean 1.
[[nodiscard]] Result<HostImage> fit_basic(const std::vector<HostImage>& tiles, const BasicFitOptions& options = {});

// Bilinear with aligned corners; a smaller image is made after a Gaussian window, as scikit-image's anti-aliasing.
[[nodiscard]] HostImage resize_corners(const HostImage& image, std::size_t rows, std::size_t columns);

}  // namespace cingulum::oct
