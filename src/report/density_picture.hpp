// Pictures of a density map: a slice through its middle over the anatomy, and the largest density along the line of
// sight. Slices follow the image's own axes, turned so that they show what a sagittal, coronal and axial slice shows;
// an oblique image is not resampled. Called by the report.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/picture.hpp"
#include "report/streamline_view.hpp"
#include "streamlines/density_map.hpp"

namespace cingulum {

// Colours follow the logarithm of the count, from 1 to `full`, which 1 visited voxel in 200 exceeds.
struct DensityScale {
  std::uint32_t full = 1;
  [[nodiscard]] double share(double count) const;  // 0 for no streamline, 1 for `full` and more
};
[[nodiscard]] DensityScale density_scale(const DensityMap& density);

// A colour scale from deep violet through red and orange to a pale yellow.
[[nodiscard]] Colour density_colour(double share);

// What lies under the density: one value per voxel of the map's grid, shown as grey between `black` and `white`.
struct Anatomy {
  std::vector<float> values;
  float black = 0;
  float white = 1;
};
// Black and white are the 1st and 99.5th percentile of the values that are finite and not zero.
[[nodiscard]] Anatomy make_anatomy(std::vector<float> values);

struct DensityPicture {
  Picture picture;
  std::int64_t slice = 0;  // index along `axis`
  std::size_t axis = 0;    // of the image, which the picture looks along
  double position_mm = 0;  // of the slice's middle, along the world axis of that side
};

// `anatomy` may be null. Pictures are squares; all sides have the same scale.
[[nodiscard]] DensityPicture draw_density_slice(const DensityMap& density, const DensityScale& scale,
                                                const Anatomy* anatomy, ViewSide side, int pixels);
[[nodiscard]] Picture draw_density_projection(const DensityMap& density, const DensityScale& scale, ViewSide side,
                                              int pixels);

}  // namespace cingulum
