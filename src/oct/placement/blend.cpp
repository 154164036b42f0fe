#include "oct/placement/blend.hpp"

#include <algorithm>
#include <cmath>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {
namespace {

// The pixels of the canvas that a tile covers along one axis, with where they lie in the tile and their weights.
struct AxisCover {
  std::size_t first = 0;              // of the canvas
  std::vector<std::size_t> low = {};  // pixel of the tile at or before
  std::vector<double> part = {};      // of the way to the next pixel
  std::vector<double> weight = {};
};

AxisCover cover_axis(double place, std::size_t pixels, double ramp, Blending blending) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  AxisCover cover;
  const double last = static_cast<double>(pixels) - 1;
  cover.first = static_cast<std::size_t>(std::ceil(place - 1e-9));
  for (std::size_t at = cover.first;; ++at) {
    const double inside = std::max(0.0, static_cast<double>(at) - place);
    if (inside > last + 1e-9) return cover;
    const auto low = std::min(static_cast<std::size_t>(inside), pixels - 1);
    cover.low.push_back(low);
    cover.part.push_back(low + 1 < pixels ? inside - static_cast<double>(low) : 0.0);
    const double edge = std::min(inside, std::max(0.0, last - inside)) + 1;  // 1 in the first pixel
    double weight = 1;
    if (blending == Blending::cosine && edge < ramp + 1) weight = 0.5 * (1 - numerics::cosine(pi * edge / (ramp + 1)));
    // The nearest centre wins: a weight that falls so fast that the others vanish would do, but ties need an order.
    if (blending == Blending::none) weight = edge;
    cover.weight.push_back(weight);
  }
}

// How far neighbours overlap along an axis, the middle one of all pairs.
double usual_overlap(const TileGrid& grid, const std::vector<std::array<double, 2>>& places, std::size_t axis) {
  std::vector<double> overlaps;
  const std::size_t further = axis == 0 ? grid.columns : 1;
  for (std::size_t t = 0; t + further < grid.count(); ++t) {
    if (axis == 1 && t % grid.columns + 1 == grid.columns) continue;
    overlaps.push_back(static_cast<double>(grid.tile[axis + 1]) - (places[t + further][axis] - places[t][axis]));
  }
  return std::max(0.0, median(std::move(overlaps)));
}

}  // namespace

Result<Blending> parse_blending(std::string_view name) {
  if (name == "cosine") return Blending::cosine;
  if (name == "average") return Blending::average;
  if (name == "none") return Blending::none;
  return fail_argument("blending", "{} '{}': accepted are cosine, average, none", argument_name("blending"), name);
}

Result<BlendedSlice> blend_tiles(const HostVolume& mosaic, const TileGrid& grid,
                                 const std::vector<std::array<double, 2>>& places_px, Blending blending,
                                 ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<BlendedSlice> {
    std::array<std::size_t, 2> canvas = {0, 0};
    for (const auto& place : places_px) {
      for (std::size_t d = 0; d < 2; ++d) {
        const auto end = static_cast<std::size_t>(std::floor(place[d] + 1e-9)) + grid.tile[d + 1];
        canvas[d] = std::max(canvas[d], end);
      }
    }
    CGL_TRY(check_host_memory("stitching", std::uint64_t{4} * grid.tile[0] * canvas[0] * canvas[1]));
    BlendedSlice slice;
    slice.volume = HostVolume(grid.tile[0], canvas[0], canvas[1]);
    const std::array<double, 2> ramp = {usual_overlap(grid, places_px, 0), usual_overlap(grid, places_px, 1)};
    std::vector<std::array<AxisCover, 2>> covers(grid.count());
    for (std::size_t t = 0; t < grid.count(); ++t) {
      if (grid.tiles[t].missing) continue;
      for (std::size_t d = 0; d < 2; ++d) {
        covers[t][d] = cover_axis(places_px[t][d], grid.tile[d + 1], ramp[d], blending);
      }
    }
    std::vector<std::uint64_t> uncovered(canvas[0], 0);
    // A row of the canvas in all planes: tiles in the order of their numbers.
    const auto blend_row = [&](std::size_t row) {
      std::vector<double> weights(canvas[1]);
      std::vector<double> first(canvas[1]);
      std::vector<double> sums(canvas[1]);
      for (std::size_t z = 0; z < slice.volume.planes; ++z) {
        std::fill(weights.begin(), weights.end(), 0.0);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t t = 0; t < grid.count(); ++t) {
          const AxisCover& rows = covers[t][0];
          const AxisCover& columns = covers[t][1];
          if (grid.tiles[t].missing || row < rows.first || row >= rows.first + rows.low.size()) continue;
          const std::size_t r = row - rows.first;
          const std::size_t base_row = t / grid.columns * grid.tile[1] + rows.low[r];
          const std::size_t base_column = t % grid.columns * grid.tile[2];
          const float* const above = mosaic.values.data() + mosaic.index(z, base_row, base_column);
          const float* const below = rows.part[r] > 0 ? above + mosaic.columns : above;
          for (std::size_t c = 0; c < columns.low.size(); ++c) {
            const std::size_t left = columns.low[c];
            const std::size_t right = columns.part[c] > 0 ? left + 1 : left;
            const double top = static_cast<double>(above[left]) +
                               columns.part[c] * (static_cast<double>(above[right]) - static_cast<double>(above[left]));
            const double bottom =
                static_cast<double>(below[left]) +
                columns.part[c] * (static_cast<double>(below[right]) - static_cast<double>(below[left]));
            const double value = top + rows.part[r] * (bottom - top);
            const double weight = rows.weight[r] * columns.weight[c];
            const std::size_t at = columns.first + c;
            if (blending == Blending::none) {
              if (weight > weights[at]) {
                weights[at] = weight;
                first[at] = value;
              }
              continue;
            }
            // The mean as the first value and weighted differences from it: equal values stay what they are.
            if (weights[at] == 0) first[at] = value;
            weights[at] += weight;
            sums[at] += weight * (value - first[at]);
          }
        }
        float* const to = &slice.volume.at(z, row, 0);
        for (std::size_t c = 0; c < canvas[1]; ++c) {
          to[c] = weights[c] > 0 ? static_cast<float>(first[c] + sums[c] / weights[c]) : 0.0f;
          if (z == 0 && !(weights[c] > 0)) ++uncovered[row];
        }
      }
    };
    for_each_index(pool, canvas[0], blend_row);
    for (const std::uint64_t count : uncovered) slice.uncovered_pixels += count;
    return slice;
  });
}

}  // namespace cingulum::oct
