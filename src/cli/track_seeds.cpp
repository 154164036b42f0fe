#include "cli/track_seeds.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "cli/track_options.hpp"
#include "streamlines/sphere_text.hpp"
#include "tract/seeds/sphere_seeds.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// 0: no end, where streamlines are selected.
std::uint64_t count_of_seeds(const ParsedArguments& arguments) {
  return arguments.given("select") ? 0 : static_cast<std::uint64_t>(arguments.integer("nseeds"));
}

numerics::PhiloxKey key_of_seeds(const ParsedArguments& arguments) {
  return numerics::philox_key(arguments.has("seed-seed") ? arguments.key("seed-seed") : arguments.key("seed"));
}

}  // namespace

Result<std::array<std::uint32_t, 3>> parse_seed_grid(const std::string& text) {
  std::vector<std::uint32_t> parts;
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto number = parse_integer(rest.substr(0, end));
    if (!number || *number < 1 || *number > 1000) {
      return fail(ErrorKind::invalid_argument, "--seed-grid '{}': accepted is N or NxNxN with N from 1 to 1000", text);
    }
    parts.push_back(static_cast<std::uint32_t>(*number));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() == 1) parts.resize(3, parts[0]);
  if (parts.size() != 3) {
    return fail(ErrorKind::invalid_argument, "--seed-grid '{}': accepted is N or NxNxN with N from 1 to 1000", text);
  }
  return std::array<std::uint32_t, 3>{parts[0], parts[1], parts[2]};
}

Result<std::unique_ptr<Seeds>> seeds_in_sphere(const ParsedArguments& arguments, const ImageGeometry& geometry) {
  const std::string& text = arguments.text("seed-sphere");
  const auto sphere = parse_sphere(text);
  if (!sphere) {
    return fail(ErrorKind::invalid_argument, "--seed-sphere '{}': accepted is x,y,z,r in mm of world space", text);
  }
  return add_context(sphere_seeds(geometry, *sphere, count_of_seeds(arguments), key_of_seeds(arguments)),
                     "--seed-sphere {}", text);
}

Result<std::unique_ptr<Seeds>> make_seeds(const ParsedArguments& arguments, const TrackingData& data,
                                          const fs::path& seed_mask, const NamedGrid& grid, const GivenArrays& arrays) {
  int ways = 0;
  for (const char* name : {"seeds-per-voxel", "seed-grid", "seed-file", "seed-ends"}) {
    if (!arguments.given(name)) continue;
    ++ways;
    if (!arguments.given("seed-sphere")) continue;
    return fail(ErrorKind::invalid_argument, "--seed-sphere and --{} exclude each other", name);
  }
  if (ways > 1 || (ways == 1 && arguments.given("nseeds"))) {
    return fail(ErrorKind::invalid_argument,
                "--nseeds, --seeds-per-voxel, --seed-grid, --seed-file and --seed-ends exclude each other");
  }
  const SeedSpace space = arguments.text("seed-space") == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  if (arguments.given("seed-file")) {
    CGL_TRY_ASSIGN(auto positions, arrays.seeds
                                       ? take_seed_positions(*arrays.seeds, space, data.geometry)
                                       : read_seed_positions(arguments.text("seed-file"), space, data.geometry));
    return listed_seeds(std::move(positions));
  }
  if (arguments.given("seed-ends")) {
    CGL_TRY_ASSIGN(auto positions, seed_positions_of_ends(arguments.text("seed-ends"), data.geometry));
    return listed_seeds(std::move(positions));
  }
  const bool endless = arguments.given("select");
  if (endless && arguments.given("nseeds")) {
    return fail(ErrorKind::invalid_argument,
                "--select draws seeds until enough streamlines are kept; limit them by --max-seeds, not by --nseeds");
  }
  if (arguments.given("seed-sphere")) {
    if (arrays.seed_mask || !seed_mask.empty()) {
      return fail(ErrorKind::invalid_argument,
                  "--seed-sphere {}: the seed mask says where seeds lie, too; give one of them",
                  arguments.text("seed-sphere"));
    }
    return seeds_in_sphere(arguments, data.geometry);
  }
  const std::uint64_t count = count_of_seeds(arguments);
  const numerics::PhiloxKey key = key_of_seeds(arguments);
  std::vector<std::uint8_t> mask;
  if (arrays.seed_mask) {
    mask = *arrays.seed_mask;
  } else if (!seed_mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(seed_mask, "the seed mask", grid));
  } else {
    const auto threshold = static_cast<float>(stop_threshold(arguments));
    mask.assign(data.stop_map.size(), 0);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = data.mask[i] != 0 && data.stop_map[i] > threshold ? 1 : 0;
  }
  if (arguments.given("seeds-per-voxel")) {
    const std::int64_t per_voxel = arguments.integer("seeds-per-voxel");
    if (per_voxel > std::int64_t{0xffffffff}) {
      return fail(ErrorKind::invalid_argument, "--seeds-per-voxel {}: a run takes at most 2^32 seeds", per_voxel);
    }
    return random_seeds_per_voxel(data.geometry, mask, static_cast<std::uint32_t>(per_voxel), key);
  }
  if (arguments.given("seed-grid")) {
    CGL_TRY_ASSIGN(const auto per_axis, parse_seed_grid(arguments.text("seed-grid")));
    return grid_seeds(data.geometry, mask, per_axis);
  }
  return random_seeds(data.geometry, mask, count, key);
}

Result<std::optional<GivenDirections>> given_directions(const ParsedArguments& arguments, const Seeds& seeds,
                                                        const ImageGeometry& geometry, const GivenArrays& arrays) {
  if (!arguments.given("directions")) return std::nullopt;
  const SeedSpace space = arguments.text("seed-space") == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  GivenDirections given;
  CGL_TRY_ASSIGN(given.directions, arrays.directions ? take_directions(*arrays.directions, space, geometry)
                                                     : read_directions(arguments.text("directions"), space, geometry));
  if (given.directions.size() != seeds.count()) {
    return fail(ErrorKind::invalid_argument, "--directions {}: {} directions for {} seeds; one for each is needed",
                arguments.text("directions"), given.directions.size(), seeds.count());
  }
  return given;
}

Result<RegionRules> read_rules(const ParsedArguments& arguments, const ImageGeometry& geometry) {
  RegionRules rules;
  const auto read = [&](const char* option, std::vector<Region>& list) -> Status {
    for (const std::string& text : arguments.texts(option)) {
      CGL_TRY_ASSIGN(Region region, add_context(read_region(text, geometry), "--{}", option));
      list.push_back(std::move(region));
    }
    return {};
  };
  CGL_TRY(read("include", rules.include));
  CGL_TRY(read("include-ordered", rules.include_ordered));
  CGL_TRY(read("exclude", rules.exclude));
  CGL_TRY(read("stop", rules.stop));
  return rules;
}

Result<SelectionRules> selection_rules(const ParsedArguments& arguments, const TrackingOptions& options,
                                       const TrackingPlan& plan, const ImageGeometry& geometry) {
  SelectionRules rules;
  rules.min_length_mm = options.min_length_mm;
  rules.max_length_mm = options.max_length_mm;
  rules.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
  CGL_TRY(limit_points(arguments, rules));
  CGL_TRY_ASSIGN(rules.regions, read_rules(arguments, geometry));
  return rules;
}

}  // namespace cingulum
