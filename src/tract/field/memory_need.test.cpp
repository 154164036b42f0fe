#include "tract/field/memory_need.hpp"

#include <gtest/gtest.h>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "support/little_device.hpp"

namespace cingulum::memory_need_tests {
namespace {

using test::LittleDevice;
using testing::fails_with;

TEST(MemoryNeed, of_the_cpu_is_held_against_its_limit_alone_since_the_field_is_there_already) {
  const Field field = test::tensor_field(test::grid(4, 4, 4), [](numerics::Vec3d) { return numerics::Vec3d{1, 0, 0}; });
  const std::uint64_t need = field.stored_bytes().size() + 4 * field.record_of_voxel.size();
  LittleDevice device(1);
  EXPECT_TRUE(check_host_memory(device, field)) << "no limit";
  EXPECT_TRUE(check_host_memory(LittleDevice(std::nullopt), field)) << "nothing is known";
  LittleDevice large_enough(need);
  large_enough.budget().set_limit(need);
  EXPECT_TRUE(check_host_memory(large_enough, field));
  large_enough.budget().set_limit(need - 1);
  EXPECT_TRUE(fails_with(check_host_memory(large_enough, field), ErrorKind::out_of_memory, "little: tracking needs"));
}

TEST(MemoryNeed, is_the_sum_of_its_parts_and_may_take_all_that_is_free) {
  const Field field = test::tensor_field(test::grid(2, 2, 2), [](numerics::Vec3d) { return numerics::Vec3d{1, 0, 0}; });
  const MemoryNeed need{.field_bytes = 1000, .tables_bytes = 200, .working_bytes = 30};
  EXPECT_EQ(need.total_bytes(), 1230u);
  EXPECT_EQ(free_memory_of(LittleDevice(77)), 77u);
  EXPECT_EQ(free_memory_of(LittleDevice(std::nullopt)), ~std::uint64_t{0});
  EXPECT_TRUE(check_memory(LittleDevice(1230), need, field));
  EXPECT_TRUE(check_memory(LittleDevice(std::nullopt), need, field));
  EXPECT_TRUE(fails_with(check_memory(LittleDevice(1229), need, field), ErrorKind::out_of_memory, "free are 1"));
  LittleDevice limited(5000);
  limited.budget().set_limit(1229);
  EXPECT_EQ(free_memory_of(limited), 1229u);
  EXPECT_TRUE(
      fails_with(check_memory(limited, need, field), ErrorKind::out_of_memory, "or raise CINGULUM_MEMORY_LIMIT"));
  EXPECT_TRUE(fails_with(Status(tl::make_unexpected(out_of_device_memory(LittleDevice(std::nullopt), need, field))),
                         ErrorKind::out_of_memory, "which could not be had"));
}

}  // namespace
}  // namespace cingulum::memory_need_tests
