#include "oct/placement/blend.hpp"

#include <algorithm>
#include <cmath>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {
namespace {

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

// A run of pixels of the canvas between four of a tile, which lie side by side, too: `part` of the way from a to b and
// from d to e, and `down` of the way from above to below.
struct TileRow {
  const float* a;
  const float* b;
  const float* d;
  const float* e;
  const double* part;
  double down;
};

CGL_INLINE double value_of(const TileRow& row, std::size_t i) {
  const double top =
      static_cast<double>(row.a[i]) + row.part[i] * (static_cast<double>(row.b[i]) - static_cast<double>(row.a[i]));
  const double bottom =
      static_cast<double>(row.d[i]) + row.part[i] * (static_cast<double>(row.e[i]) - static_cast<double>(row.d[i]));
  return top + row.down * (bottom - top);
}

CGL_SIMD_CLONES void open_run(const TileRow& tile, std::size_t pixels, double* base) {
  const TileRow row = tile;
  for (std::size_t i = 0; i < pixels; ++i) base[i] = value_of(row, i);
}

// The mean as the first value and weighted differences from it: equal values stay what they are.
CGL_SIMD_CLONES void add_to_run(const TileRow& tile, std::size_t pixels, const double* weight, double row_weight,
                                const double* base, double* sum) {
  const TileRow row = tile;
  for (std::size_t i = 0; i < pixels; ++i) sum[i] += row_weight * weight[i] * (value_of(row, i) - base[i]);
}

}  // namespace

Result<Blending> parse_blending(std::string_view name) {
  if (name == "cosine") return Blending::cosine;
  if (name == "average") return Blending::average;
  if (name == "none") return Blending::none;
  return fail_argument("blending", "{} '{}': accepted are cosine, average, none", argument_name("blending"), name);
}

TileBlend::AxisCover TileBlend::cover_axis(double place, std::size_t pixels, double ramp, Blending blending) {
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

TileBlend TileBlend::plan(const TileGrid& grid, const std::vector<std::array<double, 2>>& places_px,
                          Blending blending) {
  TileBlend plan;
  plan.tile_rows_ = grid.tile[1];
  plan.tile_columns_ = grid.tile[2];
  plan.grid_columns_ = grid.columns;
  plan.blending_ = blending;
  for (const auto& place : places_px) {
    plan.rows_ = std::max(plan.rows_, static_cast<std::size_t>(std::floor(place[0] + 1e-9)) + grid.tile[1]);
    plan.columns_ = std::max(plan.columns_, static_cast<std::size_t>(std::floor(place[1] + 1e-9)) + grid.tile[2]);
  }
  const std::array<double, 2> ramp = {usual_overlap(grid, places_px, 0), usual_overlap(grid, places_px, 1)};
  plan.covers_.resize(grid.count());
  for (std::size_t t = 0; t < grid.count(); ++t) {
    if (grid.tiles[t].missing) continue;
    for (std::size_t d = 0; d < 2; ++d) {
      plan.covers_[t][d] = cover_axis(places_px[t][d], grid.tile[d + 1], ramp[d], blending);
    }
  }
  return plan;
}

// What all planes of a row of the canvas have in common: the tiles that meet it in the order of their numbers, and of
// each the runs of pixels that are treated alike.
struct TileBlend::RowPlan {
  struct Run {
    std::size_t begin = 0, end = 0;  // of the tile's columns on the canvas
    bool opens = false;              // the first tile there; others add their difference from it
    bool between = false;            // lies between two pixels of the tile, and not on one
  };
  struct Tile {
    const AxisCover* columns = nullptr;
    std::size_t first_row = 0, first_column = 0;  // in the mosaic
    double part = 0, weight = 0;                  // along rows
    std::vector<Run> runs = {};
  };
  enum class Covered : std::uint8_t { by_none, by_one, by_several };
  struct Stretch {
    std::size_t begin = 0, end = 0;  // columns of the canvas
    Covered covered = Covered::by_none;
  };
  std::vector<Tile> tiles;
  std::vector<double> weights;  // summed, of each pixel
  std::vector<Stretch> stretches;
};

TileBlend::RowPlan TileBlend::plan_row(std::size_t row) const {
  RowPlan plan;
  plan.weights.assign(columns_, 0.0);
  std::vector<RowPlan::Covered> covered(columns_, RowPlan::Covered::by_none);
  std::vector<std::size_t> nearest(columns_, covers_.size());  // none: the tile that is alone in a pixel
  for (std::size_t t = 0; t < covers_.size(); ++t) {
    const AxisCover& rows = covers_[t][0];
    const AxisCover& columns = covers_[t][1];
    if (row < rows.first || row >= rows.first + rows.low.size()) continue;
    const std::size_t r = row - rows.first;
    RowPlan::Tile tile;
    tile.columns = &columns;
    tile.first_row = t / grid_columns_ * tile_rows_ + rows.low[r];
    tile.first_column = t % grid_columns_ * tile_columns_;
    tile.part = rows.part[r];
    tile.weight = rows.weight[r];
    for (std::size_t c = 0; c < columns.low.size(); ++c) {
      const std::size_t at = columns.first + c;
      const double weight = tile.weight * columns.weight[c];
      const RowPlan::Run run{c, c + 1, plan.weights[at] == 0, columns.part[c] > 0};
      if (blending_ == Blending::none) {
        if (weight > plan.weights[at]) {
          covered[at] = RowPlan::Covered::by_one;
          plan.weights[at] = weight;
          nearest[at] = plan.tiles.size();
        }
        continue;
      }
      covered[at] = run.opens ? RowPlan::Covered::by_one : RowPlan::Covered::by_several;
      plan.weights[at] += weight;
      const bool joins = c > 0 && !tile.runs.empty() && tile.runs.back().opens == run.opens &&
                         tile.runs.back().between == run.between && columns.low[c] == columns.low[c - 1] + 1;
      if (joins) {
        tile.runs.back().end = c + 1;
      } else {
        tile.runs.push_back(run);
      }
    }
    plan.tiles.push_back(std::move(tile));
  }
  for (std::size_t c = 0; c < columns_; ++c) {
    if (c > 0 && covered[c] == covered[c - 1]) {
      plan.stretches.back().end = c + 1;
    } else {
      plan.stretches.push_back({c, c + 1, covered[c]});
    }
  }
  if (blending_ != Blending::none) return plan;
  for (std::size_t k = 0; k < plan.tiles.size(); ++k) {
    RowPlan::Tile& tile = plan.tiles[k];
    for (std::size_t c = 0; c < tile.columns->low.size(); ++c) {
      if (nearest[tile.columns->first + c] == k) tile.runs.push_back({c, c + 1, true, tile.columns->part[c] > 0});
    }
  }
  return plan;
}

void TileBlend::blend(const HostVolume& mosaic, HostVolume& to, ThreadPool* pool) const {
  const auto blend_row = [&](std::size_t row) {
    const RowPlan plan = plan_row(row);
    std::vector<double> first(columns_);
    std::vector<double> sums(columns_);
    for (std::size_t z = 0; z < to.planes; ++z) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const RowPlan::Tile& tile : plan.tiles) {
        const float* const above = mosaic.values.data() + mosaic.index(z, tile.first_row, tile.first_column);
        const float* const below = tile.part > 0 ? above + mosaic.columns : above;
        for (const RowPlan::Run& run : tile.runs) {
          const std::size_t pixels = run.end - run.begin;
          const std::size_t left = tile.columns->low[run.begin];
          const std::size_t right = run.between ? left + 1 : left;
          const float* const a = above + left;
          const float* const b = above + right;
          const float* const d = below + left;
          const float* const e = below + right;
          const double* const part = tile.columns->part.data() + run.begin;
          const double* const weight = tile.columns->weight.data() + run.begin;
          double* const base = first.data() + tile.columns->first + run.begin;
          double* const sum = sums.data() + tile.columns->first + run.begin;
          const TileRow row_of_tile{a, b, d, e, part, tile.part};
          if (run.opens) {
            open_run(row_of_tile, pixels, base);
          } else {
            add_to_run(row_of_tile, pixels, weight, tile.weight, base, sum);
          }
        }
      }
      float* const voxels = to.values.data() + to.index(z, row, 0);
      for (const RowPlan::Stretch& stretch : plan.stretches) {
        switch (stretch.covered) {
          case RowPlan::Covered::by_none: std::fill(voxels + stretch.begin, voxels + stretch.end, 0.0f); break;
          case RowPlan::Covered::by_one:
            for (std::size_t c = stretch.begin; c < stretch.end; ++c) voxels[c] = static_cast<float>(first[c] + 0.0);
            break;
          case RowPlan::Covered::by_several:
            for (std::size_t c = stretch.begin; c < stretch.end; ++c) {
              voxels[c] = static_cast<float>(first[c] + sums[c] / plan.weights[c]);
            }
            break;
        }
      }
    }
  };
  for_each_index(pool, rows_, blend_row);
}

std::uint64_t TileBlend::uncovered_pixels() const {
  std::uint64_t uncovered = 0;
  for (std::size_t row = 0; row < rows_; ++row) {
    for (const RowPlan::Stretch& stretch : plan_row(row).stretches) {
      if (stretch.covered == RowPlan::Covered::by_none) uncovered += stretch.end - stretch.begin;
    }
  }
  return uncovered;
}

Result<BlendedSlice> blend_tiles(const HostVolume& mosaic, const TileGrid& grid,
                                 const std::vector<std::array<double, 2>>& places_px, Blending blending,
                                 ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<BlendedSlice> {
    const TileBlend plan = TileBlend::plan(grid, places_px, blending);
    CGL_TRY(check_host_memory("stitching", sizeof(float) * grid.tile[0] * plan.rows() * plan.columns()));
    BlendedSlice slice;
    slice.volume = HostVolume(grid.tile[0], plan.rows(), plan.columns());
    plan.blend(mosaic, slice.volume, pool);
    slice.uncovered_pixels = plan.uncovered_pixels();
    return slice;
  });
}

}  // namespace cingulum::oct
