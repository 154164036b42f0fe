#include "oct/simulate/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"

namespace cingulum::oct {
namespace {

constexpr std::array<double, 3> texture_sigma = {3, 4, 4};  // planes, rows, columns

// What draws of oct_placement are for; word 0 of their counter.
enum class PlacementDraw : std::uint32_t {
  tile_jitter,
  tile_depth,
  motor_shift,
  slice_shift,
  slice_rotation,
  slice_gain
};

numerics::PhiloxBlock placement_block(std::uint64_t seed, PlacementDraw what, std::size_t which) {
  const numerics::DrawCounter counter{static_cast<std::uint32_t>(what),
                                      numerics::DrawPurpose::oct_placement,
                                      0u,
                                      0u,
                                      static_cast<std::uint32_t>(which),
                                      0u};
  return numerics::random_block(numerics::philox_key(seed), counter, 0u);
}

std::array<double, 2> normal_pair(std::uint64_t seed, PlacementDraw what, std::size_t which) {
  const numerics::PhiloxBlock block = placement_block(seed, what, which);
  const numerics::NormalPair<double> pair = numerics::normals64_from_words(block.word[0], block.word[1]);
  return {pair.first, pair.second};
}

std::vector<float> texture_window(double sigma) {
  const int radius = static_cast<int>(4 * sigma + 0.5);
  std::vector<double> taps;
  double squares = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(numerics::exponential(-0.5 * (i * i) / (sigma * sigma)));
    squares += taps.back() * taps.back();
  }
  std::vector<float> rounded;
  for (const double tap : taps) rounded.push_back(static_cast<float>(tap / numerics::root(squares)));
  return rounded;
}

double mean_square(std::size_t pixels) {
  const double n = static_cast<double>(pixels);
  return (1.0 - 1.0 / (n * n)) / 3.0;
}

}  // namespace

std::array<std::vector<float>, 3> texture_windows() {
  return {texture_window(texture_sigma[0]), texture_window(texture_sigma[1]), texture_window(texture_sigma[2])};
}

PreparedTile prepare_tile(const SimulatedScene& scene, std::size_t number) {
  const SimulationPlan& plan = scene.plan;
  const TileTruth& tile = scene.tiles[number];
  const SliceTruth& slice = scene.slices[tile.slice];
  const double angle = slice.rotation_deg * radians_per_degree;
  const numerics::SineCosine<double> turn = numerics::sine_cosine(angle);
  const std::array<double, 2> centre = {scene.extent_px[0] / 2, scene.extent_px[1] / 2};
  // (row, column) of the sample = turn (p - centre) + centre + shift, p = place + pixel.
  const double row0 = tile.place_px[0] - centre[0];
  const double column0 = tile.place_px[1] - centre[1];
  const double sample_row = turn.cosine * row0 - turn.sine * column0 + centre[0] + slice.shift_px[0];
  const double sample_column = turn.sine * row0 + turn.cosine * column0 + centre[1] + slice.shift_px[1];
  const double last_row = static_cast<double>(plan.tile_rows) - 1;
  const double last_column = static_cast<double>(plan.tile_columns) - 1;
  std::array<double, 2> low = {sample_row, sample_column};
  std::array<double, 2> high = low;
  for (const double r : {0.0, last_row}) {
    for (const double c : {0.0, last_column}) {
      const double at_row = sample_row + turn.cosine * r - turn.sine * c;
      const double at_column = sample_column + turn.sine * r + turn.cosine * c;
      low = {std::min(low[0], at_row), std::min(low[1], at_column)};
      high = {std::max(high[0], at_row), std::max(high[1], at_column)};
    }
  }
  const double mean = plan.curvature_planes * 0.5 * (mean_square(plan.tile_rows) + mean_square(plan.tile_columns));
  const double bend = std::abs(plan.curvature_planes) + std::abs(mean) + std::abs(tile.depth_offset_planes);
  PreparedTile prepared{};
  SampleBox& box = prepared.box;
  const double first_plane = static_cast<double>(tile.slice * plan.interval_planes);
  box.plane = static_cast<std::int32_t>(std::floor(first_plane - bend)) - 1;
  box.row = static_cast<std::int32_t>(std::floor(low[0])) - 1;
  box.column = static_cast<std::int32_t>(std::floor(low[1])) - 1;
  box.planes = plan.tile_planes + 2 * static_cast<std::size_t>(std::ceil(bend)) + 4;
  box.rows = static_cast<std::size_t>(std::ceil(high[0]) - box.row) + 2;
  box.columns = static_cast<std::size_t>(std::ceil(high[1]) - box.column) + 2;

  TileModel& model = prepared.model;
  const auto narrow = [](double value) { return static_cast<float>(value); };
  model.sample_row = narrow(sample_row - box.row);
  model.row_by_row = narrow(turn.cosine);
  model.row_by_column = narrow(-turn.sine);
  model.sample_column = narrow(sample_column - box.column);
  model.column_by_row = narrow(turn.sine);
  model.column_by_column = narrow(turn.cosine);
  model.sample_plane = narrow(first_plane - box.plane);
  const double by_row = plan.tilt_row_planes / scene.extent_px[0];
  const double by_column = plan.tilt_column_planes / scene.extent_px[1];
  model.surface = narrow(plan.surface_plane + by_row * row0 + by_column * column0);
  model.surface_by_row = narrow(by_row);
  model.surface_by_column = narrow(by_column);
  model.row_scale = narrow(2.0 / static_cast<double>(plan.tile_rows));
  model.column_scale = narrow(2.0 / static_cast<double>(plan.tile_columns));
  model.curvature = narrow(plan.curvature_planes);
  model.curvature_mean = narrow(mean);
  model.depth_offset = narrow(tile.depth_offset_planes);
  model.flat_field = narrow(plan.flat_field);
  model.focus_plane = narrow(plan.focus_plane);
  model.rayleigh_planes = narrow(plan.rayleigh_planes);
  model.water = narrow(plan.water);
  model.tissue = narrow(plan.tissue);
  model.agarose = narrow(plan.agarose);
  model.decay = narrow(2.0 * plan.attenuation);
  model.noise_floor = narrow(plan.noise_floor);
  model.gain = narrow(slice.gain);
  model.tissue_row = narrow(centre[0] - box.row);
  model.tissue_column = narrow(centre[1] - box.column);
  model.tissue_row_radius = narrow(plan.tissue_radius * scene.extent_px[0] / 2);
  model.tissue_column_radius = narrow(plan.tissue_radius * scene.extent_px[1] / 2);
  return prepared;
}

std::size_t SimulationPlan::step_rows() const {
  return static_cast<std::size_t>(std::lround(static_cast<double>(tile_rows) * (1.0 - overlap)));
}
std::size_t SimulationPlan::step_columns() const {
  return static_cast<std::size_t>(std::lround(static_cast<double>(tile_columns) * (1.0 - overlap)));
}

Status check_simulation(const SimulationPlan& plan) {
  const auto refuse_zero = [](std::size_t value, const char* name) -> Status {
    if (value > 0) return {};
    return fail_argument(name, "{} 0: accepted is 1 or more", argument_name(name));
  };
  CGL_TRY(refuse_zero(plan.grid_rows * plan.grid_columns, "grid"));
  CGL_TRY(refuse_zero(plan.tile_planes * plan.tile_rows * plan.tile_columns, "tile"));
  CGL_TRY(refuse_zero(plan.slices, "slices"));
  CGL_TRY(refuse_zero(plan.interval_planes, "interval"));
  if (!(plan.overlap >= 0 && plan.overlap < 1)) {
    return fail_argument("overlap", "{} {}: accepted is 0 to below 1", argument_name("overlap"), plan.overlap);
  }
  // Flat field 0.5 would reach zero in the corners, where the distance from the centre is the root of two.
  if (!(plan.flat_field >= 0 && plan.flat_field < 0.5)) {
    return fail_argument("flat_field", "{} {}: accepted is 0 to below 0.5", argument_name("flat_field"),
                         plan.flat_field);
  }
  if (plan.speckle_shape > 1000) {
    return fail_argument("speckle", "{} {}: accepted is at most 1000", argument_name("speckle"), plan.speckle_shape);
  }
  if (plan.galvo_lines > plan.tile_columns / 2) {
    return fail_argument("galvo_lines", "{} {}: accepted is at most half of the {} A-lines of a tile",
                         argument_name("galvo_lines"), plan.galvo_lines, plan.tile_columns);
  }
  const double reach = 6 * (plan.motor_jitter_px + plan.slice_shift_px + plan.motor_shift_px) + 100;
  const double rows = static_cast<double>(plan.grid_rows * plan.tile_rows) * plan.motor_scale;
  const double columns = static_cast<double>(plan.grid_columns * plan.tile_columns) * plan.motor_scale;
  if (!(rows + columns + reach < lattice_limit)) {
    return fail_argument("grid", "{} {},{}: a mosaic of {:.0f} x {:.0f} pixels; accepted are {} in all",
                         argument_name("grid"), plan.grid_rows, plan.grid_columns, rows, columns, lattice_limit);
  }
  if (plan.tile_planes * plan.tile_rows * plan.tile_columns > std::numeric_limits<std::uint32_t>::max()) {
    return fail_argument("tile", "{}: a tile has at most 2^32 voxels", argument_name("tile"));
  }
  for (const auto& [slice, row, column] : plan.missing) {
    if (slice < plan.slices && row < plan.grid_rows && column < plan.grid_columns) continue;
    return fail_argument("missing", "{} {},{},{}: there is no such tile", argument_name("missing"), slice, row, column);
  }
  return {};
}

Result<SimulatedScene> make_scene(const SimulationPlan& plan) {
  CGL_TRY(check_simulation(plan));
  SimulatedScene scene;
  scene.plan = plan;
  const double step_rows = static_cast<double>(plan.step_rows());
  const double step_columns = static_cast<double>(plan.step_columns());
  scene.extent_px = {
      step_rows * static_cast<double>(plan.grid_rows - 1) + static_cast<double>(plan.tile_rows),
      step_columns * static_cast<double>(plan.grid_columns - 1) + static_cast<double>(plan.tile_columns)};
  scene.galvo_last_line = (plan.tile_columns * 3) / 4;
  const numerics::SineCosine<double> turn = numerics::sine_cosine(plan.motor_angle_deg * radians_per_degree);
  for (std::size_t s = 0; s < plan.slices; ++s) {
    SliceTruth slice;
    // The first slice is the frame of the others.
    if (s > 0) {
      const auto known = normal_pair(plan.seed, PlacementDraw::motor_shift, s);
      const auto unknown = normal_pair(plan.seed, PlacementDraw::slice_shift, s);
      for (std::size_t d = 0; d < 2; ++d) {
        slice.motor_shift_px[d] = plan.motor_shift_px * known[d];
        slice.shift_px[d] = plan.slice_shift_px * unknown[d];
      }
      slice.rotation_deg = plan.slice_rotation_deg * normal_pair(plan.seed, PlacementDraw::slice_rotation, s)[0];
    }
    const double share =
        numerics::uniform64_from_word(placement_block(plan.seed, PlacementDraw::slice_gain, s).word[0]);
    slice.gain = plan.slice_gain_low + share * (plan.slice_gain_high - plan.slice_gain_low);
    scene.slices.push_back(slice);
    for (std::size_t r = 0; r < plan.grid_rows; ++r) {
      for (std::size_t c = 0; c < plan.grid_columns; ++c) {
        TileTruth tile{.slice = s, .row = r, .column = c};
        const std::size_t number = scene.tiles.size();
        tile.stage_px = {step_rows * static_cast<double>(r) + slice.motor_shift_px[0],
                         step_columns * static_cast<double>(c) + slice.motor_shift_px[1]};
        const auto jitter = normal_pair(plan.seed, PlacementDraw::tile_jitter, number);
        const auto& at = tile.stage_px;
        tile.place_px = {
            plan.motor_scale * (turn.cosine * at[0] - turn.sine * at[1]) + plan.motor_jitter_px * jitter[0],
            plan.motor_scale * (turn.sine * at[0] + turn.cosine * at[1]) + plan.motor_jitter_px * jitter[1]};
        tile.depth_offset_planes =
            plan.depth_jitter_planes * normal_pair(plan.seed, PlacementDraw::tile_depth, number)[0];
        tile.missing = std::find(plan.missing.begin(), plan.missing.end(), std::array{s, r, c}) != plan.missing.end();
        scene.tiles.push_back(tile);
      }
    }
  }
  return scene;
}

HostImage true_interface(const SimulatedScene& scene, std::size_t tile) {
  const PreparedTile prepared = prepare_tile(scene, tile);
  HostImage image(scene.plan.tile_rows, scene.plan.tile_columns);
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (std::size_t c = 0; c < image.columns; ++c) {
      image.at(r, c) = static_cast<double>(
          line_model(prepared.model, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(c)).surface);
    }
  }
  return image;
}

namespace {

// f(u^2 + v^2) over the pixels of a tile.
template <class Function>
HostImage radial_image(const SimulationPlan& plan, const Function& function) {
  HostImage image(plan.tile_rows, plan.tile_columns);
  for (std::size_t r = 0; r < image.rows; ++r) {
    const double v = (2 * static_cast<double>(r) + 1) / static_cast<double>(image.rows) - 1;
    for (std::size_t c = 0; c < image.columns; ++c) {
      const double u = (2 * static_cast<double>(c) + 1) / static_cast<double>(image.columns) - 1;
      image.at(r, c) = function(u * u + v * v);
    }
  }
  return image;
}

double mean_of(const HostImage& image) {
  return std::accumulate(image.values.begin(), image.values.end(), 0.0) / static_cast<double>(image.values.size());
}

}  // namespace

HostImage true_curvature(const SimulationPlan& plan) {
  HostImage image = radial_image(plan, [&](double square) { return plan.curvature_planes * 0.5 * square; });
  const double mean = mean_of(image);
  for (double& value : image.values) value -= mean;
  return image;
}

HostImage true_flat_field(const SimulationPlan& plan) {
  HostImage image = radial_image(plan, [&](double square) { return 1.0 - plan.flat_field * square; });
  const double mean = mean_of(image);
  for (double& value : image.values) value /= mean;
  return image;
}

}  // namespace cingulum::oct
