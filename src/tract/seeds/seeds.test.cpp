#include "tract/seeds/seeds.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

#include "formats/tractogram.hpp"
#include "streamlines/voxel_traversal.hpp"

namespace cingulum::seeds_tests {
namespace {

using numerics::Vec3;

ImageGeometry geometry() {
  ImageGeometry g;
  g.size = {300, 5, 4};
  g.voxel_to_world.rows = {0, -2, 0, 10, 1.5, 0, 0, -20, 0, 0, 3, 5};
  return g;
}

std::vector<std::uint8_t> mask() {
  std::vector<std::uint8_t> m(300 * 5 * 4, 0);
  for (const std::size_t i : {0u, 7u, 299u, 1499u, 3000u, 5999u}) m[i] = 1;
  return m;
}

std::vector<Vec3> all_of(const Seeds& seeds, std::uint64_t first, std::size_t count) {
  std::vector<Vec3> positions(count);
  seeds.fill(first, positions);
  return positions;
}

std::size_t voxel_index_of(Vec3 p) {
  const VoxelIndex v = voxel_of({p.x, p.y, p.z});
  return static_cast<std::size_t>(v.i + 300 * (v.j + 5 * v.k));
}

struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("seeds_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt");
  explicit TemporaryFile(const std::string& text) { std::ofstream(path) << text; }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

TEST(seeds, random_seeds_lie_in_voxels_of_the_mask_and_fill_them_evenly) {
  const auto m = mask();
  const auto seeds = random_seeds(geometry(), m, 60000, numerics::philox_key(11));
  ASSERT_TRUE(seeds);
  EXPECT_EQ((*seeds)->count(), 60000u);
  std::map<std::size_t, double> counts;
  double mean = 0;
  for (const Vec3 p : all_of(**seeds, 0, 60000)) {
    const std::size_t voxel = voxel_index_of(p);
    ASSERT_EQ(m[voxel], 1) << p.x << " " << p.y << " " << p.z;
    counts[voxel] += 1;
    mean += p.y - std::floor(p.y + 0.5f);
  }
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [voxel, count] : counts) chi_square += (count - 10000) * (count - 10000) / 10000;
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom, p = 0.001
  EXPECT_NEAR(mean / 60000, 0, 0.005);
}

TEST(seeds, a_seed_is_a_function_of_its_index_alone) {
  const auto m = mask();
  const auto few = random_seeds(geometry(), m, 10, numerics::philox_key(5)).value();
  const auto endless = random_seeds(geometry(), m, 0, numerics::philox_key(5)).value();
  EXPECT_EQ(endless->count(), std::uint64_t{1} << 32U);
  const auto first = all_of(*few, 0, 10);
  const auto again = all_of(*endless, 0, 1000);
  const auto part = all_of(*endless, 700, 100);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(first[i], again[i]);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(part[i], again[700 + i]);
  const auto other = all_of(*random_seeds(geometry(), m, 10, numerics::philox_key(6)).value(), 0, 10);
  EXPECT_FALSE(other[0] == first[0] && other[1] == first[1]);
}

TEST(seeds, positions_follow_the_contract) {
  // Philox4x32-10, counter (seed index, 0, 0, 0): draw 0 chooses the voxel, draws 1 to 3 the place.
  const auto m = mask();
  const std::vector<std::size_t> voxels = {0, 7, 299, 1499, 3000, 5999};
  const auto seeds = random_seeds(geometry(), m, 100, numerics::philox_key(0x100000002u)).value();
  for (std::uint32_t i = 0; i < 100; ++i) {
    const numerics::PhiloxBlock b = numerics::philox4x32_10({{i, 0, 0, 0}}, {2, 1});
    const auto voxel = voxels[static_cast<std::size_t>((std::uint64_t{b.word[0]} * 6) >> 32U)];
    const Vec3 p = all_of(*seeds, i, 1)[0];
    EXPECT_EQ(voxel_index_of(p), voxel);
    const double jitter = static_cast<double>(b.word[1] >> 8U) / 16777216.0 - 0.5;
    EXPECT_NEAR(p.x, static_cast<double>(voxel % 300) + jitter, 2e-5);
  }
}

TEST(seeds, far_from_the_origin_a_seed_stays_below_the_upper_face_of_its_voxel) {
  ImageGeometry g;
  g.size = {3000000, 1, 1};
  std::vector<std::uint8_t> m(3000000, 0);
  m[2999999] = 1;
  const auto seeds = random_seeds(g, m, 0, numerics::philox_key(0)).value();
  std::size_t at_face = 0;
  for (const Vec3 p : all_of(*seeds, 0, 20000)) {
    ASSERT_GE(p.x, 2999998.5f);
    ASSERT_LT(p.x, 2999999.5f);
    at_face += p.x == 2999999.25f ? 1 : 0;
  }
  EXPECT_GT(at_face, 4000u);  // float32 has quarters here: those that would round up are in the last one
}

TEST(seeds, n_per_voxel_gives_every_voxel_n) {
  const auto m = mask();
  const auto seeds = random_seeds_per_voxel(geometry(), m, 7, numerics::philox_key(1)).value();
  ASSERT_EQ(seeds->count(), 42u);
  std::map<std::size_t, int> counts;
  std::map<float, int> jitters;
  for (const Vec3 p : all_of(*seeds, 0, 42)) {
    ++counts[voxel_index_of(p)];
    ++jitters[p.z - std::floor(p.z + 0.5f)];
  }
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [voxel, count] : counts) EXPECT_EQ(count, 7);
  EXPECT_GT(jitters.size(), 35u);  // voxels do not share their jitter
}

TEST(seeds, a_grid_is_even_and_x_runs_fastest) {
  const auto m = mask();
  const auto seeds = grid_seeds(geometry(), m, {2, 1, 4}).value();
  ASSERT_EQ(seeds->count(), 48u);
  const auto p = all_of(*seeds, 8, 8);  // voxel 7
  EXPECT_EQ(p[0], (Vec3{6.75f, 0, -0.375f}));
  EXPECT_EQ(p[1], (Vec3{7.25f, 0, -0.375f}));
  EXPECT_EQ(p[2], (Vec3{6.75f, 0, -0.125f}));
  EXPECT_EQ(p[7], (Vec3{7.25f, 0, 0.375f}));
}

TEST(seeds, more_than_2_to_the_32_seeds_are_refused) {
  const auto m = mask();
  const auto random = random_seeds(geometry(), m, (std::uint64_t{1} << 32U) + 1, {});
  ASSERT_FALSE(random);
  EXPECT_NE(random.error().message().find("2^32"), std::string::npos);
  EXPECT_TRUE(random_seeds(geometry(), m, std::uint64_t{1} << 32U, {}));
  EXPECT_FALSE(random_seeds_per_voxel(geometry(), m, 4000000000u, {}));
  EXPECT_FALSE(grid_seeds(geometry(), m, {4000000000u, 4000000000u, 4000000000u}));
  EXPECT_FALSE(grid_seeds(geometry(), m, {1, 0, 1}));
  EXPECT_FALSE(random_seeds_per_voxel(geometry(), m, 0, {}));
}

TEST(seeds, an_empty_mask_and_a_mask_of_another_size_are_refused) {
  EXPECT_FALSE(random_seeds(geometry(), std::vector<std::uint8_t>(6000, 0), 5, {}));
  EXPECT_FALSE(random_seeds(geometry(), std::vector<std::uint8_t>(10, 1), 5, {}));
  EXPECT_FALSE(listed_seeds({}));
  EXPECT_FALSE(listed_seeds({{0, std::nanf(""), 0}}));
}

TEST(seeds, a_list_is_read_in_voxel_and_in_world_space) {
  const TemporaryFile file("# x y z\n1 2 3\n\n 4.5, -1e0, 0 # comment\r\n");
  const auto voxel = read_seed_positions(file.path, SeedSpace::voxel, geometry()).value();
  ASSERT_EQ(voxel.size(), 2u);
  EXPECT_EQ(voxel[1], (Vec3{4.5f, -1, 0}));
  // world = (-2 j + 10, 1.5 i - 20, 3 k + 5)
  const auto world = read_seed_positions(file.path, SeedSpace::world, geometry()).value();
  EXPECT_NEAR(world[0].x, 22 / 1.5, 1e-5);
  EXPECT_NEAR(world[0].y, 4.5, 1e-6);
  EXPECT_NEAR(world[0].z, -2.0 / 3, 1e-6);
}

TEST(seeds, a_damaged_list_is_refused_with_its_line) {
  for (const std::string text : {"1 2 3\n4 5\n", "1 2 3\n1 2 3 4\n", "0 0 0\n1 2 three\n"}) {
    const TemporaryFile file(text);
    const auto positions = read_seed_positions(file.path, SeedSpace::voxel, geometry());
    ASSERT_FALSE(positions);
    EXPECT_NE(positions.error().message().find("line 2"), std::string::npos) << positions.error().message();
  }
  const TemporaryFile empty("# nothing\n");
  EXPECT_FALSE(read_seed_positions(empty.path, SeedSpace::voxel, geometry()));
  const TemporaryFile far("1e30 0 0\n");
  EXPECT_FALSE(read_seed_positions(far.path, SeedSpace::voxel, geometry()));
}

TEST(seeds, world_directions_are_turned_into_image_axes) {
  const TemporaryFile file("0 3 0\n-1 0 0\n0 0 1\n");
  const auto directions = read_directions(file.path, SeedSpace::world, geometry()).value();
  EXPECT_NEAR(directions[0].x, 1, 1e-7);
  EXPECT_NEAR(directions[1].y, 1, 1e-7);
  EXPECT_NEAR(directions[2].z, 1, 1e-7);
  const TemporaryFile zero("0 0 0\n");
  EXPECT_FALSE(read_directions(zero.path, SeedSpace::voxel, geometry()));
}

TEST(seeds, end_points_of_a_tractogram_become_seeds) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "seeds_ends.trx";
  TractogramLayout layout;
  layout.reference = geometry();
  auto writer = TractogramWriter::create(path, layout, {.force = true}).value();
  TractogramBatch batch;
  batch.offsets = {0, 3, 4};
  batch.positions = {10, -20, 5, 0, 0, 0, 8, -17, 11, 6, -20, 5};
  ASSERT_TRUE(writer->append(batch));
  ASSERT_TRUE(writer->commit());
  const auto positions = seed_positions_of_ends(path, geometry());
  ASSERT_TRUE(positions) << positions.error().message();
  ASSERT_EQ(positions->size(), 3u);
  EXPECT_EQ((*positions)[0], (Vec3{0, 0, 0}));
  EXPECT_NEAR((*positions)[1].x, 2, 1e-6);
  EXPECT_NEAR((*positions)[1].y, 1, 1e-6);
  EXPECT_NEAR((*positions)[2].y, 2, 1e-6);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cingulum::seeds_tests
