// Uneven light over a tile, the same for all tiles and depths: estimated on the host from projections of tiles, in
// float64. Our fit pools tiles (of many slices, where they are given) and is a smooth field of mean 1; BaSiC's fit
// stands beside it for comparison with others' results (basic_fit.hpp). Called by `oct flatfield`.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct FlatFieldFit {
  HostImage field;        // mean 1
  std::size_t tiles = 0;  // that took part
};
// `projections` are means over planes, not logarithms. A tile takes part where more than half of it is above zero; the
// brightest thousandth of each is cut. The field is a polynomial of total degree 4 in the logarithm. Pairs are tiles
// of `projections` that show the same sample at a known step: what they differ by is light alone, so they decide where
// there are any (a mean over few tiles holds a good deal of the sample).
struct OverlapPair {
  std::size_t first = 0, second = 0;
  std::array<double, 2> step_px = {0, 0};  // of the second against the first, row and column
};
[[nodiscard]] Result<FlatFieldFit> fit_flat_field(const std::vector<HostImage>& projections,
                                                  std::span<const OverlapPair> pairs = {}, ThreadPool* pool = nullptr);

// Every tile of the mosaic divided by the field.
void divide_by_field(HostVolume& mosaic, const TileGrid& grid, const HostImage& field, ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
