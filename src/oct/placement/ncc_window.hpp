// Normalised cross-correlation of two images over a window of whole-pixel shifts: the terms that placement of tiles and
// registration of slices need. Sums of products, nearly all of the work, may come from any device
// (OctKernels::shift_products has the same bits); the quotient is taken here, in float64. Rows of one image are summed
// once for all shifts along rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cingulum::oct {

// A float32 image that belongs to the caller.
struct ImageView {
  const float* values = nullptr;
  std::size_t rows = 0, columns = 0;
};

// Shifts of `moving` against `fixed`: pixel (r, c) of moving lies over (r + row, c + column) of fixed.
struct ShiftWindow {
  std::ptrdiff_t row = 0, column = 0;           // the middle
  std::size_t row_reach = 0, column_reach = 0;  // to either side

  [[nodiscard]] std::size_t count() const { return (2 * row_reach + 1) * (2 * column_reach + 1); }
};

// The pixels that both images have at a shift.
struct SharedPixels {
  std::size_t fixed_row = 0, fixed_column = 0;
  std::size_t moving_row = 0, moving_column = 0;
  std::size_t rows = 0, columns = 0;
};
// Calls take(SharedPixels) for all shifts of the window, rows of shifts one after the other.
void for_each_shift(std::array<std::size_t, 2> fixed, std::array<std::size_t, 2> moving, const ShiftWindow& window,
                    const std::function<void(const SharedPixels&)>& take);

// Plane sums over the pixels that both images have, of values less `offset`.
struct NccSums {
  std::uint64_t pixels = 0;
  float fixed = 0, moving = 0;
  float fixed_square = 0, moving_square = 0, product = 0;
};
// The correlation over all images together, each less its own mean; 0 where either side does not vary.
[[nodiscard]] double ncc_of(std::span<const NccSums> images);

// Terms of all shifts of the window, rows of shifts one after the other. Products that are given, one for each shift,
// are taken as they are. any thread
[[nodiscard]] std::vector<NccSums> plane_terms_on_host(const ImageView& fixed, const ImageView& moving, float offset,
                                                       const ShiftWindow& window, std::span<const float> products = {});

struct NccPeak {
  bool found = false;
  double ncc = 0;                        // at the whole pixel
  std::array<double, 2> shift = {0, 0};  // row, column, by a parabola through the neighbours
  bool at_border = false;                // of the window: the true peak may lie outside
};
struct ImagePair {
  ImageView fixed, moving;
};
// One pair of images, or several that lie over each other and move together. Shifts that share less than `least_pixels`
// do not count. `products`, where they are given, are those of each pair at all shifts, pair after pair.
[[nodiscard]] NccPeak find_peak(std::span<const ImagePair> pairs, float offset, const ShiftWindow& window,
                                std::uint64_t least_pixels, std::span<const float> products = {});

}  // namespace cingulum::oct
