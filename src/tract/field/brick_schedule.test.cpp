#include "tract/field/brick_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device/cpu/cpu_device.hpp"
#include "support/analytic_field.hpp"

namespace cingulum {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

// A field of 4 x 3 x 20 voxels in bricks of a few planes.
struct Cut {
  Field field = test::tensor_field(
      test::grid(4, 3, 20, {1, 1, 1}),
      [](Vec3d) {
        return Vec3d{0, 0, 1};
      },
      [](Vec3d) { return 1.0f; });
  FieldBricks bricks = FieldBricks::cut(field, 2, field.stored_bytes().size() / 3);
};

TEST(BrickSchedule, seeds_of_a_brick_follow_each_other_in_the_order_that_they_had) {
  const Cut cut;
  ASSERT_GE(cut.bricks.size(), 3u);
  std::vector<Vec3> positions;
  for (std::uint32_t i = 0; i < 60; ++i) positions.push_back({1, 1, static_cast<float>(i * 7 % 20)});
  std::vector<std::uint32_t> order(positions.size());
  std::iota(order.begin(), order.end(), 0u);
  sort_by_brick(cut.bricks, positions, order);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint32_t before = cut.bricks.brick_at(positions[order[i - 1]].z);
    const std::uint32_t here = cut.bricks.brick_at(positions[order[i]].z);
    EXPECT_TRUE(before < here || (before == here && order[i - 1] < order[i]));
  }
}

TEST(FieldBricks, have_all_planes_once_and_bring_those_in_reach) {
  const Cut whole;
  for (const std::uint32_t reach : {1u, 2u, 3u}) {
    for (const std::uint64_t share : {2u, 3u, 5u}) {
      const FieldBricks bricks = FieldBricks::cut(whole.field, reach, whole.field.stored_bytes().size() / share);
      SCOPED_TRACE(fmt::format("reach {}, a part of {}", reach, share));
      if (bricks.empty()) continue;
      EXPECT_GE(bricks.size(), share);
      EXPECT_LE(bricks.largest_bytes(), whole.field.stored_bytes().size() / share);
      std::uint32_t next = 0;
      for (std::size_t i = 0; i < bricks.size(); ++i) {
        const FieldBrick& brick = bricks[i];
        EXPECT_EQ(brick.first_plane, next);
        next = brick.end_plane;
        EXPECT_GT(brick.end_plane, brick.first_plane);
        EXPECT_EQ(brick.first_loaded, brick.first_plane > reach ? brick.first_plane - reach : 0);
        EXPECT_EQ(brick.end_loaded, std::min(20u, brick.end_plane + reach));
        // The voxels of the loaded planes have their records, twelve to a plane; record 0 of the field is none of them.
        EXPECT_EQ(brick.first_record, 1 + 12 * brick.first_loaded);
        EXPECT_EQ(brick.end_record, 1 + 12 * brick.end_loaded);
        const auto numbers = bricks.record_of_voxel(whole.field, i);
        EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 0u),
                  12 * (20 - static_cast<std::ptrdiff_t>(brick.end_loaded - brick.first_loaded)));
        // A plane's nearest places are half a voxel around it, the lower face included.
        if (i > 0) {
          EXPECT_EQ(bricks.low(i), static_cast<float>(brick.first_plane) - 0.5f);
          EXPECT_EQ(bricks.brick_at(bricks.low(i)), i);
          EXPECT_EQ(bricks.brick_at(std::nextafter(bricks.low(i), -1.0f)), i - 1);
          EXPECT_EQ(bricks.high(i - 1), bricks.low(i));
        }
      }
      EXPECT_EQ(next, 20u);
    }
  }
  EXPECT_FALSE(FieldBricks::cut(whole.field, 1, whole.field.stored_bytes().size() / 3).empty());
  EXPECT_TRUE(FieldBricks::cut(whole.field, 1, 100).empty());
}

TEST(BrickSchedule, the_brick_for_which_most_wait_is_next_and_the_first_among_equals) {
  const Cut cut;
  BrickWaits waits(cut.bricks);
  EXPECT_FALSE(waits.most_wanted());
  const auto last = static_cast<std::uint32_t>(cut.bricks.size() - 1);
  EXPECT_EQ(waits.add(19.0f, 7), last);
  EXPECT_EQ(waits.most_wanted(), last);
  EXPECT_EQ(waits.add(0.0f, 3), 0u);
  EXPECT_EQ(waits.most_wanted(), 0u) << "the first among equals";
  EXPECT_EQ(waits.add(25.0f, 5), last) << "beyond the image the last brick serves";
  EXPECT_EQ(waits.most_wanted(), last);
  EXPECT_EQ(waits.take(last), (std::vector<std::uint32_t>{7, 5}));
  EXPECT_EQ(waits.most_wanted(), 0u);
  EXPECT_EQ(waits.take(0), (std::vector<std::uint32_t>{3}));
  EXPECT_FALSE(waits.most_wanted());
}

TEST(BrickSchedule, a_brick_is_brought_once_and_again_after_another_or_a_failure) {
  const Cut cut;
  const auto device = CpuDevice::create(1).value();
  const auto queue = device->create_queue().value();
  ResidentBrick resident;
  std::vector<BrickRecords> sent;
  std::vector<std::uint32_t> numbers;
  const auto bring = [&](std::uint32_t which, bool fails = false) {
    sent.clear();
    return resident.bring(
        cut.field, cut.bricks, which, *queue,
        [&](std::span<const std::uint32_t> of_voxels) -> Status {
          numbers.assign(of_voxels.begin(), of_voxels.end());
          return {};
        },
        [&](const BrickRecords& records) -> Status {
          sent.push_back(records);
          if (fails) return fail(ErrorKind::device, "no copy");
          return {};
        });
  };
  EXPECT_EQ(resident.which(), ResidentBrick::none);
  ASSERT_TRUE(bring(1));
  EXPECT_EQ(resident.which(), 1u);
  EXPECT_EQ(numbers, cut.bricks.record_of_voxel(cut.field, 1));
  // The zero record, then the brick's: each voxel's number is the place of its record.
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].at, 0u);
  EXPECT_EQ(sent[0].first, 0u);
  EXPECT_EQ(sent[0].count, 1u);
  for (std::size_t voxel = 0; voxel < numbers.size(); ++voxel) {
    if (numbers[voxel] == 0) continue;
    EXPECT_EQ(numbers[voxel] - sent[1].at + sent[1].first, cut.field.record_of_voxel[voxel]);
    EXPECT_LT(numbers[voxel] - sent[1].at, sent[1].count);
  }
  ASSERT_TRUE(bring(1));
  EXPECT_TRUE(sent.empty()) << "it is there";
  EXPECT_FALSE(bring(0, true));
  EXPECT_EQ(resident.which(), ResidentBrick::none) << "what is there is unknown after a failure";
  ASSERT_TRUE(bring(1));
  EXPECT_FALSE(sent.empty());
  resident.forget();
  ASSERT_TRUE(bring(1));
  EXPECT_FALSE(sent.empty());
}

}  // namespace
}  // namespace cingulum
