#include "oct/run/reconstruction.hpp"

#include <algorithm>
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
#include "oct/fits/flat_field.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/tiles/galvo_band.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What is small of a tile. Empty: it is missing.
struct TileGlance {
  HostImage projection;
  HostImage logarithm;
  HostImage interface;
  std::string voxels;  // their hash
};

struct SliceGlance {
  std::vector<TileGlance> tiles;  // as in the grid
};

class Run {
 public:
  Run(const TileSet& set, const fs::path& work, const ReconstructionOptions& options)
      : set_(set), work_(work), options_(options) {}

  Result<Reconstruction> all() {
    CGL_TRY(look_at_tiles());
    CGL_TRY(place_all());
    CGL_TRY(fit_all());
    CGL_TRY(make_slices());
    result_.voxel_um = set_.voxel_um;
    CGL_TRY(register_all());
    CGL_TRY(stack());
    return std::move(result_);
  }

 private:
  [[nodiscard]] Status check() const { return options_.run.cancel.check(); }

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
    const std::vector<std::size_t> ids = set_.slices();
    Progress progress("looking at tiles", set_.tiles.size(), "tiles", options_.run.progress);
    for (const std::size_t id : ids) {
      SliceReport slice;
      CGL_TRY_ASSIGN(slice.grid, grid_of_slice(set_, id));
      SliceGlance glance;
      glance.tiles.resize(slice.grid.count());
      std::mutex counting;
      const auto look = [&](std::size_t t, const TileRecord& record) -> Status {
        CGL_TRY(check());
        std::uint64_t replaced = 0;
        CGL_TRY_ASSIGN(const HostVolume tile, tile_of(record, replaced));
        TileGlance& seen = glance.tiles[t];
        seen.voxels = hash_hex(std::as_bytes(std::span(tile.values)));
        seen.projection = mean_projection(tile);
        seen.logarithm = log_projection(tile);
        if (options_.find_interface) {
          CGL_TRY_ASSIGN(seen.interface, options_.find_interface(tile));
        }
        progress.advance();
        const std::lock_guard lock(counting);
        slice.replaced_values += replaced;
        return {};
      };
      CGL_TRY(for_each_tile(slice.grid, look));
      result_.slices.push_back(std::move(slice));
      glances_.push_back(std::move(glance));
    }
    progress.finish();
    return {};
  }

  [[nodiscard]] Status place_all() {
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      CGL_TRY(check());
      SliceReport& slice = result_.slices[s];
      std::vector<HostImage> logarithms;
      for (TileGlance& tile : glances_[s].tiles) logarithms.push_back(std::move(tile.logarithm));
      PlacementOptions placing = options_.placement;
      placing.pool = options_.pool;
      CGL_TRY_ASSIGN(slice.placement,
                     add_context(place_tiles(slice.grid, logarithms, placing), "slice {}", slice.grid.slice));
    }
    return {};
  }

  // Over all slices at once: what they have in common is the instrument.
  [[nodiscard]] Status fit_all() {
    std::vector<HostImage> projections, interfaces;
    std::vector<OverlapPair> pairs;
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      for (const TileLink& link : result_.slices[s].placement.links) {
        if (link.state != LinkState::used) continue;
        pairs.push_back({projections.size() + link.from, projections.size() + link.to, link.step_px});
      }
      for (TileGlance& tile : glances_[s].tiles) {
        projections.push_back(std::move(tile.projection));
        if (!tile.interface.values.empty()) interfaces.push_back(std::move(tile.interface));
      }
    }
    if (options_.flat_field) {
      CGL_TRY_ASSIGN(FlatFieldFit fit, fit_flat_field(projections, pairs));
      result_.light = std::move(fit.field);
    }
    if (options_.find_interface) {
      CGL_TRY_ASSIGN(result_.curvature, fit_curvature(interfaces));
    }
    return {};
  }

  // Everything that decides the voxels of a slice.
  [[nodiscard]] std::string key_of(std::size_t s) const {
    const SliceReport& slice = result_.slices[s];
    Json voxels = Json::array();
    for (const TileGlance& tile : glances_[s].tiles) voxels.push_back(tile.voxels);
    const auto numbers = [](const std::vector<double>& values) { return hash_hex(std::as_bytes(std::span(values))); };
    Json json = {{"version", run_facts(0, 0)["version"]},
                 {"voxels", std::move(voxels)},
                 {"voxel_um", set_.voxel_um},
                 {"places_px", slice.placement.places_px},
                 {"blending", static_cast<int>(options_.blending)},
                 {"light", numbers(result_.light.values)},
                 {"curvature", numbers(result_.curvature.values)},
                 {"profile", options_.axial_profile},
                 {"normalise", options_.normalise}};
    if (options_.attenuation) {
      const AttenuationOptions& attenuation = *options_.attenuation;
      json["attenuation"] = {static_cast<int>(attenuation.method),
                             attenuation.strength,
                             attenuation.least_transmission,
                             attenuation.end_planes,
                             attenuation.least_db,
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
      const std::string key = key_of(s);
      SliceReport& slice = result_.slices[s];
      const fs::path path = path_of(s);
      if (const auto there = describe_volume(path, reading());
          there && there->attributes.is_object() && there->attributes.value("key", Json()) == key) {
        slice.found = true;
        slice.uncovered_pixels = there->attributes.value("uncovered_pixels", std::uint64_t{0});
      } else {
        CGL_TRY(add_context(make_slice(slice, path, key), "slice {}", slice.grid.slice));
      }
      progress.advance();
    }
    progress.finish();
    return {};
  }

  [[nodiscard]] Status make_slice(SliceReport& slice, const fs::path& path, const std::string& key) {
    const TileGrid& grid = slice.grid;
    const auto [planes, rows, columns] = grid.tile;
    const std::uint64_t mosaic_bytes = sizeof(float) * grid.count() * planes * rows * columns;
    CGL_TRY(check_host_memory(fmt::format("stitching slice {}", grid.slice), 3 * mosaic_bytes));
    HostVolume volume;
    {
      HostVolume mosaic(planes, grid.rows * rows, grid.columns * columns);
      const auto take = [&](std::size_t t, const TileRecord& record) -> Status {
        CGL_TRY(check());
        std::uint64_t replaced = 0;
        CGL_TRY_ASSIGN(HostVolume tile, tile_of(record, replaced));
        if (options_.roll_lines) CGL_TRY(options_.roll_lines(tile, result_.curvature));
        const std::size_t top = t / grid.columns * rows, left = t % grid.columns * columns;
        for (std::size_t z = 0; z < planes; ++z) {
          for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(&tile.values[tile.index(z, r, 0)], columns, &mosaic.values[mosaic.index(z, top + r, left)]);
          }
        }
        return {};
      };
      CGL_TRY(for_each_tile(grid, take));
      if (options_.flat_field) divide_by_field(mosaic, grid, result_.light, options_.pool);
      CGL_TRY_ASSIGN(BlendedSlice blended,
                     blend_tiles(mosaic, grid, slice.placement.places_px, options_.blending, options_.pool));
      slice.uncovered_pixels = blended.uncovered_pixels;
      volume = std::move(blended.volume);
    }
    if (options_.axial_profile) {
      CGL_TRY_ASSIGN(const std::vector<double> profile, oct::axial_profile(volume, agarose_lines(volume)));
      divide_by_profile(volume, profile, options_.pool);
    }
    if (options_.attenuation) {
      AttenuationOptions attenuation = *options_.attenuation;
      attenuation.pool = options_.pool;
      CGL_TRY(compensate_attenuation(volume, attenuation));
    }
    if (options_.normalise) {
      NormaliseOptions normalising;
      normalising.pool = options_.pool;
      CGL_TRY(normalise_planes(volume, normalising));
    }
    const Json attributes = {{"key", key},
                             {"uncovered_pixels", slice.uncovered_pixels},
                             {"slice",
                              {{"number", grid.slice},
                               {"origin_mm", grid.origin_mm},
                               {"stage_z_mm", grid.stage_z_mm},
                               {"focus_plane", grid.focus_plane}}}};
    WriteOptions write;
    write.force = true;  // what is there is of another run, or half of this one
    VolumeWriteOptions writing;
    writing.pool = options_.pool;
    writing.cancel = options_.run.cancel;
    return write_volume_file(path, volume, set_.voxel_um, attributes, write, writing);
  }

  [[nodiscard]] Result<HostVolume> slice_volume(std::size_t s) const {
    CGL_TRY_ASSIGN(VolumeFile file, read_volume(path_of(s), reading()));
    return std::move(file.volume);
  }

  [[nodiscard]] double interval_planes(std::size_t moving) const {
    const TileGrid& a = result_.slices[moving - 1].grid;
    const TileGrid& b = result_.slices[moving].grid;
    const double mm = options_.slicing_interval_mm
                          ? *options_.slicing_interval_mm * static_cast<double>(b.slice - a.slice)
                          : b.stage_z_mm - a.stage_z_mm;
    return mm * 1000.0 / set_.voxel_um[0];
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
          static_cast<std::size_t>(std::lround(options_.search_range_mm * 1000.0 / set_.voxel_um[0]));
      for (std::size_t d = 0; d < 2; ++d) {
        registering.start_px[d] = (b.origin_mm[d] - a.origin_mm[d]) * 1000.0 / set_.voxel_um[d + 1];
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

  [[nodiscard]] Status stack() {
    std::vector<SliceFacts> facts;
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      CGL_TRY_ASSIGN(const VolumeDescription slice, describe_volume(path_of(s), reading()));
      facts.push_back({result_.slices[s].grid.slice, slice.shape[0], slice.shape[1], slice.shape[2]});
    }
    std::vector<SliceShift> shifts = motor_shifts(set_);
    const std::size_t spikes = replace_spikes(shifts);
    if (spikes > 0) log_warning("{} of {} shifts of the stage were spikes and were replaced", spikes, shifts.size());
    StackOptions stacking = options_.stack;
    if (result_.slices.size() > 1) stacking.interval_planes = interval_planes(1);
    CGL_TRY_ASSIGN(result_.plan, decide_stack(facts, shifts, result_.registrations, set_.voxel_um, stacking));
    CGL_TRY_ASSIGN(result_.volume,
                   stack_slices(
                       result_.plan, [&](std::size_t s) { return slice_volume(s); }, stacking, options_.pool));
    return {};
  }

  const TileSet& set_;
  const fs::path& work_;
  const ReconstructionOptions& options_;
  Reconstruction result_;
  std::vector<SliceGlance> glances_;
};

}  // namespace

Result<Reconstruction> reconstruct(const TileSet& set, const fs::path& work, const ReconstructionOptions& options) {
  return catch_out_of_memory([&] { return Run(set, work, options).all(); });
}

}  // namespace cingulum::oct
