// `cingulum oct flatfield`, `profile`, `attenuation` and `normalise`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/oct_actions.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/fits/basic_fit.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/tiles/mosaic_grid.hpp"
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

Status print_fit(const FitJson& about, const fs::path& output, const std::string& line, VerbContext& context) {
  if (context.common().json) {
    FitJson json = about;
    json["output"] = output.native();
    context.print(json_text(json));
  } else {
    context.print_format("{}: {}\n", output.native(), line);
  }
  return {};
}

}  // namespace

Status run_oct_flatfield(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.empty()) return fail(ErrorKind::invalid_argument, "cingulum oct flatfield: name a mosaic grid");
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  std::vector<oct::HostImage> projections;
  std::vector<oct::OverlapPair> pairs;
  oct::VolumeFile first;
  oct::TileGrid first_grid;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(paths[i], arguments, context));
    const oct::HostVolume& volume = file.volume;
    CGL_TRY_ASSIGN(oct::TileGrid grid,
                   add_file_context(oct::tile_grid_of(file.attributes, {volume.planes, volume.rows, volume.columns}),
                                    "reading", paths[i]));
    CGL_TRY_ASSIGN(MosaicSample sample, sample_mosaic(volume, grid, *pool));
    for (oct::OverlapPair& pair : sample.pairs) {
      pair.first += projections.size();
      pair.second += projections.size();
      pairs.push_back(pair);
    }
    for (oct::HostImage& projection : sample.projections) projections.push_back(std::move(projection));
    if (i > 0) continue;
    first = std::move(file);
    first_grid = std::move(grid);
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
  oct::divide_by_field(first.volume, first_grid, fit.field, pool);
  const auto [low, high] = std::minmax_element(fit.field.values.begin(), fit.field.values.end());
  const FitJson about = {{"tiles", fit.tiles},
                         {"pairs", pairs.size()},
                         {"model", oct_model(arguments)},
                         {"smallest", *low},
                         {"largest", *high}};
  const std::string line = fmt::format("light from {:.3f} to {:.3f} by {} tiles", *low, *high, fit.tiles);
  CGL_TRY(write_oct_volume(stage_output(output, first.attributes, about, arguments), first.volume, first.voxel_um,
                           oct_request(arguments), context));
  return print_fit(about, output, line, context);
}

Status run_oct_profile(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
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
  CGL_TRY(write_oct_volume(stage_output(output, file.attributes, about, arguments), file.volume, file.voxel_um,
                           oct_request(arguments), context));
  return print_fit(about, output, fmt::format("profile of {} A-lines of agarose", lines), context);
}

Status run_oct_attenuation(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
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
  CGL_TRY(write_oct_volume(stage_output(output, file.attributes, about, arguments), file.volume, file.voxel_um,
                           oct_request(arguments), context));
  return print_fit(about, output, fmt::format("mean attenuation {:.3f} per mm", per_mm), context);
}

Status run_oct_normalise(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
  CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(input, arguments, context));
  oct::NormaliseOptions options;
  CGL_TRY_ASSIGN(options.pool, context.pool());
  oct::SlabVolume slabs(file.volume);
  CGL_TRY_ASSIGN(const oct::NormaliseReport report,
                 add_file_context(oct::normalise_planes(slabs, options), "reading", input.native()));
  const FitJson about = {{"span", report.span}, {"backgrounds", report.backgrounds}};
  CGL_TRY(write_oct_volume(stage_output(output, file.attributes, about, arguments), file.volume, file.voxel_um,
                           oct_request(arguments), context));
  return print_fit(about, output, fmt::format("span {:.4g}", report.span), context);
}

}  // namespace cingulum
