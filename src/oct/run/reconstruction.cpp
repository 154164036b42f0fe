#include "oct/run/reconstruction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/elapsed.hpp"
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
#include "oct/run/pair_products.hpp"
#include "oct/run/tile_summary.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/slab_volume.hpp"
#include "zarr/level_file.hpp"

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
  Run(const TileSet& set, const fs::path& work, const ReconstructionOptions& options, const RunNeeds& needs)
      : set_(set), work_(work), options_(options), needs_(needs) {}
  Result<Reconstruction> all() {
    // Threads that wait for files, beside those that compute.
    CGL_TRY_ASSIGN(readers_, ThreadPool::create(options_.pool->threads()));
    CGL_TRY_ASSIGN(writers_, ThreadPool::create(static_cast<int>(writers_at_a_time)));
    CGL_TRY(prepare_placing());
    CGL_TRY(set_tile_budgets());
    CGL_TRY(look_at_tiles());
    CGL_TRY(timed("fitting", [&] { return fit_all(); }));
    CGL_TRY(timed("fitting", [&] { return choose_planes(); }));
    say_decisions();
    CGL_TRY(make_slices());
    CGL_TRY(register_all());
    CGL_TRY(plan_stack());
    return std::move(result_);
  }

 private:
  template <class Stage>
  [[nodiscard]] Status timed(const char* name, const Stage& stage) {
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY(stage());
    auto& stages = result_.stage_seconds;
    auto found = std::find_if(stages.begin(), stages.end(), [&](const auto& one) { return one.first == name; });
    if (found == stages.end()) found = stages.insert(stages.end(), {name, 0.0});
    found->second += seconds_since(start);
    return {};
  }

  [[nodiscard]] Status check() const { return options_.run.cancel.check(); }

  // A tile that is kept until its slice is made. One that is neither on the device nor on the host is read again.
  struct KeptTile {
    TileStage* stage = nullptr;  // that still has it
    DeviceVolume on_device = {};
    HostVolume on_host = {};
  };

  // Keeps a tile while the budget allows it: on its device, else in memory.
  [[nodiscard]] Status keep(TileStage& stage, DeviceVolume tile, KeptTile& kept) {
    const std::uint64_t bytes = tile.shape.bytes();
    const auto keep_on_device = [&] {
      kept.stage = &stage;
      kept.on_device = std::move(tile);
    };
    if (!stage.in_host_memory() && stage.reserve_tile(bytes)) {
      keep_on_device();
      return {};
    }
    if (kept_bytes_.fetch_add(bytes) + bytes > needs_.kept_bytes) {
      kept_bytes_ -= bytes;
      return {};
    }
    if (stage.in_host_memory()) {
      keep_on_device();
      return {};
    }
    CGL_TRY_ASSIGN(kept.on_host, stage.copy_to_host(tile, options_.pool));
    return {};
  }

  // Releases the tiles of a finished slice.
  [[nodiscard]] Status forget_tiles(std::vector<KeptTile>& tiles) {
    for (KeptTile& tile : tiles) {
      if (tile.stage != nullptr && !tile.stage->in_host_memory()) tile.stage->release_tile(tile_voxel_bytes());
    }
    tiles.clear();
    for (TileStage* const stage : options_.stages) CGL_TRY(stage->trim());
    return {};
  }

  [[nodiscard]] std::uint64_t tile_voxel_bytes() const {
    return sizeof(float) * set_.shape[0] * set_.shape[1] * set_.shape[2];
  }

  // Tiles are compared on a device that is quicker at it than the threads are.
  [[nodiscard]] Status prepare_placing() {
    for (TileStage* const stage : options_.stages) {
      if (stage->in_host_memory() || stage->device().capabilities().software) continue;
      CGL_TRY_ASSIGN(products_, DevicePairProducts::create(stage->device()));
      return {};
    }
    return {};
  }

  // Devices keep as many tiles as memory would, as far as what they work with leaves memory for them.
  [[nodiscard]] Status set_tile_budgets() const {
    for (TileStage* const stage : options_.stages) {
      CGL_TRY_ASSIGN(const MemoryState memory, stage->device().memory());
      std::uint64_t free = memory.free_bytes.value_or(0);
      if (memory.limit_bytes)
        free = std::min(free, *memory.limit_bytes - std::min(*memory.limit_bytes, memory.used_bytes));
      const std::uint64_t worked_with =
          needs_.device_bytes + (products_ != nullptr ? needs_.comparing_device_bytes : 0);
      stage->set_tile_budget(std::min(needs_.kept_bytes, free - std::min(free, worked_with)));
    }
    return {};
  }

  struct TileToDo {
    std::size_t number = 0;  // in the grid
    const TileRecord* record = nullptr;
    KeptTile* kept = nullptr;
  };

  [[nodiscard]] std::vector<TileToDo> tiles_of(const TileGrid& grid, std::vector<KeptTile>& kept) const {
    std::vector<TileToDo> tiles(grid.count());
    std::size_t first_row = SIZE_MAX, first_column = SIZE_MAX;
    for (const TileRecord& record : set_.tiles) {
      if (record.slice != grid.slice) continue;
      first_row = std::min(first_row, record.row);
      first_column = std::min(first_column, record.column);
    }
    for (const TileRecord& record : set_.tiles) {
      if (record.slice != grid.slice) continue;
      const std::size_t t = (record.row - first_row) * grid.columns + record.column - first_column;
      if (!grid.tiles[t].missing) tiles[t] = {t, &record, &kept[t]};
    }
    std::erase_if(tiles, [](const TileToDo& tile) { return tile.record == nullptr; });
    return tiles;
  }

  // Calls body(stage, number in the grid, what was read) for the tiles of a slice: each stage takes the next one that
  // no other stage holds, and reads the one after it meanwhile. The first failure in the order of the grid is the
  // answer.
  template <class Body>
  [[nodiscard]] Status for_each_tile(const TileGrid& grid, std::vector<KeptTile>& kept, const Body& body) const {
    std::vector<TileToDo> tiles = tiles_of(grid, kept);
    std::mutex taking;
    std::size_t failed = SIZE_MAX;  // what comes behind it is not begun
    FirstFailure failure;
    const auto next = [&](const TileStage& stage) -> std::optional<TileToDo> {
      const std::lock_guard lock(taking);
      const auto found = std::find_if(tiles.begin(), tiles.end(), [&](const TileToDo& tile) {
        return tile.kept->stage == nullptr || tile.kept->stage == &stage;
      });
      if (found == tiles.end() || found->number > failed) return std::nullopt;
      const TileToDo tile = *found;
      tiles.erase(found);
      return tile;
    };
    const TileSource source{&set_, options_.last_line, readers_.get(), options_.run.cancel};
    const auto read = [&](TileStage& stage, const TileToDo& tile) -> Result<ReadTile> {
      if (tile.kept->stage != nullptr) return ReadTile();
      if (!tile.kept->on_host.values.empty()) return stage.lend(tile.kept->on_host, readers_.get());
      return stage.read(source, *tile.record);
    };
    const auto work = [&](TileStage& stage) {
      std::optional<TileToDo> now = next(stage);
      std::future<Result<ReadTile>> reading;
      const auto begin_reading = [&](const std::optional<TileToDo>& tile) {
        if (tile) reading = std::async(std::launch::async, [&stage, &read, tile = *tile] { return read(stage, tile); });
      };
      begin_reading(now);
      while (now) {
        const Result<ReadTile> tile = reading.get();
        const std::optional<TileToDo> ahead = next(stage);
        begin_reading(ahead);
        const auto work_up = [&]() -> Status {
          CGL_TRY(check());
          CGL_TRY(tile);
          return body(stage, now->number, *tile);
        };
        const Status state = catch_out_of_memory(work_up);
        if (!state) {
          const std::lock_guard lock(taking);
          failed = std::min(failed, now->number);
        }
        failure.note(now->number, state);
        now = ahead;
      }
    };
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < options_.stages.size(); ++i) {
      others.push_back(std::async(std::launch::async, [&work, stage = options_.stages[i]] { work(*stage); }));
    }
    work(*options_.stages.front());
    for (std::future<void>& other : others) other.get();
    return failure.take();
  }

  [[nodiscard]] Status look_at_tiles() {
    Progress progress("looking at tiles", set_.tiles.size(), "tiles", options_.run.progress);
    const std::vector<std::size_t> ids = set_.slices();
    result_.slices.resize(ids.size());
    summaries_.resize(ids.size());
    kept_.resize(ids.size());
    // Slice s is placed while the tiles of slice s + 1 are read: the layers by which tiles are placed are the largest
    // part of their summaries.
    std::future<Status> placing;
    const auto end_placing = [&] { return placing.valid() ? placing.get() : Status(); };
    for (std::size_t s = 0; s < ids.size(); ++s) {
      SliceReport& slice = result_.slices[s];
      CGL_TRY_ASSIGN(slice.grid, grid_of_slice(set_, ids[s]));
      summaries_[s].resize(slice.grid.count());
      kept_[s].resize(slice.grid.count());
      std::mutex counting;
      const auto look = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
        CGL_TRY_ASSIGN(DeviceVolume tile, stage.order(read, set_));
        CGL_TRY_ASSIGN(summaries_[s][t], stage.summarise(tile, options_.crop || options_.curvature, options_.pool));
        summaries_[s][t].voxels = read.voxels;
        CGL_TRY(keep(stage, std::move(tile), kept_[s][t]));
        progress.advance();
        const std::lock_guard lock(counting);
        slice.replaced_values += read.replaced;
        return {};
      };
      CGL_TRY(timed("looking at tiles", [&] { return for_each_tile(slice.grid, kept_[s], look); }));
      CGL_TRY(timed("placing tiles", end_placing));
      placing = std::async(std::launch::async, [&, s] {
        return catch_out_of_memory([&] { return place(result_.slices[s], summaries_[s]); });
      });
    }
    CGL_TRY(timed("placing tiles", end_placing));
    progress.finish();
    return compare_voxels();
  }

  // A run that is repeated has the tiles that it had.
  [[nodiscard]] Status compare_voxels() {
    Hash128 hash;
    for (const std::vector<TileSummary>& tiles : summaries_) {
      for (const TileSummary& tile : tiles) {
        hash.add(tile.voxels);
        hash.add(";");  // a missing tile has none
      }
    }
    result_.voxels = hash.hex();
    if (options_.expected_voxels.empty() || options_.expected_voxels == result_.voxels) return {};
    return fail(ErrorKind::corrupt, "the tiles are not those of the run that is repeated (hash {}, was {})",
                result_.voxels, options_.expected_voxels);
  }

  [[nodiscard]] Status place(SliceReport& slice, std::vector<TileSummary>& summaries) const {
    std::vector<std::vector<HostImage>> layers;
    for (const TileSummary& tile : summaries) layers.resize(std::max(layers.size(), tile.layers.size()));
    for (std::size_t k = 0; k < layers.size(); ++k) {
      for (TileSummary& tile : summaries) {
        layers[k].push_back(tile.layers.empty() ? HostImage() : std::move(tile.layers[k]));
      }
    }
    for (TileSummary& tile : summaries) tile.layers.clear();
    PlacementOptions placing = options_.placement;
    placing.pool = options_.pool;
    if (products_ != nullptr) {
      placing.products = [this](const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs) {
        return products_->make(images, grid, pairs);
      };
    }
    CGL_TRY_ASSIGN(slice.placement,
                   add_context(place_tiles(slice.grid, layers, placing), "slice {}", slice.grid.slice));
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

  // Fits over all slices at once, since what they have in common is the instrument.
  [[nodiscard]] Status fit_all() {
    if (options_.curvature) {
      std::vector<HostImage> interfaces;
      std::vector<HostImage*> lent_by;
      for (auto& tiles : summaries_) {
        for (TileSummary& tile : tiles) {
          if (tile.interface.values.empty()) continue;
          lent_by.push_back(&tile.interface);
          interfaces.push_back(std::move(tile.interface));
        }
      }
      if (options_.basic) {
        CGL_TRY_ASSIGN(result_.curvature, fit_curvature_basic(interfaces, set_.shape[0]));
      } else {
        CGL_TRY_ASSIGN(result_.curvature, fit_curvature(interfaces, options_.pool));
        // A slope that all tiles share is that of the sample's surface; where it is not, the depths of tiles take it
        // up.
        subtract(result_.curvature, fit_polynomial(result_.curvature, 1));
      }
      for (std::size_t i = 0; i < interfaces.size(); ++i) *lent_by[i] = std::move(interfaces[i]);
    }
    std::vector<HostImage> projections;
    std::vector<OverlapPair> pairs;
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      SliceReport& slice = result_.slices[s];
      const std::vector<OverlapPair> own = pairs_of(slice);
      if (options_.curvature) {
        std::vector<HostImage> interfaces;
        for (TileSummary& tile : summaries_[s]) {
          if (!tile.interface.values.empty()) subtract(tile.interface, result_.curvature);
          interfaces.push_back(std::move(tile.interface));
        }
        slice.depths = options_.basic ? std::vector<double>(interfaces.size(), 0.0)
                                      : fit_tile_depths(interfaces, own, options_.pool);
        for (std::size_t t = 0; t < interfaces.size(); ++t) summaries_[s][t].interface = std::move(interfaces[t]);
      }
      for (OverlapPair pair : own) {
        pair.first += projections.size();
        pair.second += projections.size();
        pairs.push_back(pair);
      }
      for (TileSummary& tile : summaries_[s]) projections.push_back(std::move(tile.projection));
    }
    if (options_.flat_field && options_.basic) {
      std::erase_if(projections, [](const HostImage& image) { return image.values.empty(); });
      CGL_TRY_ASSIGN(result_.light, fit_basic(projections));
    } else if (options_.flat_field) {
      CGL_TRY_ASSIGN(FlatFieldFit fit, fit_flat_field(projections, pairs, options_.pool));
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
    if (options_.crop) {
      for_each_index(options_.pool, result_.slices.size(), [&](std::size_t s) {
        SliceReport& slice = result_.slices[s];
        std::vector<double> surface;
        for (std::size_t t = 0; t < summaries_[s].size(); ++t) {
          const double depth = slice.depths.empty() ? 0 : slice.depths[t];
          for (const double plane : summaries_[s][t].interface.values) surface.push_back(plane - depth);
        }
        slice.surface_plane = percentile(std::move(surface), surface_share);
      });
    }
    for (std::size_t s = 0; s < result_.slices.size(); ++s) {
      SliceReport& slice = result_.slices[s];
      if (options_.crop) {
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
    for (const TileSummary& tile : summaries_[s]) voxels.push_back(tile.voxels);
    const auto numbers = [](const std::vector<double>& values) { return hash_hex(std::as_bytes(std::span(values))); };
    const DepthCorrections& corrections = options_.corrections;
    Json json = {{"version", run_facts(0, 0)["version"]},
                 {"voxels", std::move(voxels)},
                 {"last_line", options_.last_line},
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
      if (!take_slice(s)) {
        CGL_TRY_ASSIGN(MadeSlice made, add_context(make_slice(s), "slice {}", result_.slices[s].grid.slice));
        CGL_TRY(write_behind(s, std::move(made)));
      }
      CGL_TRY(forget_tiles(kept_[s]));
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

  // Rolled, cropped, evened out, resampled: the voxels of a tile as they are blended.
  [[nodiscard]] Result<DeviceVolume> prepare(TileStage& stage, std::size_t s, std::size_t t, const ReadTile& read) {
    const SliceReport& slice = result_.slices[s];
    DeviceVolume tile = std::move(kept_[s][t].on_device);
    kept_[s][t].on_host = {};
    if (tile.buffer == nullptr) {
      CGL_TRY_ASSIGN(tile, stage.order(read, set_));
    }
    TileChange change;
    if (options_.curvature) {
      change.curvature = &result_.curvature;
      change.depth = slice.depths[t];
    }
    if (!result_.light.values.empty()) change.light = &result_.light;
    change.first_plane = slice.first_plane;
    change.planes = cropped_planes_;
    change.shape = result_.tile;
    return stage.make(std::move(tile), change);
  }

  // Voxels where there is no tissue, in the units of the slice.
  [[nodiscard]] std::optional<double> floor_of(std::size_t s) const {
    double sum = 0, count = 0;
    for (const TileSummary& tile : summaries_[s]) {
      sum += tile.above_sum;
      count += static_cast<double>(tile.above_count);
    }
    constexpr double least_voxels = 1000;
    if (count < least_voxels) return std::nullopt;
    return sum / count;
  }

  // The mosaic and the slice are in memory both, and the slice before while it is written.
  [[nodiscard]] Result<HostVolume> blend_in_memory(std::size_t s, const TileGrid& grid, const TileBlend& blend) {
    const auto [planes, rows, columns] = grid.tile;
    // Blending looks at no tile that is missing.
    HostVolume mosaic = HostVolume::unset(planes, grid.rows * rows, grid.columns * columns);
    const auto take = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
      CGL_TRY_ASSIGN(const DeviceVolume tile, prepare(stage, s, t, read));
      return stage.take_planes(tile, options_.pool, [&](std::size_t first, std::span<const float> planes_of_tile) {
        put_planes(planes_of_tile, first, t, grid, mosaic);
      });
    };
    CGL_TRY(for_each_tile(grid, kept_[s], take));
    HostVolume volume = HostVolume::unset(planes, blend.rows(), blend.columns());
    blend.blend(mosaic, volume, options_.pool);
    return volume;
  }

  // Tiles go to a temporary file as they come, and from there a few planes of all of them at a time into another one
  // that holds the slice.
  [[nodiscard]] Result<SlabVolume> blend_through_files(std::size_t s, const TileGrid& grid, const TileBlend& blend) {
    const auto [planes, rows, columns] = grid.tile;
    CGL_TRY_ASSIGN(const auto tiles, zarr::LevelFile::create(FileLayer::system(), path_of(s).native(),
                                                             {planes, grid.rows * rows, grid.columns * columns},
                                                             {planes, rows, columns}, element_type_of<float>()));
    const auto first_pixel = [&](std::size_t t) {
      return std::array{t / grid.columns * grid.tile[1], t % grid.columns * grid.tile[2]};
    };
    const auto take = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
      CGL_TRY_ASSIGN(const DeviceVolume made, prepare(stage, s, t, read));
      CGL_TRY_ASSIGN(const HostVolume tile, stage.copy_to_host(made, options_.pool));
      const auto [row, column] = first_pixel(t);
      return tiles->write_tile(zarr::Shape{0, row, column}, std::as_bytes(std::span(tile.values)));
    };
    CGL_TRY(for_each_tile(grid, kept_[s], take));
    CGL_TRY_ASSIGN(SlabVolume slice,
                   SlabVolume::in_file(path_of(s), {planes, blend.rows(), blend.columns()}, needs_.slice_planes));
    const auto make_planes = [&](std::size_t first, HostVolume& slab) -> Status {
      HostVolume mosaic = HostVolume::unset(slab.planes, grid.rows * grid.tile[1], grid.columns * grid.tile[2]);
      FirstFailure failure;
      for_each_index(options_.pool, grid.count(), [&](std::size_t t) {
        const auto read_part = [&]() -> Status {
          if (grid.tiles[t].missing) return {};
          CGL_TRY(check());
          HostVolume part(slab.planes, grid.tile[1], grid.tile[2]);
          const auto [row, column] = first_pixel(t);
          CGL_TRY(tiles->read({{first, row, column}, {part.planes, part.rows, part.columns}},
                              std::as_writable_bytes(std::span(part.values))));
          put_planes(part.values, 0, t, grid, mosaic);
          return {};
        };
        failure.note(t, catch_out_of_memory(read_part));
      });
      CGL_TRY(failure.take());
      blend.blend(mosaic, slab, options_.pool);
      return {};
    };
    CGL_TRY(slice.make_slabs(make_planes));
    return slice;
  }

  // Planes of a tile from `first` on to their place in the mosaic.
  static void put_planes(std::span<const float> planes, std::size_t first, std::size_t t, const TileGrid& grid,
                         HostVolume& mosaic) {
    const std::size_t rows = grid.tile[1], columns = grid.tile[2];
    const std::size_t top = t / grid.columns * rows, left = t % grid.columns * columns;
    for (std::size_t line = 0; line * columns < planes.size(); ++line) {
      std::copy_n(planes.data() + line * columns, columns,
                  &mosaic.values[mosaic.index(first + line / rows, top + line % rows, left)]);
    }
  }

  struct MadeSlice {
    HostVolume volume;  // empty: it was made through files, and is written
    Json attributes;
  };

  [[nodiscard]] Result<MadeSlice> make_slice(std::size_t s) {
    SliceReport& slice = result_.slices[s];
    TileGrid grid = slice.grid;
    std::vector<std::array<double, 2>> places = slice.placement.places_px;
    grid.tile = result_.tile;
    for (std::size_t d = 0; d < 2; ++d) {
      const double factor = static_cast<double>(result_.tile[d + 1]) / static_cast<double>(set_.shape[d + 1]);
      for (auto& place : places) place[d] *= factor;
    }
    const TileBlend blend = TileBlend::plan(grid, places, options_.blending);
    slice.uncovered_pixels = blend.uncovered_pixels();
    HostVolume volume;
    std::optional<SlabVolume> slabs;
    const auto stitch = [&]() -> Status {
      if (needs_.slices_in_files) {
        CGL_TRY_ASSIGN(slabs, blend_through_files(s, grid, blend));
      } else {
        CGL_TRY_ASSIGN(volume, blend_in_memory(s, grid, blend));
        slabs.emplace(volume);
      }
      return {};
    };
    const auto correct = [&]() -> Status {
      CGL_TRY_ASSIGN(slice.corrected, correct_depth(*slabs, floor_of(s), options_.corrections, options_.pool));
      return {};
    };
    CGL_TRY(timed("stitching", stitch));
    CGL_TRY(timed("correcting depth", correct));
    Json attributes = {{"key", key_of(s)},
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
    if (!needs_.slices_in_files) return MadeSlice{std::move(volume), std::move(attributes)};
    VolumeWriteOptions writing;
    writing.pool = options_.pool;
    writing.cancel = options_.run.cancel;
    CGL_TRY(timed("writing slices", [&] {
      return write_volume_by_boxes(
          path_of(s), {slabs->planes(), slabs->rows(), slabs->columns()}, result_.voxel_um, attributes,
          [&](const PlaneBox& box, std::span<float> to) { return slabs->read_box(box, to); }, {}, writing);
    }));
    return MadeSlice();
  }

  // A slice in memory is written while the next is made. One at a time: the one before it is waited for.
  [[nodiscard]] Status write_behind(std::size_t s, MadeSlice made) {
    if (made.volume.values.empty()) return {};
    CGL_TRY(timed("writing slices", [&] { return end_writing(); }));
    VolumeWriteOptions options;
    options.pool = writers_.get();
    options.cancel = options_.run.cancel;
    const auto write = [path = path_of(s), number = result_.slices[s].grid.slice, voxel_um = result_.voxel_um,
                        options](const MadeSlice& slice) {
      return add_context(write_volume_from_memory(path, slice.volume, voxel_um, slice.attributes, {}, options),
                         "slice {}", number);
    };
    writing_ = std::async(std::launch::async, write, std::move(made));
    return {};
  }
  [[nodiscard]] Status end_writing() { return writing_.valid() ? writing_.get() : Status(); }

  // Planes of a slice that is made, read as they are needed. A slice that cannot be read ends the run, and is no slice
  // that cannot be registered: `unread` says which it was.
  [[nodiscard]] Result<SlicePlanes> slice_planes(std::size_t s, Status& unread) const {
    CGL_TRY_ASSIGN(const VolumeDescription slice, describe_volume(path_of(s), reading()));
    return SlicePlanes{slice.shape[0], [this, s, &unread](std::size_t first, std::size_t count) -> Result<HostVolume> {
                         auto planes = read_planes(path_of(s), first, count, reading());
                         if (!planes) unread = tl::make_unexpected(planes.error());
                         return planes;
                       }};
  }

  // Depth of the first plane of a cropped slice, as the stage counts.
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
    const auto end_last = [&] { return timed("writing slices", [&] { return end_writing(); }); };
    if (result_.slices.size() < 2) return end_last();
    Progress progress("registering", result_.slices.size() - 1, "pairs", options_.run.progress);
    for (std::size_t s = 1; s < result_.slices.size(); ++s) {
      // The last slice is written while the pairs before it are registered.
      if (s + 1 == result_.slices.size()) CGL_TRY(end_last());
      CGL_TRY(timed("registering", [&] { return register_pair(s); }));
      progress.advance();
    }
    progress.finish();
    return {};
  }

  // Slice s to the one before it.
  [[nodiscard]] Status register_pair(std::size_t s) {
    CGL_TRY(check());
    Status unread;
    CGL_TRY_ASSIGN(const SlicePlanes fixed, slice_planes(s - 1, unread));
    CGL_TRY_ASSIGN(const SlicePlanes moving, slice_planes(s, unread));
    const TileGrid& a = result_.slices[s - 1].grid;
    const TileGrid& b = result_.slices[s].grid;
    RegistrationOptions registering = options_.registration;
    registering.pool = options_.pool;
    if (needs_.slices_in_files) registering.planes_at_a_time = needs_.slice_planes;
    registering.expected_planes = interval_planes(s);
    registering.search_planes =
        static_cast<std::size_t>(std::lround(options_.search_range_mm * 1000.0 / result_.voxel_um[0]));
    for (std::size_t d = 0; d < 2; ++d) {
      registering.start_px[d] = (b.origin_mm[d] - a.origin_mm[d]) * 1000.0 / result_.voxel_um[d + 1];
    }
    auto found = register_slices(fixed, moving, registering);
    CGL_TRY(unread);
    if (found) {
      result_.registrations.emplace_back(*found);
    } else if (found.error().kind() == ErrorKind::interrupted || found.error().kind() == ErrorKind::out_of_memory) {
      return tl::make_unexpected(found.error());
    } else {
      log_warning("slices {} and {} are not registered: {}; the motors place them", a.slice, b.slice, found.error());
      result_.registrations.emplace_back();
    }
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
  const RunNeeds& needs_;
  std::unique_ptr<ThreadPool> readers_;
  std::unique_ptr<ThreadPool> writers_;           // that wait for the disk
  std::unique_ptr<DevicePairProducts> products_;  // absent: the threads make them
  std::size_t cropped_planes_ = 0;
  Reconstruction result_;
  std::vector<std::vector<TileSummary>> summaries_;  // by slice, as in its grid
  std::vector<std::vector<KeptTile>> kept_;          // the same
  std::atomic<std::uint64_t> kept_bytes_ = 0;
  std::future<Status> writing_;  // the last slice that was made in memory
};

}  // namespace

namespace {

// What the stages of a run hold at a time, in bytes, but for slices in memory.
struct StageBytes {
  std::uint64_t always = 0;           // whatever the stage
  std::uint64_t placing = 0;          // tiles of one slice by their layers
  std::uint64_t correcting = 0;       // images of a slice, a band of it, and what is written at a time
  std::uint64_t registering = 0;      // images of two slices
  std::uint64_t stacking = 0;         // boxes of slices and of the volume, or the sample that gives gains
  std::uint64_t plane = 0;            // of a slice or of its mosaic
  std::size_t registered_planes = 0;  // that are compared at once
};

std::size_t device_count(const ReconstructionOptions& options) {
  return options.stages.empty() ? options.devices : options.stages.size();
}

StageBytes stage_bytes(const TileSet& set, const ReconstructionOptions& options, const RunNeeds& needs,
                       std::uint64_t lines, std::uint64_t lines_of_slice, std::size_t widest_px,
                       std::size_t slice_depth) {
  StageBytes bytes;
  const auto threads = static_cast<std::uint64_t>(options.pool->threads());
  // What devices work with, each counted as if in the host's memory; of a tile that the host reads the file and the
  // voxels; pieces on their way to a device; of all A-lines surface, mean and its logarithm in float64.
  const std::uint64_t devices = device_count(options);
  const std::uint64_t by_host = set.raw && set.repeats == 1 ? 0 : 2 * needs.tile_bytes;
  bytes.always =
      devices * (needs.device_bytes + by_host) + 2 * threads * TileStage::piece_bytes + 3 * sizeof(double) * lines;
  double lateral = 1;
  for (std::size_t d = 1; d < 3 && options.resolution_um; ++d) lateral *= set.voxel_um[d] / *options.resolution_um;
  const auto pixels = static_cast<std::uint64_t>(static_cast<double>(lines_of_slice) * lateral);
  bytes.plane = sizeof(float) * pixels;
  // The layers and maps of one slice, which is placed while the next is read.
  bytes.placing =
      lines_of_slice * (layers_of(set.shape[0]) * (2 * sizeof(double) + sizeof(float)) + 2 * sizeof(double));
  const std::uint64_t box = sizeof(float) * planes_at_a_time * rows_at_a_time * widest_px;
  // A projection, smoothed by way of another one; where levels of planes are evened out, a plane of each thread and its
  // darker part; where lines are corrected one by one, bands of the slice and of its medians.
  bytes.correcting = pixels * 4 * sizeof(double) + 2 * std::min<std::uint64_t>(box, bytes.plane * planes_at_a_time) +
                     needs.boxes_behind * writer_bytes;
  if (options.corrections.normalise) bytes.correcting += threads * pixels * 3 * sizeof(double);
  if (options.corrections.attenuation && options.corrections.attenuation->block_px == 0) {
    bytes.correcting += 2 * sizeof(float) * slice_depth * SlabVolume::rows_of_band * widest_px + threads * bytes.plane;
  }
  // Fixed, moving, moving stretched, and a level's copy of two of them, each with what is seen of it; two warped ones;
  // and a candidate of each thread, which is smoothed and whose percentiles are taken.
  bytes.registering = pixels * (5 * 16 + 2 * 9 + threads * 64);
  if (!needs.slices_in_files) {
    // The middle halves of all candidates, which are compared twice.
    const double plane_um = options.resolution_um.value_or(set.voxel_um[0]);
    const auto searched = static_cast<std::uint64_t>(2 * std::ceil(options.search_range_mm * 1000.0 / plane_um) + 1);
    bytes.registering += std::min<std::uint64_t>(searched, slice_depth) * pixels / 4 * 9;
  }
  bytes.registered_planes = 2 * options.registration.planes;
  // Canvases grow by what slices are displaced and turned.
  const auto canvas = [&](std::uint64_t rows) {
    const std::uint64_t part = sizeof(float) * planes_at_a_time * rows * widest_px;
    return std::min<std::uint64_t>(part, bytes.plane * planes_at_a_time) * 5 / 4;
  };
  // What is made and what is written meanwhile; of the rows that are stacked at a time the weights, and a slice as it
  // was read. Before that the sample that gives gains, and two slices of it.
  bytes.stacking = (1 + needs.boxes_behind) * canvas(rows_at_a_time) + 2 * canvas(needs.stacked_rows) +
                   needs.boxes_behind * writer_bytes;
  const std::uint64_t sample = std::min<std::uint64_t>(2 * gain_sample_voxels, pixels * slice_depth);
  bytes.stacking = std::max(bytes.stacking, sample * 2 * sizeof(float) + 2 * canvas(needs.stacked_rows));
  return bytes;
}

}  // namespace

Result<RunNeeds> run_needs(const TileSet& set, const ReconstructionOptions& options) {
  RunNeeds needs;
  const auto [planes, rows, columns] = set.shape;
  needs.tile_bytes = sizeof(float) * planes * rows * (columns + set.extra_lines);
  needs.tiles_in_flight = 2 * device_count(options);
  double shrunk = 1;  // voxels after --resolution of one before
  for (std::size_t d = 0; d < 3 && options.resolution_um; ++d) shrunk *= set.voxel_um[d] / *options.resolution_um;
  const double finer = options.resolution_um ? set.voxel_um[2] / *options.resolution_um : 1;
  std::uint64_t lines = 0, lines_of_slice = 0;  // A-lines of all slices, and of the largest
  std::size_t widest_px = 0;
  for (const std::size_t id : set.slices()) {
    CGL_TRY_ASSIGN(const TileGrid grid, grid_of_slice(set, id));
    needs.tiles_of_slice = std::max(needs.tiles_of_slice, grid.count());
    lines += grid.count() * rows * columns;
    lines_of_slice = std::max<std::uint64_t>(lines_of_slice, grid.count() * rows * columns);
    const auto width = static_cast<double>(grid.columns * columns) * finer;
    widest_px = std::max(widest_px, static_cast<std::size_t>(width) + 1);
    needs.work_bytes += grid.count() * sizeof(float) * planes * rows * columns;
  }
  const double depth = options.resolution_um ? static_cast<double>(planes) * set.voxel_um[0] / *options.resolution_um
                                             : static_cast<double>(planes);
  const auto slice_depth = static_cast<std::size_t>(std::max(1.0, std::ceil(depth)));
  needs.work_bytes = static_cast<std::uint64_t>(static_cast<double>(needs.work_bytes) * shrunk);
  needs.volume_bytes = needs.work_bytes;
  // One that is read, one that was; ordered, its logarithm in a box, which rolled takes the place of, a wide box of it,
  // cropped; and resampled along one axis and another one.
  const double resampled = options.resolution_um ? 2 * std::max(1.0, shrunk) : 0;
  needs.device_bytes = static_cast<std::uint64_t>(static_cast<double>(needs.tile_bytes) * (6 + resampled));
  needs.comparing_device_bytes =
      DevicePairProducts::bytes_for(needs.tiles_of_slice, layers_of(planes), {rows, columns});
  needs.stacked_rows = rows_at_a_time;
  needs.boxes_behind = writers_at_a_time;
  StageBytes bytes = stage_bytes(set, options, needs, lines, lines_of_slice, widest_px, slice_depth);
  // A mosaic, the slice that is made of it, and the one before while it is written; instead of the mosaic later a copy
  // while attenuation is measured. Tiles that are kept lie where the slice will be that is made of them. The last slice
  // is written while others are registered.
  const auto slice = static_cast<std::uint64_t>(static_cast<double>(needs.tile_bytes * needs.tiles_of_slice) * shrunk);
  needs.slice_planes = slice_depth;
  needs.kept_bytes = slice + options.kept_tile_bytes;
  needs.memory_bytes =
      bytes.always + options.kept_tile_bytes +
      std::max({3 * slice + bytes.correcting, bytes.placing,
                bytes.registering + bytes.plane * slice_depth + slice + needs.boxes_behind * writer_bytes,
                bytes.stacking});
  if (!options.memory_bytes || needs.memory_bytes <= *options.memory_bytes) return needs;
  // Slices go through files: as many planes of a slice, and of its mosaic, are in memory as the limit allows.
  needs.slices_in_files = true;
  needs.stacked_rows = rows_at_a_time / 8;
  needs.boxes_behind = 1;
  bytes = stage_bytes(set, options, needs, lines, lines_of_slice, widest_px, slice_depth);
  const auto with_planes = [&](std::size_t planes_of_slice) {
    const std::uint64_t slab = bytes.plane * planes_of_slice;
    return bytes.always + std::max({bytes.correcting + 2 * slab, bytes.placing,
                                    bytes.registering + slab + bytes.plane * bytes.registered_planes, bytes.stacking});
  };
  needs.slice_planes = std::min(planes_at_a_time, slice_depth);
  while (needs.slice_planes > 1 && with_planes(needs.slice_planes) > *options.memory_bytes) --needs.slice_planes;
  needs.memory_bytes = with_planes(needs.slice_planes);
  const std::uint64_t budget =
      needs.memory_bytes < *options.memory_bytes ? *options.memory_bytes - needs.memory_bytes : 0;
  needs.kept_bytes = std::min(options.kept_tile_bytes, budget);
  needs.memory_bytes += needs.kept_bytes;
  // The tiles of a slice, the slice, and, where lines are corrected one by one, its medians.
  needs.work_bytes += 3 * slice;
  return needs;
}

Result<Reconstruction> reconstruct(const TileSet& set, const fs::path& work, const ReconstructionOptions& options) {
  return catch_out_of_memory([&]() -> Result<Reconstruction> {
    CGL_TRY_ASSIGN(const RunNeeds needs, run_needs(set, options));
    Run run(set, work, options, needs);
    return run.all();
  });
}

}  // namespace cingulum::oct
