#include "oct/run/slice_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/progress.hpp"
#include "formats/sidecar.hpp"
#include "oct/placement/blend.hpp"
#include "oct/run/depth_corrections.hpp"
#include "oct/run/slice_blend.hpp"
#include "oct/volume/slab_volume.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

// Everything that decides the voxels of a slice.
std::string key_of(const RunState& run, std::size_t s) {
  const SliceReport& slice = run.result.slices[s];
  Json voxels = Json::array();
  for (const TileSummary& tile : run.summaries[s]) voxels.push_back(tile.voxels);
  const auto numbers = [](const std::vector<double>& values) { return hash_hex(std::as_bytes(std::span(values))); };
  const DepthCorrections& corrections = run.options.corrections;
  Json json = {{"version", run_facts(0, 0)["version"]},
               {"voxels", std::move(voxels)},
               {"last_line", run.options.last_line},
               {"voxel_um", run.result.voxel_um},
               {"places_px", slice.placement.places_px},
               {"blending", static_cast<int>(run.options.blending)},
               {"light", numbers(run.result.light.values)},
               {"curvature", numbers(run.result.curvature.values)},
               {"depths", slice.depths},
               {"planes", {slice.first_plane, run.cropped_planes}},
               {"tile", run.result.tile},
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

// A slice that an earlier run finished.
bool take_slice(RunState& run, std::size_t s) {
  SliceReport& slice = run.result.slices[s];
  const auto there = describe_volume(run.path_of(s), run.reading());
  if (!there || !there->attributes.is_object() || there->attributes.value("key", Json()) != key_of(run, s))
    return false;
  try {
    there->attributes.at("uncovered_pixels").get_to(slice.uncovered_pixels);
    slice.corrected = corrected_of(there->attributes.at("corrected"));
  } catch (const Json::exception&) {
    return false;
  }
  slice.found = true;
  return true;
}

// Voxels where there is no tissue, in the units of the slice.
std::optional<double> floor_of(const RunState& run, std::size_t s) {
  double sum = 0, count = 0;
  for (const TileSummary& tile : run.summaries[s]) {
    sum += tile.above_sum;
    count += static_cast<double>(tile.above_count);
  }
  constexpr double least_voxels = 1000;
  if (count < least_voxels) return std::nullopt;
  return sum / count;
}

}  // namespace

struct SliceMaker::MadeSlice {
  HostVolume volume;  // empty: it was made through files, and is written
  Json attributes;
};

Status SliceMaker::start_writers() {
  CGL_TRY_ASSIGN(writers_, ThreadPool::create(static_cast<int>(writers_at_a_time)));
  return {};
}

Status SliceMaker::make_all() {
  std::error_code error;
  fs::create_directories(run_.work, error);
  if (error) return fail_file(run_.work.native(), ErrorKind::io, "making {}: {}", run_.work.native(), error.message());
  Progress progress("stitching", run_.result.slices.size(), "slices", run_.options.run.progress);
  for (std::size_t s = 0; s < run_.result.slices.size(); ++s) {
    CGL_TRY(run_.check());
    if (!take_slice(run_, s)) {
      CGL_TRY_ASSIGN(MadeSlice made, add_context(make(s), "slice {}", run_.result.slices[s].grid.slice));
      CGL_TRY(write_behind(s, std::move(made)));
    }
    CGL_TRY(run_.tiles.forget(s));
    run_.result.files.push_back(run_.path_of(s));
    progress.advance();
  }
  progress.finish();
  return {};
}

Result<SliceMaker::MadeSlice> SliceMaker::make(std::size_t s) {
  SliceReport& slice = run_.result.slices[s];
  TileGrid grid = slice.grid;
  std::vector<std::array<double, 2>> places = slice.placement.places_px;
  grid.tile = run_.result.tile;
  for (std::size_t d = 0; d < 2; ++d) {
    const double factor = static_cast<double>(run_.result.tile[d + 1]) / static_cast<double>(run_.set.shape[d + 1]);
    for (auto& place : places) place[d] *= factor;
  }
  const TileBlend blend = TileBlend::plan(grid, places, run_.options.blending);
  slice.uncovered_pixels = blend.uncovered_pixels();
  HostVolume volume;
  std::optional<SlabVolume> slabs;
  const auto stitch = [&]() -> Status {
    if (run_.needs.slices_in_files) {
      CGL_TRY_ASSIGN(slabs, blend_through_files(run_, s, grid, blend));
    } else {
      CGL_TRY_ASSIGN(volume, blend_in_memory(run_, s, grid, blend));
      slabs.emplace(volume);
    }
    return {};
  };
  const auto correct = [&]() -> Status {
    CGL_TRY_ASSIGN(slice.corrected,
                   correct_depth(*slabs, floor_of(run_, s), run_.options.corrections, run_.options.pool));
    return {};
  };
  CGL_TRY(run_.timed("stitching", stitch));
  CGL_TRY(run_.timed("correcting depth", correct));
  Json attributes = {{"key", key_of(run_, s)},
                     {"uncovered_pixels", slice.uncovered_pixels},
                     {"corrected", corrected_json(slice.corrected)},
                     {"slice",
                      {{"number", grid.slice},
                       {"origin_mm", grid.origin_mm},
                       {"stage_z_mm", run_.first_plane_mm(s)},
                       {"focus_plane", grid.focus_plane}}}};
  // What is there is of another run, or half removed.
  const fs::path path = run_.path_of(s);
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return fail_file(path.native(), ErrorKind::io, "removing {}: {}", path.native(), error.message());
  if (!run_.needs.slices_in_files) return MadeSlice{std::move(volume), std::move(attributes)};
  const auto write = [&] {
    return write_volume_by_boxes(path, {slabs->planes(), slabs->rows(), slabs->columns()}, run_.result.voxel_um,
                                 attributes,
                                 [&](const PlaneBox& box, std::span<float> to) { return slabs->read_box(box, to); }, {},
                                 {.pool = run_.options.pool, .cancel = run_.options.run.cancel});
  };
  CGL_TRY(run_.timed("writing slices", write));
  return MadeSlice();
}

// A slice in memory is written while the next is made. One at a time: the one before it is waited for.
Status SliceMaker::write_behind(std::size_t s, MadeSlice made) {
  if (made.volume.values.empty()) return {};
  CGL_TRY(end_writing());
  writing_.begin([this, s, path = run_.path_of(s), voxel_um = run_.result.voxel_um, slice = std::move(made)] {
    const VolumeWriteOptions options{.pool = writers_.get(), .cancel = run_.options.run.cancel};
    return add_context(write_volume_from_memory(path, slice.volume, voxel_um, slice.attributes, {}, options),
                       "slice {}", run_.result.slices[s].grid.slice);
  });
  return {};
}

Status SliceMaker::end_writing() {
  return run_.timed("writing slices", [&] { return writing_.end(); });
}

}  // namespace cingulum::oct
