#include "oct/simulate/tile_simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/thread_pool.hpp"
#include "oct/simulate/simulated_files.hpp"
#include "support/each_device.hpp"
#include "support/plain_simulation.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace tile_simulator_tests {

using cingulum::testing::EachDevice;
using cingulum::testing::fails_with;

SimulationPlan two_tiles() {
  return mosaic_plan(11, {1, 2}, {37, 19, 70}, 12);
}

struct NamedScene {
  const char* name;
  SimulatedScene scene;
};

// Each with something that the others lack.
std::vector<NamedScene> scenes() {
  std::vector<NamedScene> list;
  const auto add = [&](const char* name, const SimulationPlan& plan) {
    auto scene = make_scene(plan);
    EXPECT_TRUE(scene) << name;
    list.push_back({name, std::move(*scene)});
  };
  add("as it is", two_tiles());
  SimulationPlan plan = two_tiles();
  plan.seed = 0xfedcba9876543210u;
  plan.galvo_lines = 9;
  plan.tissue_radius = 0.6;
  plan.flat_field = 0.3;
  add("galvo band, agarose, uneven light", plan);
  plan = two_tiles();
  plan.speckle_shape = 0;
  plan.curvature_planes = -9;
  plan.focus_plane = 10;
  plan.rayleigh_planes = 25;
  plan.noise_floor = 0.01;
  add("no speckle, axial profile", plan);
  plan = two_tiles();
  plan.slices = 3;
  plan.interval_planes = 7;
  plan.slice_rotation_deg = 5;
  plan.slice_shift_px = 3;
  plan.motor_shift_px = 4;
  plan.motor_jitter_px = 2;
  plan.motor_scale = 1.1;
  plan.slice_gain_low = 0.5;
  plan.slice_gain_high = 2;
  plan.speckle_shape = 7;
  add("turned slices", plan);
  plan = two_tiles();
  plan.texture_strength = 0;
  plan.tile_columns = 64;
  plan.galvo_lines = 1;
  add("no texture", plan);
  return list;
}

// (row, A-line, plane), as a scanner stores it.
BulkVector<float> acquired(const SimulatedScene& scene, const HostVolume& tile) {
  const HostVolume raw = with_galvo_band(scene, tile);
  BulkVector<float> values;
  values.reserve(raw.values.size());
  for (std::size_t r = 0; r < raw.rows; ++r) {
    for (std::size_t c = 0; c < raw.columns; ++c) {
      for (std::size_t z = 0; z < raw.planes; ++z) values.push_back(raw.at(z, r, c));
    }
  }
  return values;
}

::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (numerics::float_bits(a[i]) != numerics::float_bits(b[i])) {
      return ::testing::AssertionFailure() << "number " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

class TileSimulatorTest : public EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_OK_AND_ASSIGN(simulator_, TileSimulator::create(device()));
  }
  [[nodiscard]] TileSimulator& simulator() const { return *simulator_; }

 private:
  std::unique_ptr<TileSimulator> simulator_;
};

TEST_P(TileSimulatorTest, tiles_have_the_bits_of_their_definition_in_either_order) {
  for (const auto& [name, scene] : scenes()) {
    for (const std::size_t tile : {std::size_t{1}, scene.tiles.size() - 2}) {
      const HostVolume expected = simulate_tile(scene, tile);
      for (const TileOrder order : {TileOrder::planes, TileOrder::acquired}) {
        ASSERT_OK_AND_ASSIGN(const TileMemory memory, simulator().memory(voxels_of(scene.plan, order)));
        ASSERT_OK(simulator().simulate(scene, tile, order, memory));
        EXPECT_TRUE(
            same_bits(memory.values(), order == TileOrder::planes ? expected.values : acquired(scene, expected)))
            << name << ", tile " << tile << ", order " << static_cast<int>(order);
      }
    }
  }
}

TEST_P(TileSimulatorTest, pieces_of_a_tile_have_the_same_bits) {
  // Some of 37 planes or 19 rows at a time: windows of 25 and 33 reach beyond them.
  ASSERT_OK_AND_ASSIGN(const auto small, TileSimulator::create(device(), 460000));
  for (const auto& [name, scene] : scenes()) {
    for (const TileOrder order : {TileOrder::planes, TileOrder::acquired}) {
      ASSERT_OK_AND_ASSIGN(const TileMemory whole, simulator().memory(voxels_of(scene.plan, order)));
      ASSERT_OK_AND_ASSIGN(const TileMemory pieces, small->memory(voxels_of(scene.plan, order)));
      ASSERT_OK(simulator().simulate(scene, 1, order, whole));
      ASSERT_OK(small->simulate(scene, 1, order, pieces));
      EXPECT_TRUE(same_bits(pieces.values(), whole.values())) << name << ", order " << static_cast<int>(order);
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto tiny, TileSimulator::create(device(), 20000));
  const SimulatedScene scene = scenes().front().scene;
  ASSERT_OK_AND_ASSIGN(const TileMemory memory, tiny->memory(voxels_of(scene.plan, TileOrder::planes)));
  EXPECT_TRUE(fails_with(tiny->simulate(scene, 1, TileOrder::planes, memory), ErrorKind::device,
                         "a plane of a tile of 37 x 19 x 70 voxels with its neighbours is more than 20000 numbers"));
  EXPECT_TRUE(fails_with(tiny->simulate(scene, 1, TileOrder::acquired, memory), ErrorKind::device,
                         "a row of a tile of 37 x 19 x 70 voxels"));
}

TEST_P(TileSimulatorTest, textures_have_the_bits_of_their_definition_in_any_pieces) {
  const SampleBox box{-7, -20, 3, 31, 40, 90};
  const HostVolume expected = simulate_texture(5, 0.35, box);
  // All at once; whole planes; rows of few planes.
  for (const std::uint64_t most : {UINT64_MAX, std::uint64_t{320000}, std::uint64_t{150000}}) {
    ASSERT_OK_AND_ASSIGN(const auto limited, TileSimulator::create(device(), most));
    std::vector<float> values(expected.values.size());
    ASSERT_OK(limited->texture(5, 0.35, box, values));
    EXPECT_TRUE(same_bits(values, expected.values)) << most;
  }
}

using Files = std::map<std::string, std::string>;

Files files_under(const std::filesystem::path& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).native()] =
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

TEST_P(TileSimulatorTest, files_are_the_same_for_every_device_and_number_of_threads) {
  SimulationPlan plan = two_tiles();
  plan.grid_rows = 2;
  plan.slices = 2;
  plan.galvo_lines = 5;
  plan.missing = {{1, 0, 1}};
  ASSERT_OK_AND_ASSIGN(const SimulatedScene scene, make_scene(plan));
  ASSERT_OK_AND_ASSIGN(Device* const cpu, cingulum::testing::registry().select_one("cpu"));
  ASSERT_OK_AND_ASSIGN(const auto other, TileSimulator::create(*cpu));
  for (const SimulatedLayout layout : {SimulatedLayout::raw, SimulatedLayout::table}) {
    const TemporaryFolder folder;
    SimulatedFilesOptions options;
    options.layout = layout;
    options.files_per_tile = 3;
    options.sample_volume = layout == SimulatedLayout::table;
    ASSERT_OK(write_simulation_by_cpu(folder / "expected", scene, options));
    const Files expected = files_under(folder / "expected");
    // Seven tiles of eight.
    ASSERT_EQ(expected.count("tile_x00_y00_z01/image_00002.bin"), layout == SimulatedLayout::raw ? 1u : 0u);
    ASSERT_EQ(expected.count("tile_x01_y00_z01/image_00000.bin"), 0u);
    if (layout == SimulatedLayout::table) {
      const std::string& table = expected.at("tiles.csv");
      ASSERT_EQ(std::count(table.begin(), table.end(), '\n'), 8);
    }
    for (const int threads : {1, 3}) {
      ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::create(threads));
      options.pool = pool.get();
      options.simulators = {&simulator()};
      if (threads == 3) options.simulators.push_back(other.get());
      const std::string name = "of " + std::to_string(threads);
      ASSERT_OK_AND_ASSIGN(const SimulatedFiles written, write_simulation(folder / name, scene, {}, options));
      EXPECT_EQ(written.tiles, 7u);
      const Files files = files_under(folder / name);
      ASSERT_EQ(files.size(), expected.size());
      for (const auto& [path, bytes] : expected) EXPECT_TRUE(files.at(path) == bytes) << path << ", " << name;
    }
  }
}

TEST_P(TileSimulatorTest, a_cancelled_simulation_leaves_nothing) {
  ASSERT_OK_AND_ASSIGN(const SimulatedScene scene, make_scene(two_tiles()));
  const TemporaryFolder folder;
  const CancelSource source;
  SimulatedFilesOptions options;
  options.simulators = {&simulator()};
  options.run.cancel = source.token();
  CancelSource(source).cancel();
  EXPECT_TRUE(fails_with(write_simulation(folder / "a", scene, {}, options), ErrorKind::interrupted, ""));
  EXPECT_TRUE(folder.names().empty());
  ASSERT_OK_AND_ASSIGN(const TileMemory memory, simulator().memory(voxels_of(scene.plan, TileOrder::planes)));
  EXPECT_TRUE(fails_with(simulator().simulate(scene, 0, TileOrder::planes, memory, source.token()),
                         ErrorKind::interrupted, ""));
}

CGL_FOR_EACH_DEVICE(TileSimulatorTest);

}  // namespace tile_simulator_tests
}  // namespace cingulum::oct
