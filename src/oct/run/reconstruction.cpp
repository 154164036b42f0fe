#include "oct/run/reconstruction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/first_failure.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "formats/sidecar.hpp"
#include "oct/fits/basic_fit.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/fits/tile_depths.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "oct/run/tile_glance.hpp"
#include "oct/tiles/galvo_band.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Nine tenths of the surface lie above the plane at which a slice begins.
constexpr double surface_share = 0.9;

Json corrected_json(const CorrectedSlice& corrected) {
  Json decisions = Json::array();
  for (const RunDecision& one : corrected.decisions) decisions.push_back({one.subject, one.choice, one.reason});
  return {{"decisions", std::move(decisions)},
          {"profile", corrected.profile},
          {"noise_floor", corrected.noise_floor},
          {"mean_attenuation", corrected.mean_attenuation}};
}

CorrectedSlice corrected_of(const Json& json) {
  CorrectedSlice corrected;
  for (const Json& one : json.at("decisions")) corrected.decisions.push_back({one.at(0), one.at(1), one.at(2)});
  json.at("profile").get_to(corrected.profile);
  json.at("noise_floor").get_to(corrected.noise_floor);
  json.at("mean_attenuation").get_to(corrected.mean_attenuation);
  return corrected;
}

void subtract(HostImage& from, const HostImage& what) {
  for (std::size_t i = 0; i < from.values.size(); ++i) from.values[i] -= what.values[i];
}

class Run {
 public:
  Run(const TileSet& set, const fs::path& work, const ReconstructionOptions& options)
      : set_(set), work_(work), options_(options) {}
  // Of tiles that are read once.
  void keep_tiles(std::uint64_t bytes) { most_kept_bytes_ = bytes; }

  Result<Reconstruction> all() {
    CGL_TRY(look_at_tiles());
    CGL_TRY(place_all());
    CGL_TRY(fit_all());
    CGL_TRY(choose_planes());
    say_decisions();
    CGL_TRY(make_slices());
    CGL_TRY(register_all());
    CGL_TRY(plan_stack());
    return std::move(result_);
  }

 private:
  [[nodiscard]] Status check() const { return options_.run.cancel.check(); }

  // Whether there is room for a tile until its slice is made.
  [[nodiscard]] bool keeps(const HostVolume& tile) {
    const std::uint64_t bytes = sizeof(float) * tile.values.size();
    if (kept_bytes_.fetch_add(bytes) + bytes <= most_kept_bytes_) return true;
    kept_bytes_ -= bytes;
    return false;
  }

  // A tile as it enters a mosaic.
  [[nodiscard]] Result<HostVolume> tile_of(const TileRecord& record, std::uint64_t& replaced) const {
    CGL_TRY_ASSIGN(HostVolume tile, read_tile(set_, record, replaced, options_.run.cancel));
    if (set_.extra_lines == 0) return tile;
    return without_band(tile, set_.extra_lines, options_.last_line);
  }

  // Calls body(number in the grid, record) for the tiles of a slice, by the threads of the pool; the first failure in
  // the order of the grid is the answer.
  template <class Body>
  [[nodiscard]] Status for_each_tile(const TileGrid& grid, const Body& body) const {
    std::vector<const TileRecord*> records(grid.count(), nullptr);
    std::size_t first_row = 0, first_column = 0;
    bool any = false;
    for (const TileRecord& record : set_.tiles) {
      if (record.slice != grid.slice) continue;
      first_row = any ? std::min(first_row, record.row) : record.row;
      first_column = any ? std::min(first_column, record.column) : record.column;
      any = true;
    }
    for (const TileRecord& record : set_.tiles) {
      if (record.slice != grid.slice) continue;
      records[(record.row - first_row) * grid.columns + record.column - first_column] = &record;
    }
    FirstFailure failure;
    for_each_index(options_.pool, records.size(), [&](std::size_t t) {
      if (records[t] != nullptr && !grid.tiles[t].missing) failure.note(t, body(t, *records[t]));
    });
    return failure.take();
  }

  [[nodiscard]] Status look_at_tiles() {
    Progress progress("looking at tiles", set_.tiles.size(), "tiles", options_.run.progress);
    for (const std::size_t id : set_.slices()) {
      SliceReport slice;
      CGL_TRY_ASSIGN(slice.grid, grid_of_slice(set_, id));
      std::vector<TileGlance> glances(slice.grid.count());
      std::vector<HostVolume> kept(slice.grid.count());
      std::mutex counting;
      const auto look = [&](std::size_t t, const TileRecord& record) -> Status {
        CGL_TRY(check());
        std::uint64_t replaced = 0;
        CGL_TRY_ASSIGN(HostVolume tile, tile_of(record, replaced));
        HostImage interface;
        if (options_.crop || options_.curvature) {
          CGL_TRY_ASSIGN(interface, options_.kernels.find_interface(tile));
        }
        glances[t] = glance_at(tile, std::move(interface));
        if (keeps(tile)) kept[t] = std::move(tile);
        progress.advance();
        const std::lock_guard lock(counting);
        slice.replaced_values += replaced;
        return {};
      };
      CGL_TRY(for_each_tile(slice.grid, look));
      result_.slices.push_back(std::move(slice));
      glances_.push_back(std::move(glances));
      kept_.push_back(std::move(kept));
    }
    progress.finish();
    return {};
  }

  [[nodiscard]] Status place_all() {
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      CGL_TRY(check());
      SliceReport& slice = result_.slices[s];
      std::vector<std::vector<HostImage>> layers;
      for (TileGlance& tile : glances_[s]) {
        layers.resize(std::max(layers.size(), tile.layers.size()));
      }
      for (std::size_t k = 0; k < layers.size(); ++k) {
        for (TileGlance& tile : glances_[s]) {
          layers[k].push_back(tile.layers.empty() ? HostImage() : std::move(tile.layers[k]));
        }
      }
      PlacementOptions placing = options_.placement;
      placing.pool = options_.pool;
      CGL_TRY_ASSIGN(slice.placement,
                     add_context(place_tiles(slice.grid, layers, placing), "slice {}", slice.grid.slice));
    }
    return {};
  }

  // Pairs of tiles that see the same, by their numbers in the slice.
  [[nodiscard]] static std::vector<OverlapPair> pairs_of(const SliceReport& slice) {
    std::vector<OverlapPair> pairs;
    for (const TileLink& link : slice.placement.links) {
      if (link.state == LinkState::used) pairs.push_back({link.from, link.to, link.step_px});
    }
    return pairs;
  }

  // Over all slices at once: what they have in common is the instrument.
  [[nodiscard]] Status fit_all() {
    if (options_.curvature) {
      std::vector<HostImage> interfaces;
      for (const auto& tiles : glances_) {
        for (const TileGlance& tile : tiles) {
          if (!tile.interface.values.empty()) interfaces.push_back(tile.interface);
        }
      }
      if (options_.basic) {
        CGL_TRY_ASSIGN(result_.curvature, fit_curvature_basic(interfaces, set_.shape[0]));
      } else {
        CGL_TRY_ASSIGN(result_.curvature, fit_curvature(interfaces));
        // A slope that all tiles share is that of the sample's surface; where it is not, the depths of tiles take it
        // up.
        subtract(result_.curvature, fit_polynomial(result_.curvature, 1));
      }
    }
    std::vector<HostImage> projections;
    std::vector<OverlapPair> pairs;
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      SliceReport& slice = result_.slices[s];
      const std::vector<OverlapPair> own = pairs_of(slice);
      if (options_.curvature) {
        std::vector<HostImage> interfaces;
        for (TileGlance& tile : glances_[s]) {
          if (!tile.interface.values.empty()) subtract(tile.interface, result_.curvature);
          interfaces.push_back(tile.interface);
        }
        slice.depths = options_.basic ? std::vector<double>(interfaces.size(), 0.0) : fit_tile_depths(interfaces, own);
      }
      for (OverlapPair pair : own) {
        pair.first += projections.size();
        pair.second += projections.size();
        pairs.push_back(pair);
      }
      for (TileGlance& tile : glances_[s]) projections.push_back(std::move(tile.projection));
    }
    if (options_.flat_field && options_.basic) {
      std::erase_if(projections, [](const HostImage& image) { return image.values.empty(); });
      CGL_TRY_ASSIGN(result_.light, fit_basic(projections));
    } else if (options_.flat_field) {
      CGL_TRY_ASSIGN(FlatFieldFit fit, fit_flat_field(projections, pairs));
      result_.light = std::move(fit.field);
    }
    return {};
  }

  // How far an A-line of a tile comes up at most.
  [[nodiscard]] double largest_roll(const SliceReport& slice) const {
    if (!options_.curvature) return 0;
    return *std::max_element(result_.curvature.values.begin(), result_.curvature.values.end()) +
           *std::max_element(slice.depths.begin(), slice.depths.end());
  }

  // The planes of tiles that become a slice: from its surface on, as many in each slice as all A-lines of all have.
  [[nodiscard]] Status choose_planes() {
    result_.tile = set_.shape;
    result_.voxel_um = set_.voxel_um;
    std::size_t planes = set_.shape[0];
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      SliceReport& slice = result_.slices[s];
      if (options_.crop) {
        std::vector<double> surface;
        for (std::size_t t = 0; t < glances_[s].size(); ++t) {
          const double depth = slice.depths.empty() ? 0 : slice.depths[t];
          for (const double plane : glances_[s][t].interface.values) surface.push_back(plane - depth);
        }
        slice.surface_plane = percentile(std::move(surface), surface_share);
        slice.first_plane = static_cast<std::size_t>(std::max(0L, std::lround(slice.surface_plane)));
      }
      const auto lost = static_cast<std::size_t>(std::max(0.0, std::ceil(largest_roll(slice))));
      const std::size_t least = options_.registration.moving_plane + options_.registration.planes;
      if (slice.first_plane + lost + least > set_.shape[0]) {
        return fail(ErrorKind::corrupt,
                    "slice {}: the surface is at plane {} and A-lines are moved by up to {}; of {} planes less than {} "
                    "are left",
                    slice.grid.slice, slice.first_plane, lost, set_.shape[0], least);
      }
      planes = std::min(planes, set_.shape[0] - slice.first_plane - lost);
    }
    if (options_.crop_depth_um) {
      const double wanted = std::max(1.0, std::round(*options_.crop_depth_um / set_.voxel_um[0]));
      planes = std::min(planes, static_cast<std::size_t>(wanted));
    }
    cropped_planes_ = planes;
    result_.tile[0] = planes;
    if (!options_.resolution_um) return {};
    for (std::size_t d = 0; d < 3; ++d) {
      const double size = static_cast<double>(result_.tile[d]);
      const auto made =
          static_cast<std::size_t>(std::max(1.0, std::nearbyint(size * set_.voxel_um[d] / *options_.resolution_um)));
      // What the voxels truly are: sizes are whole, so they are not exactly what was asked for.
      result_.voxel_um[d] = set_.voxel_um[d] * size / static_cast<double>(made);
      result_.tile[d] = made;
    }
    return {};
  }

  void say_decisions() {
    const auto decide = [&](const char* subject, const char* choice, std::string reason) {
      result_.decisions.push_back({subject, choice, std::move(reason)});
    };
    const auto range = [](const std::vector<double>& values) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      return fmt::format("from {:.3f} to {:.3f}", *low, *high);
    };
    if (!options_.curvature) {
      decide("focal curvature and depths of tiles", "left as they are", "asked for");
    } else {
      std::vector<double> depths;
      for (const SliceReport& slice : result_.slices)
        depths.insert(depths.end(), slice.depths.begin(), slice.depths.end());
      decide("focal curvature", "rolled back",
             fmt::format("{} planes, by {} tiles", range(result_.curvature.values), set_.tiles.size()));
      decide("depths of tiles", options_.basic ? "taken for one" : "rolled back",
             options_.basic ? "asked for" : fmt::format("{} planes, where neighbours overlap", range(depths)));
    }
    if (result_.light.values.empty()) {
      decide("light over a tile", "left as it is", "asked for");
    } else {
      decide("light over a tile", "divided out", range(result_.light.values));
    }
    std::vector<double> surfaces;
    for (const SliceReport& slice : result_.slices) surfaces.push_back(slice.surface_plane);
    decide(
        "planes of a slice", options_.crop ? "cropped at the surface" : "kept above the surface",
        fmt::format("surface at planes {}; {} planes of {} are left", range(surfaces), cropped_planes_, set_.shape[0]));
  }

  // Everything that decides the voxels of a slice.
  [[nodiscard]] std::string key_of(std::size_t s) const {
    const SliceReport& slice = result_.slices[s];
    Json voxels = Json::array();
    for (const TileGlance& tile : glances_[s]) voxels.push_back(tile.voxels);
    const auto numbers = [](const std::vector<double>& values) { return hash_hex(std::as_bytes(std::span(values))); };
    const DepthCorrections& corrections = options_.corrections;
    Json json = {{"version", run_facts(0, 0)["version"]},
                 {"voxels", std::move(voxels)},
                 {"voxel_um", result_.voxel_um},
                 {"places_px", slice.placement.places_px},
                 {"blending", static_cast<int>(options_.blending)},
                 {"light", numbers(result_.light.values)},
                 {"curvature", numbers(result_.curvature.values)},
                 {"depths", slice.depths},
                 {"planes", {slice.first_plane, cropped_planes_}},
                 {"tile", result_.tile},
                 {"profile", corrections.axial_profile},
                 {"normalise", corrections.normalise}};
    if (corrections.attenuation) {
      const AttenuationOptions& attenuation = *corrections.attenuation;
      json["attenuation"] = {static_cast<int>(attenuation.method),
                             attenuation.strength,
                             attenuation.least_transmission,
                             attenuation.end_planes,
                             attenuation.least_db,
                             attenuation.window,
                             attenuation.block_px,
                             attenuation.noise_floor ? Json(*attenuation.noise_floor) : Json()};
    }
    return hash_hex(json.dump());
  }

  [[nodiscard]] fs::path path_of(std::size_t s) const {
    return work_ / fmt::format("slice_z{:02}.ome.zarr", result_.slices[s].grid.slice);
  }

  [[nodiscard]] VolumeReadOptions reading() const {
    VolumeReadOptions reading;
    reading.pool = options_.pool;
    reading.cancel = options_.run.cancel;
    return reading;
  }

  [[nodiscard]] Status make_slices() {
    std::error_code error;
    fs::create_directories(work_, error);
    if (error) return fail_file(work_.native(), ErrorKind::io, "making {}: {}", work_.native(), error.message());
    Progress progress("stitching", result_.slices.size(), "slices", options_.run.progress);
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      CGL_TRY(check());
      if (!take_slice(s)) CGL_TRY(add_context(make_slice(s), "slice {}", result_.slices[s].grid.slice));
      kept_[s].clear();
      result_.files.push_back(path_of(s));
      progress.advance();
    }
    progress.finish();
    return {};
  }

  // A slice that an earlier run finished.
  [[nodiscard]] bool take_slice(std::size_t s) {
    SliceReport& slice = result_.slices[s];
    const auto there = describe_volume(path_of(s), reading());
    if (!there || !there->attributes.is_object() || there->attributes.value("key", Json()) != key_of(s)) return false;
    try {
      there->attributes.at("uncovered_pixels").get_to(slice.uncovered_pixels);
      slice.corrected = corrected_of(there->attributes.at("corrected"));
    } catch (const Json::exception&) {
      return false;
    }
    slice.found = true;
    return true;
  }

  // Rolled, cropped, resampled: the voxels of a tile as they are blended.
  [[nodiscard]] Result<HostVolume> prepare(const TileRecord& record, std::size_t t, const SliceReport& slice,
                                           HostVolume& kept) const {
    HostVolume tile = std::move(kept);
    std::uint64_t replaced = 0;
    if (tile.values.empty()) {
      CGL_TRY_ASSIGN(tile, tile_of(record, replaced));
    }
    if (options_.curvature) {
      HostImage by = result_.curvature;
      for (double& planes : by.values) planes += slice.depths[t];
      CGL_TRY_ASSIGN(tile, options_.kernels.roll(tile, by));
    }
    if (slice.first_plane > 0 || cropped_planes_ < tile.planes) {
      const auto first = tile.values.begin() + static_cast<std::ptrdiff_t>(slice.first_plane * tile.plane_size());
      HostVolume cropped(cropped_planes_, tile.rows, tile.columns);
      std::copy_n(first, cropped.values.size(), cropped.values.begin());
      tile = std::move(cropped);
    }
    if (!result_.light.values.empty()) divide_by_field(tile, slice.grid, result_.light);
    if (std::array{tile.planes, tile.rows, tile.columns} == result_.tile) return tile;
    return options_.kernels.resize(tile, result_.tile);
  }

  // Voxels where there is no tissue, in the units of the slice.
  [[nodiscard]] std::optional<double> floor_of(std::size_t s) const {
    double sum = 0, count = 0;
    for (const TileGlance& tile : glances_[s]) {
      sum += tile.above_sum;
      count += static_cast<double>(tile.above_count);
    }
    constexpr double least_voxels = 1000;
    if (count < least_voxels) return std::nullopt;
    return sum / count;
  }

  [[nodiscard]] Status make_slice(std::size_t s) {
    SliceReport& slice = result_.slices[s];
    TileGrid grid = slice.grid;
    std::vector<std::array<double, 2>> places = slice.placement.places_px;
    grid.tile = result_.tile;
    for (std::size_t d = 0; d < 2; ++d) {
      const double factor = static_cast<double>(result_.tile[d + 1]) / static_cast<double>(set_.shape[d + 1]);
      for (auto& place : places) place[d] *= factor;
    }
    const auto [planes, rows, columns] = grid.tile;
    HostVolume volume;
    {
      HostVolume mosaic(planes, grid.rows * rows, grid.columns * columns);
      const auto take = [&](std::size_t t, const TileRecord& record) -> Status {
        CGL_TRY(check());
        CGL_TRY_ASSIGN(const HostVolume tile, prepare(record, t, slice, kept_[s][t]));
        const std::size_t top = t / grid.columns * rows, left = t % grid.columns * columns;
        for (std::size_t z = 0; z < planes; ++z) {
          for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(&tile.values[tile.index(z, r, 0)], columns, &mosaic.values[mosaic.index(z, top + r, left)]);
          }
        }
        return {};
      };
      CGL_TRY(for_each_tile(slice.grid, take));
      CGL_TRY_ASSIGN(BlendedSlice blended, blend_tiles(mosaic, grid, places, options_.blending, options_.pool));
      slice.uncovered_pixels = blended.uncovered_pixels;
      volume = std::move(blended.volume);
    }
    CGL_TRY_ASSIGN(slice.corrected, correct_depth(volume, floor_of(s), options_.corrections, options_.pool));
    const Json attributes = {{"key", key_of(s)},
                             {"uncovered_pixels", slice.uncovered_pixels},
                             {"corrected", corrected_json(slice.corrected)},
                             {"slice",
                              {{"number", grid.slice},
                               {"origin_mm", grid.origin_mm},
                               {"stage_z_mm", first_plane_mm(s)},
                               {"focus_plane", grid.focus_plane}}}};
    // What is there is of another run, or half removed.
    std::error_code error;
    fs::remove_all(path_of(s), error);
    if (error)
      return fail_file(path_of(s).native(), ErrorKind::io, "removing {}: {}", path_of(s).native(), error.message());
    WriteOptions write;
    write.pool = options_.pool;
    VolumeWriteOptions writing;
    writing.pool = options_.pool;
    writing.cancel = options_.run.cancel;
    return write_volume_file(path_of(s), volume, result_.voxel_um, attributes, write, writing);
  }

  [[nodiscard]] Result<HostVolume> slice_volume(std::size_t s) const {
    CGL_TRY_ASSIGN(VolumeFile file, read_volume(path_of(s), reading()));
    return std::move(file.volume);
  }

  // Of the first plane of a cropped slice, as the stage counts.
  [[nodiscard]] double first_plane_mm(std::size_t s) const {
    const SliceReport& slice = result_.slices[s];
    const double stage_mm = options_.slicing_interval_mm
                                ? *options_.slicing_interval_mm * static_cast<double>(slice.grid.slice)
                                : slice.grid.stage_z_mm;
    return stage_mm + static_cast<double>(slice.first_plane) * set_.voxel_um[0] / 1000.0;
  }

  // Planes between the first ones of a slice and of the one before it.
  [[nodiscard]] double interval_planes(std::size_t moving) const {
    return (first_plane_mm(moving) - first_plane_mm(moving - 1)) * 1000.0 / result_.voxel_um[0];
  }

  [[nodiscard]] Status register_all() {
    if (result_.slices.size() < 2) return {};
    Progress progress("registering", result_.slices.size() - 1, "pairs", options_.run.progress);
    CGL_TRY_ASSIGN(HostVolume fixed, slice_volume(0));
    for (std::size_t s = 1; s < result_.slices.size(); ++s) {
      CGL_TRY(check());
      const TileGrid& a = result_.slices[s - 1].grid;
      const TileGrid& b = result_.slices[s].grid;
      CGL_TRY_ASSIGN(HostVolume moving, slice_volume(s));
      RegistrationOptions registering = options_.registration;
      registering.expected_planes = interval_planes(s);
      registering.search_planes =
          static_cast<std::size_t>(std::lround(options_.search_range_mm * 1000.0 / result_.voxel_um[0]));
      for (std::size_t d = 0; d < 2; ++d) {
        registering.start_px[d] = (b.origin_mm[d] - a.origin_mm[d]) * 1000.0 / result_.voxel_um[d + 1];
      }
      auto found = register_slices(fixed, moving, registering);
      if (found) {
        result_.registrations.emplace_back(*found);
      } else if (found.error().kind() == ErrorKind::interrupted || found.error().kind() == ErrorKind::out_of_memory) {
        return tl::make_unexpected(found.error());
      } else {
        log_warning("slices {} and {} are not registered: {}; the motors place them", a.slice, b.slice, found.error());
        result_.registrations.emplace_back();
      }
      fixed = std::move(moving);
      progress.advance();
    }
    progress.finish();
    return {};
  }

  [[nodiscard]] Status plan_stack() {
    std::vector<SliceFacts> facts;
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      CGL_TRY_ASSIGN(const VolumeDescription slice, describe_volume(path_of(s), reading()));
      facts.push_back({result_.slices[s].grid.slice, slice.shape[0], slice.shape[1], slice.shape[2],
                       s > 0 ? interval_planes(s) : 0});
    }
    std::vector<SliceShift> shifts = motor_shifts(set_);
    result_.spikes = replace_spikes(shifts);
    if (result_.spikes > 0) {
      result_.decisions.push_back({"shifts of the stage", fmt::format("{} replaced", result_.spikes),
                                   "above 0.5 mm and taken back at the next slice"});
    }
    CGL_TRY_ASSIGN(result_.plan, decide_stack(facts, shifts, result_.registrations, result_.voxel_um, options_.stack));
    return {};
  }

  const TileSet& set_;
  const fs::path& work_;
  const ReconstructionOptions& options_;
  std::size_t cropped_planes_ = 0;
  Reconstruction result_;
  std::vector<std::vector<TileGlance>> glances_;  // by slice, as in its grid
  std::vector<std::vector<HostVolume>> kept_;     // the same; empty: to be read again
  std::uint64_t most_kept_bytes_ = 0;
  std::atomic<std::uint64_t> kept_bytes_ = 0;
};

}  // namespace

Result<RunNeeds> run_needs(const TileSet& set, const ReconstructionOptions& options) {
  RunNeeds needs;
  const auto [planes, rows, columns] = set.shape;
  needs.tile_bytes = sizeof(float) * planes * rows * (columns + set.extra_lines);
  needs.tiles_in_flight = static_cast<std::size_t>(options.pool->threads());
  double shrunk = 1;  // voxels after --resolution of one before
  for (std::size_t d = 0; d < 3 && options.resolution_um; ++d) shrunk *= set.voxel_um[d] / *options.resolution_um;
  std::uint64_t glances = 0;
  for (const std::size_t id : set.slices()) {
    CGL_TRY_ASSIGN(const TileGrid grid, grid_of_slice(set, id));
    needs.tiles_of_slice = std::max(needs.tiles_of_slice, grid.count());
    glances += grid.count() * (2 + layers_of(planes)) * sizeof(double) * rows * columns;
    needs.work_bytes += grid.count() * sizeof(float) * planes * rows * columns;
  }
  needs.work_bytes = static_cast<std::uint64_t>(static_cast<double>(needs.work_bytes) * shrunk);
  needs.volume_bytes = needs.work_bytes;
  // A mosaic, the slice that is made of it, and a copy while attenuation is measured; of a tile in flight the file's
  // order, the voxels, the rolled and the cropped ones.
  const auto slice = static_cast<std::uint64_t>(static_cast<double>(needs.tile_bytes * needs.tiles_of_slice) * shrunk);
  // Tiles that are kept lie where the slice will be that is made of them.
  needs.kept_bytes = slice + options.kept_tile_bytes;
  needs.memory_bytes = 3 * slice + 4 * needs.tiles_in_flight * needs.tile_bytes + glances + options.kept_tile_bytes;
  // A tile, its logarithm in a box, what it becomes, and a map.
  needs.device_bytes = 4 * needs.tile_bytes;
  return needs;
}

Result<Reconstruction> reconstruct(const TileSet& set, const fs::path& work, const ReconstructionOptions& options) {
  return catch_out_of_memory([&]() -> Result<Reconstruction> {
    CGL_TRY_ASSIGN(const RunNeeds needs, run_needs(set, options));
    Run run(set, work, options);
    run.keep_tiles(needs.kept_bytes);
    return run.all();
  });
}

}  // namespace cingulum::oct
