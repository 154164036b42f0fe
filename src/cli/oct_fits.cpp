// `cingulum oct flatfield`, `profile`, `attenuation` and `normalise`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/oct_actions.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/fits/basic_fit.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/tile_placement.hpp"
#include "runs/oct/oct_options.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using FitJson = nlohmann::ordered_json;

// Tiles of one mosaic for a fit: their projections, and which of them show the same at what step.
struct MosaicSample {
  std::vector<oct::HostImage> projections;  // empty for a missing tile
  std::vector<oct::OverlapPair> pairs;
};

Result<MosaicSample> sample_mosaic(const oct::HostVolume& volume, const oct::TileGrid& grid, ThreadPool& pool) {
  MosaicSample sample;
  sample.projections.resize(grid.count());
  std::vector<oct::HostImage> logarithms(grid.count());
  pool.parallel_for(grid.count(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      if (grid.tiles[t].missing) continue;
      const oct::HostVolume tile = oct::cut_tile(volume, grid, t);
      sample.projections[t] = oct::mean_projection(tile);
      logarithms[t] = oct::log_projection(tile);
    }
  });
  oct::PlacementOptions options;
  options.pool = &pool;
  options.max_rejected = 1;
  CGL_TRY_ASSIGN(const oct::Placement placement, oct::place_tiles(grid, logarithms, options));
  for (const oct::TileLink& link : placement.links) {
    if (link.state == oct::LinkState::used) sample.pairs.push_back({link.from, link.to, link.step_px});
  }
  return sample;
}

}  // namespace

Status run_oct_flatfield(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.empty()) return fail(ErrorKind::invalid_argument, "cingulum oct flatfield: name a mosaic grid");
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  std::vector<oct::HostImage> projections;
  std::vector<oct::OverlapPair> pairs;
  OctMosaic first;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CGL_TRY_ASSIGN(OctMosaic mosaic, read_oct_mosaic(paths[i], arguments, context));
    CGL_TRY_ASSIGN(MosaicSample sample, sample_mosaic(mosaic.file.volume, mosaic.grid, *pool));
    for (oct::OverlapPair& pair : sample.pairs) {
      pair.first += projections.size();
      pair.second += projections.size();
      pairs.push_back(pair);
    }
    for (oct::HostImage& projection : sample.projections) projections.push_back(std::move(projection));
    if (i == 0) first = std::move(mosaic);
  }
  oct::FlatFieldFit fit;
  if (oct_model(arguments) == "basic") {
    std::vector<oct::HostImage> present;
    for (const oct::HostImage& projection : projections) {
      if (!projection.values.empty()) present.push_back(projection);
    }
    fit.tiles = present.size();
    CGL_TRY_ASSIGN(fit.field, oct::fit_basic(present));
  } else {
    CGL_TRY_ASSIGN(fit, oct::fit_flat_field(projections, pairs));
  }
  if (arguments.given("field")) {
    std::string text;
    for (std::size_t r = 0; r < fit.field.rows; ++r) {
      for (std::size_t c = 0; c < fit.field.columns; ++c)
        text += fmt::format("{}{}", c > 0 ? "," : "", fit.field.at(r, c));
      text += "\n";
    }
    CGL_TRY(write_file_atomically(arguments.text("field"), text, context.write_options()));
  }
  oct::divide_by_field(first.file.volume, first.grid, fit.field, pool);
  const auto [low, high] = std::minmax_element(fit.field.values.begin(), fit.field.values.end());
  const FitJson about = {{"tiles", fit.tiles},
                         {"pairs", pairs.size()},
                         {"model", oct_model(arguments)},
                         {"smallest", *low},
                         {"largest", *high}};
  const std::string line = fmt::format("light from {:.3f} to {:.3f} by {} tiles", *low, *high, fit.tiles);
  return finish_oct_stage(output, first.file, about, line, arguments, context);
}

Status run_oct_profile(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(input, arguments, context));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  oct::SlabVolume slabs(file.volume);
  CGL_TRY_ASSIGN(const oct::HostImage mean, oct::mean_projection(slabs, pool));
  const std::vector<bool> agarose = oct::agarose_lines(mean);
  CGL_TRY_ASSIGN(const std::vector<double> profile,
                 add_file_context(oct::axial_profile(slabs, agarose, pool), "reading", input.native()));
  CGL_TRY(oct::divide_by_profile(slabs, profile, pool));
  const auto lines = std::count(agarose.begin(), agarose.end(), true);
  const FitJson about = {{"agarose_lines", lines}, {"profile", profile}};
  return finish_oct_stage(output, file, about, fmt::format("profile of {} A-lines of agarose", lines), arguments,
                          context);
}

Status run_oct_attenuation(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(input, arguments, context));
  CGL_TRY_ASSIGN(oct::AttenuationOptions options, attenuation_options(oct_request(arguments)));
  CGL_TRY_ASSIGN(options.pool, context.pool());
  oct::SlabVolume slabs(file.volume);
  CGL_TRY_ASSIGN(const oct::AttenuationReport report, oct::compensate_attenuation(slabs, options));
  const double per_mm = report.mean_attenuation * 1000.0 / file.voxel_um[0];
  const FitJson about = {{"method", arguments.text("method")},
                         {"strength", options.strength},
                         {"noise_floor", report.noise_floor},
                         {"mean_attenuation_per_plane", report.mean_attenuation},
                         {"mean_attenuation_per_mm", per_mm}};
  return finish_oct_stage(output, file, about, fmt::format("mean attenuation {:.3f} per mm", per_mm), arguments,
                          context);
}

Status run_oct_normalise(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(input, arguments, context));
  oct::NormaliseOptions options;
  CGL_TRY_ASSIGN(options.pool, context.pool());
  oct::SlabVolume slabs(file.volume);
  CGL_TRY_ASSIGN(const oct::NormaliseReport report,
                 add_file_context(oct::normalise_planes(slabs, options), "reading", input.native()));
  const FitJson about = {{"span", report.span}, {"backgrounds", report.backgrounds}};
  return finish_oct_stage(output, file, about, fmt::format("span {:.4g}", report.span), arguments, context);
}

}  // namespace cingulum
