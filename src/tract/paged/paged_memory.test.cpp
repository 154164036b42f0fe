#include "tract/paged/paged_memory.hpp"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.hpp"

namespace cingulum::paged_memory_tests {
namespace {

TrackingPlan plan_of(std::uint32_t max_directions, std::uint32_t max_steps) {
  TrackingPlan plan{};
  plan.max_directions = max_directions;
  plan.max_steps = max_steps;
  return plan;
}

// A page has 32 points; a half has a point more than steps, and the page that is begun.
TEST(LaneSizes, are_those_of_one_seed_computed_by_hand) {
  const LaneSizes sizes(plan_of(3, 100), 1000, false);
  EXPECT_EQ(sizes.seeds, 1u);
  EXPECT_EQ(sizes.directions, 3u * 12u);
  EXPECT_EQ(sizes.lines, 3u);
  EXPECT_EQ(sizes.halves, 6 * sizeof(kernel::HalfRecord));
  EXPECT_EQ(sizes.paused, 0u);
  EXPECT_EQ(sizes.pages, 6u * (4u + 1u));
  EXPECT_EQ(sizes.part_bytes, 12u * 603u) << "three lines of 201 points are less than a part";
  const LaneSizes in_bricks(plan_of(3, 100), 500, true);
  EXPECT_EQ(in_bricks.paused, 6 * sizeof(kernel::PausedHalf));
  EXPECT_EQ(in_bricks.part_bytes, 12u * 500u);
  EXPECT_EQ(LaneSizes(plan_of(3, 100), 5, false).part_bytes, 12u * 201u) << "a line is never cut";
  // Whole pages, and one step more.
  EXPECT_EQ(LaneSizes(plan_of(1, 96), 5, false).pages, 2u * 4u);
  EXPECT_EQ(LaneSizes(plan_of(1, 97), 5, false).pages, 2u * 5u);
}

TEST(LaneSizes, have_one_direction_at_least_and_as_many_as_a_seed_can_have_at_most) {
  EXPECT_EQ(LaneSizes(plan_of(0, 10), 5, false).lines, 1u);
  EXPECT_EQ(LaneSizes(plan_of(1, 10), 5, false).lines, 1u);
  EXPECT_EQ(LaneSizes(plan_of(32, 10), 5, false).lines, 32u);
  EXPECT_EQ(LaneSizes(plan_of(33, 10), 5, false).lines, 32u);
}

TEST(LaneSizes, of_plans_without_end_stay_below_131072_pages) {
  const LaneSizes sizes(plan_of(32, ~std::uint32_t{0} - 31), 1u << 20, false);
  EXPECT_EQ(sizes.pages, 131072u);
  EXPECT_EQ(sizes.part_bytes, 12u * 131072u * 32u);
}

TEST(LaneSizes, say_what_they_take) {
  const auto device = CpuDevice::create(1).value();
  for (const bool in_bricks : {false, true}) {
    for (const std::uint32_t directions : {1u, 7u, 32u}) {
      for (const std::uint32_t steps : {1u, 90u, 700u}) {
        const LaneSizes sizes(plan_of(directions, steps), 300, in_bricks);
        Caller caller;
        ASSERT_TRUE(caller.counters.reserve(*device, counter_bytes));
        ASSERT_TRUE(sizes.reserve(*device, caller));
        EXPECT_EQ(device->budget().used_bytes(), sizes.bytes());
        EXPECT_EQ(caller.pages_there(), sizes.pages);
        EXPECT_GE(caller.positions.buffer().bytes(), sizeof(numerics::Vec3));
        EXPECT_GE(caller.half_numbers.buffer().bytes(), 2 * directions * sizeof(std::uint32_t));
        EXPECT_GE(caller.output_offset.buffer().bytes(), directions * sizeof(std::uint32_t));
        for (const GrowingBuffer& part : caller.parts)
          EXPECT_EQ(part.buffer().bytes(), std::max<std::uint64_t>(sizes.part_bytes, 256));
      }
    }
  }
  EXPECT_EQ(device->budget().used_bytes(), 0u);
}

TEST(GrowingBuffer, grows_by_half_once_it_is_there_and_takes_less_where_there_is_less) {
  const auto device = CpuDevice::create(1).value();
  MemoryBudget& budget = device->budget();
  GrowingBuffer buffer;
  ASSERT_TRUE(buffer.reserve(*device, 1));
  EXPECT_EQ(buffer.buffer().bytes(), 256u);
  ASSERT_TRUE(buffer.reserve(*device, 256));
  EXPECT_EQ(budget.allocations(), 1u) << "it was there";
  ASSERT_TRUE(buffer.reserve(*device, 257));
  EXPECT_EQ(buffer.buffer().bytes(), 257u + 128u);
  // Room for what is asked, not for the half more: the old memory goes first.
  budget.set_limit(1000);
  ASSERT_TRUE(buffer.reserve(*device, 1000));
  EXPECT_EQ(buffer.buffer().bytes(), 1000u);
  EXPECT_FALSE(buffer.reserve(*device, 1001));
  EXPECT_EQ(budget.used_bytes(), 0u) << "the old memory is gone";
  GrowingBuffer careful;
  ASSERT_TRUE(careful.reserve(*device, 400, true));
  EXPECT_FALSE(careful.reserve(*device, 601, true));
  EXPECT_EQ(careful.buffer().bytes(), 400u) << "what it had";
  ASSERT_TRUE(careful.reserve(*device, 600, true));
  EXPECT_EQ(careful.buffer().bytes(), 600u);
  careful.release();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(GrowingBuffer, keeps_its_first_bytes_when_it_grows_and_is_asked_to) {
  const auto device = CpuDevice::create(1).value();
  const auto queue = device->create_queue().value();
  GrowingBuffer buffer;
  ASSERT_TRUE(buffer.reserve(*device, 300));
  for (std::uint8_t i = 0; i < 200; ++i) *buffer.as<std::uint8_t>(i) = i;
  ASSERT_TRUE(buffer.grow(*queue, 300, 200));
  EXPECT_EQ(device->budget().allocations(), 1u) << "it was there";
  ASSERT_TRUE(buffer.grow(*queue, 301, 200));
  EXPECT_EQ(buffer.buffer().bytes(), 301u);
  for (std::uint8_t i = 0; i < 200; ++i) ASSERT_EQ(*buffer.as<std::uint8_t>(i), i);
  ASSERT_TRUE(buffer.grow(*queue, 400, 0));
  EXPECT_EQ(buffer.buffer().bytes(), 400u);
  EXPECT_EQ(device->budget().used_bytes(), 400u);
}

TEST(GrowingHostBuffer, has_half_more_than_was_asked_and_a_page_at_least) {
  const auto device = CpuDevice::create(1).value();
  GrowingHostBuffer buffer;
  ASSERT_TRUE(buffer.reserve(*device, 8));
  const auto numbers = buffer.as<std::uint32_t>(2);
  numbers[1] = 5;
  ASSERT_TRUE(buffer.reserve(*device, 4096));
  EXPECT_EQ(buffer.as<std::uint32_t>(1, 4)[0], 5u) << "a page was there";
  EXPECT_EQ(buffer.as<std::uint32_t>(1, 4).data(), numbers.data() + 1);
  ASSERT_TRUE(buffer.reserve(*device, 5000));
  const void* const larger = buffer.as<std::byte>(1).data();
  ASSERT_TRUE(buffer.reserve(*device, 7500));
  EXPECT_EQ(buffer.as<std::byte>(1).data(), larger) << "half more was there";
}

}  // namespace
}  // namespace cingulum::paged_memory_tests
