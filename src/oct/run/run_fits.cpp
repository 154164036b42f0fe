#include "oct/run/run_fits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "oct/fits/basic_fit.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/fits/tile_depths.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// Nine tenths of the surface lie above the plane at which a slice begins.
constexpr double surface_share = 0.9;

void subtract(HostImage& from, const HostImage& what) {
  for (std::size_t i = 0; i < from.values.size(); ++i) from.values[i] -= what.values[i];
}

// Pairs of tiles that see the same, by their numbers in the slice.
std::vector<OverlapPair> pairs_of(const SliceReport& slice) {
  std::vector<OverlapPair> pairs;
  for (const TileLink& link : slice.placement.links) {
    if (link.state == LinkState::used) pairs.push_back({link.from, link.to, link.step_px});
  }
  return pairs;
}

// The curvature that all tiles share, by their surfaces.
Status fit_common_curvature(RunState& run) {
  std::vector<HostImage> interfaces;
  std::vector<HostImage*> lent_by;
  for (auto& tiles : run.summaries) {
    for (TileSummary& tile : tiles) {
      if (tile.interface.values.empty()) continue;
      lent_by.push_back(&tile.interface);
      interfaces.push_back(std::move(tile.interface));
    }
  }
  if (run.options.basic) {
    CGL_TRY_ASSIGN(run.result.curvature, fit_curvature_basic(interfaces, run.set.shape[0]));
  } else {
    CGL_TRY_ASSIGN(run.result.curvature, fit_curvature(interfaces, run.options.pool));
    // A slope that all tiles share is that of the sample's surface; where it is not, the depths of tiles take it up.
    subtract(run.result.curvature, fit_polynomial(run.result.curvature, 1));
  }
  for (std::size_t i = 0; i < interfaces.size(); ++i) *lent_by[i] = std::move(interfaces[i]);
  return {};
}

// Depths of the tiles of a slice, whose surfaces lose the curvature.
void fit_depths(RunState& run, std::size_t s) {
  SliceReport& slice = run.result.slices[s];
  std::vector<HostImage> interfaces;
  for (TileSummary& tile : run.summaries[s]) {
    if (!tile.interface.values.empty()) subtract(tile.interface, run.result.curvature);
    interfaces.push_back(std::move(tile.interface));
  }
  slice.depths = run.options.basic ? std::vector<double>(interfaces.size(), 0.0)
                                   : fit_tile_depths(interfaces, pairs_of(slice), run.options.pool);
  for (std::size_t t = 0; t < interfaces.size(); ++t) run.summaries[s][t].interface = std::move(interfaces[t]);
}

Status fit_light(RunState& run) {
  std::vector<HostImage> projections;
  std::vector<OverlapPair> pairs;
  for (std::size_t s = 0; s < run.result.slices.size(); ++s) {
    for (OverlapPair pair : pairs_of(run.result.slices[s])) {
      pair.first += projections.size();
      pair.second += projections.size();
      pairs.push_back(pair);
    }
    for (TileSummary& tile : run.summaries[s]) projections.push_back(std::move(tile.projection));
  }
  if (run.options.flat_field && run.options.basic) {
    std::erase_if(projections, [](const HostImage& image) { return image.values.empty(); });
    CGL_TRY_ASSIGN(run.result.light, fit_basic(projections));
  } else if (run.options.flat_field) {
    CGL_TRY_ASSIGN(FlatFieldFit fit, fit_flat_field(projections, pairs, run.options.pool));
    run.result.light = std::move(fit.field);
  }
  return {};
}

// How far an A-line of a tile comes up at most.
double largest_roll(const RunState& run, const SliceReport& slice) {
  if (!run.options.curvature) return 0;
  return *std::max_element(run.result.curvature.values.begin(), run.result.curvature.values.end()) +
         *std::max_element(slice.depths.begin(), slice.depths.end());
}

// The planes at which nine tenths of the surface of each slice lie no deeper.
void find_surface_planes(RunState& run) {
  for_each_index(run.options.pool, run.result.slices.size(), [&](std::size_t s) {
    SliceReport& slice = run.result.slices[s];
    std::vector<double> surface;
    for (std::size_t t = 0; t < run.summaries[s].size(); ++t) {
      const double depth = slice.depths.empty() ? 0 : slice.depths[t];
      for (const double plane : run.summaries[s][t].interface.values) surface.push_back(plane - depth);
    }
    slice.surface_plane = percentile(std::move(surface), surface_share);
  });
}

// What the voxels truly are after --resolution: sizes are whole, so they are not exactly what was asked for.
void resample_tile(RunState& run, double resolution_um) {
  for (std::size_t d = 0; d < 3; ++d) {
    const double size = static_cast<double>(run.result.tile[d]);
    const auto made =
        static_cast<std::size_t>(std::max(1.0, std::nearbyint(size * run.set.voxel_um[d] / resolution_um)));
    run.result.voxel_um[d] = run.set.voxel_um[d] * size / static_cast<double>(made);
    run.result.tile[d] = made;
  }
}

}  // namespace

Status fit_instrument(RunState& run) {
  if (run.options.curvature) {
    CGL_TRY(fit_common_curvature(run));
    for (std::size_t s = 0; s < run.result.slices.size(); ++s) fit_depths(run, s);
  }
  return fit_light(run);
}

Status choose_planes(RunState& run) {
  run.result.tile = run.set.shape;
  run.result.voxel_um = run.set.voxel_um;
  std::size_t planes = run.set.shape[0];
  if (run.options.crop) find_surface_planes(run);
  for (SliceReport& slice : run.result.slices) {
    if (run.options.crop) {
      slice.first_plane = static_cast<std::size_t>(std::max(0L, std::lround(slice.surface_plane)));
    }
    const auto lost = static_cast<std::size_t>(std::max(0.0, std::ceil(largest_roll(run, slice))));
    const std::size_t least = run.options.registration.moving_plane + run.options.registration.planes;
    if (slice.first_plane + lost + least > run.set.shape[0]) {
      return fail(ErrorKind::corrupt,
                  "slice {}: the surface is at plane {} and A-lines are moved by up to {}; of {} planes less than {} "
                  "are left",
                  slice.grid.slice, slice.first_plane, lost, run.set.shape[0], least);
    }
    planes = std::min(planes, run.set.shape[0] - slice.first_plane - lost);
  }
  if (run.options.crop_depth_um) {
    const double wanted = std::max(1.0, std::round(*run.options.crop_depth_um / run.set.voxel_um[0]));
    planes = std::min(planes, static_cast<std::size_t>(wanted));
  }
  run.cropped_planes = planes;
  run.result.tile[0] = planes;
  if (run.options.resolution_um) resample_tile(run, *run.options.resolution_um);
  return {};
}

void note_fit_decisions(RunState& run) {
  const auto decide = [&](const char* subject, const char* choice, std::string reason) {
    run.result.decisions.push_back({subject, choice, std::move(reason)});
  };
  const auto range = [](const std::vector<double>& values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return fmt::format("from {:.3f} to {:.3f}", *low, *high);
  };
  if (!run.options.curvature) {
    decide("focal curvature and depths of tiles", "left as they are", "asked for");
  } else {
    std::vector<double> depths;
    for (const SliceReport& slice : run.result.slices)
      depths.insert(depths.end(), slice.depths.begin(), slice.depths.end());
    decide("focal curvature", "rolled back",
           fmt::format("{} planes, by {} tiles", range(run.result.curvature.values), run.set.tiles.size()));
    decide("depths of tiles", run.options.basic ? "taken for one" : "rolled back",
           run.options.basic ? "asked for" : fmt::format("{} planes, where neighbours overlap", range(depths)));
  }
  if (run.result.light.values.empty()) {
    decide("light over a tile", "left as it is", "asked for");
  } else {
    decide("light over a tile", "divided out", range(run.result.light.values));
  }
  std::vector<double> surfaces;
  for (const SliceReport& slice : run.result.slices) surfaces.push_back(slice.surface_plane);
  decide("planes of a slice", run.options.crop ? "cropped at the surface" : "kept above the surface",
         fmt::format("surface at planes {}; {} planes of {} are left", range(surfaces), run.cropped_planes,
                     run.set.shape[0]));
}

}  // namespace cingulum::oct
