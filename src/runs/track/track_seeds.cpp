#include "runs/track/track_seeds.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "runs/track/track_options.hpp"
#include "streamlines/sphere_text.hpp"
#include "tract/seeds/sphere_seeds.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// 0: no end, where streamlines are selected.
std::uint64_t count_of_seeds(const TrackRequest& request) {
  return request.select.given() ? 0 : static_cast<std::uint64_t>(request.nseeds.value());
}

numerics::PhiloxKey key_of_seeds(const TrackRequest& request) {
  return numerics::philox_key(request.seed_seed.has() ? request.seed_seed.value() : request.seed.value());
}

}  // namespace

Result<std::array<std::uint32_t, 3>> parse_seed_grid(const std::string& text) {
  std::vector<std::uint32_t> parts;
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto number = parse_integer(rest.substr(0, end));
    if (!number || *number < 1 || *number > 1000) {
      return fail(ErrorKind::invalid_argument, "{} '{}': accepted is N or NxNxN with N from 1 to 1000",
                  argument_name("seed_grid"), text);
    }
    parts.push_back(static_cast<std::uint32_t>(*number));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (parts.size() == 1) parts.resize(3, parts[0]);
  if (parts.size() != 3) {
    return fail(ErrorKind::invalid_argument, "{} '{}': accepted is N or NxNxN with N from 1 to 1000",
                argument_name("seed_grid"), text);
  }
  return std::array<std::uint32_t, 3>{parts[0], parts[1], parts[2]};
}

Result<std::unique_ptr<Seeds>> seeds_in_sphere(const TrackRequest& request, const ImageGeometry& geometry) {
  const std::string& text = request.seed_sphere.value();
  const auto sphere = parse_sphere(text);
  if (!sphere) {
    return fail(ErrorKind::invalid_argument, "{} '{}': accepted is x,y,z,r in mm of world space",
                argument_name("seed_sphere"), text);
  }
  return add_context(sphere_seeds(geometry, *sphere, count_of_seeds(request), key_of_seeds(request)), "{} {}",
                     argument_name("seed_sphere"), text);
}

Result<std::unique_ptr<Seeds>> make_seeds(const TrackRequest& request, const TrackingData& data,
                                          const fs::path& seed_mask, const NamedGrid& grid) {
  const GivenArrays& arrays = request.arrays;
  int ways = 0;
  for (const auto& [given, name] : {std::pair{request.seeds_per_voxel.given(), "seeds_per_voxel"},
                                    {request.seed_grid.given(), "seed_grid"},
                                    {request.seed_file.given(), "seed_file"},
                                    {request.seed_ends.given(), "seed_ends"}}) {
    if (!given) continue;
    ++ways;
    if (!request.seed_sphere.given()) continue;
    return fail(ErrorKind::invalid_argument, "{} and {} exclude each other", argument_name("seed_sphere"),
                argument_name(name));
  }
  if (ways > 1 || (ways == 1 && request.nseeds.given())) {
    return fail(ErrorKind::invalid_argument, "{}, {}, {}, {} and {} exclude each other", argument_name("nseeds"),
                argument_name("seeds_per_voxel"), argument_name("seed_grid"), argument_name("seed_file"),
                argument_name("seed_ends"));
  }
  const SeedSpace space = request.seed_space.value() == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  if (request.seed_file.given()) {
    CGL_TRY_ASSIGN(auto positions, arrays.seeds ? take_seed_positions(*arrays.seeds, space, data.geometry)
                                                : read_seed_positions(request.seed_file.value(), space, data.geometry));
    return listed_seeds(std::move(positions));
  }
  if (request.seed_ends.given()) {
    CGL_TRY_ASSIGN(auto positions, seed_positions_of_ends(request.seed_ends.value(), data.geometry));
    return listed_seeds(std::move(positions));
  }
  const bool endless = request.select.given();
  if (endless && request.nseeds.given()) {
    return fail(ErrorKind::invalid_argument,
                "{} draws seeds until enough streamlines are kept; limit them by {}, not by {}",
                argument_name("select"), argument_name("max_seeds"), argument_name("nseeds"));
  }
  if (request.seed_sphere.given()) {
    if (arrays.seed_mask || !seed_mask.empty()) {
      return fail(ErrorKind::invalid_argument, "{} {}: the seed mask says where seeds lie, too; give one of them",
                  argument_name("seed_sphere"), request.seed_sphere.value());
    }
    return seeds_in_sphere(request, data.geometry);
  }
  const std::uint64_t count = count_of_seeds(request);
  const numerics::PhiloxKey key = key_of_seeds(request);
  std::vector<std::uint8_t> mask;
  if (arrays.seed_mask) {
    mask = *arrays.seed_mask;
  } else if (!seed_mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(seed_mask, "the seed mask", grid));
  } else {
    const auto threshold = static_cast<float>(stop_threshold(request));
    mask.assign(data.stop_map.size(), 0);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = data.mask[i] != 0 && data.stop_map[i] > threshold ? 1 : 0;
  }
  if (request.seeds_per_voxel.given()) {
    const std::int64_t per_voxel = request.seeds_per_voxel.value();
    if (per_voxel > std::int64_t{0xffffffff}) {
      return fail(ErrorKind::invalid_argument, "{} {}: a run takes at most 2^32 seeds",
                  argument_name("seeds_per_voxel"), per_voxel);
    }
    return random_seeds_per_voxel(data.geometry, mask, static_cast<std::uint32_t>(per_voxel), key);
  }
  if (request.seed_grid.given()) {
    CGL_TRY_ASSIGN(const auto per_axis, parse_seed_grid(request.seed_grid.value()));
    return grid_seeds(data.geometry, mask, per_axis);
  }
  return random_seeds(data.geometry, mask, count, key);
}

Result<std::optional<GivenDirections>> given_directions(const TrackRequest& request, const Seeds& seeds,
                                                        const ImageGeometry& geometry) {
  if (!request.directions.given()) return std::nullopt;
  const SeedSpace space = request.seed_space.value() == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  GivenDirections given;
  CGL_TRY_ASSIGN(given.directions, request.arrays.directions
                                       ? take_directions(*request.arrays.directions, space, geometry)
                                       : read_directions(request.directions.value(), space, geometry));
  if (given.directions.size() != seeds.count()) {
    return fail(ErrorKind::invalid_argument, "{} {}: {} directions for {} seeds; one for each is needed",
                argument_name("directions"), request.directions.value(), given.directions.size(), seeds.count());
  }
  return given;
}

Result<RegionRules> read_rules(const TrackRequest& request, const ImageGeometry& geometry) {
  RegionRules rules;
  const auto read = [&](const Parameter<std::vector<std::string>>& texts, std::string_view name,
                        std::vector<Region>& list) -> Status {
    for (const std::string& text : texts.value()) {
      CGL_TRY_ASSIGN(Region region, add_context(read_region(text, geometry), "{}", argument_name(name)));
      list.push_back(std::move(region));
    }
    return {};
  };
  CGL_TRY(read(request.include, "include", rules.include));
  CGL_TRY(read(request.include_ordered, "include_ordered", rules.include_ordered));
  CGL_TRY(read(request.exclude, "exclude", rules.exclude));
  CGL_TRY(read(request.stop, "stop", rules.stop));
  return rules;
}

Result<SelectionRules> selection_rules(const TrackRequest& request, const TrackingOptions& options,
                                       const TrackingPlan& plan, const ImageGeometry& geometry) {
  SelectionRules rules;
  rules.min_length_mm = options.min_length_mm;
  rules.max_length_mm = options.max_length_mm;
  rules.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
  CGL_TRY(limit_points(request, rules));
  CGL_TRY_ASSIGN(rules.regions, read_rules(request, geometry));
  return rules;
}

}  // namespace cingulum
