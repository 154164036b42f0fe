#include "device/working_memory.hpp"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.hpp"

namespace cingulum::working_memory_tests {
namespace {

struct Setting {
  std::unique_ptr<CpuDevice> device = CpuDevice::create(1).value();
  std::shared_ptr<WorkingMemory> memory = WorkingMemory::of(*device);

  [[nodiscard]] std::uint64_t used() const { return device->budget().used_bytes(); }
};

TEST(WorkingMemory, is_one_for_each_device) {
  const Setting a, b;
  EXPECT_EQ(WorkingMemory::of(*a.device), a.memory);
  EXPECT_NE(a.memory, b.memory);
}

TEST(WorkingMemory, gives_exactly_what_is_asked_for_and_frees_it_at_once) {
  const Setting setting;
  {
    const auto buffer = setting.memory->take(1000).value();
    EXPECT_EQ(buffer->bytes(), 1000u);
    EXPECT_EQ(setting.used(), 1000u);
    const auto host = setting.memory->take_host(77, HostMemoryKind::pageable).value();
    EXPECT_EQ(host->bytes().size(), 77u);
  }
  EXPECT_EQ(setting.used(), 0u);
  EXPECT_EQ(setting.memory->kept_bytes(), 0u);
}

TEST(WorkingMemory, keeps_and_hands_out_again_while_it_is_asked_to) {
  const Setting setting;
  auto keeps = setting.memory->keep_all();
  const void* first = nullptr;
  {
    const auto buffer = setting.memory->take(std::uint64_t{1} << 20).value();
    first = buffer->device_pointer();
  }
  EXPECT_EQ(setting.memory->kept_bytes(), std::uint64_t{1} << 20);
  EXPECT_EQ(WorkingMemory::kept_on(*setting.device), std::uint64_t{1} << 20);
  EXPECT_EQ(setting.used(), std::uint64_t{1} << 20);
  {
    // Half of it and all of it: the same memory. More, or much less: other memory.
    EXPECT_EQ(setting.memory->take(std::uint64_t{1} << 19).value()->device_pointer(), first);
    const auto again = setting.memory->take(std::uint64_t{1} << 20).value();
    EXPECT_EQ(again->device_pointer(), first);
    EXPECT_EQ(setting.memory->kept_bytes(), 0u);
  }
  EXPECT_NE(setting.memory->take((std::uint64_t{1} << 20) + 1).value()->device_pointer(), first);
  EXPECT_NE(setting.memory->take((std::uint64_t{1} << 19) - 1).value()->device_pointer(), first);
  keeps.reset();
  EXPECT_EQ(setting.memory->kept_bytes(), 0u);
  EXPECT_EQ(setting.used(), 0u);
}

TEST(WorkingMemory, gives_the_smallest_that_suffices) {
  const Setting setting;
  const auto keeps = setting.memory->keep_all();
  const void* small = nullptr;
  {
    const auto a = setting.memory->take(190'000).value(), b = setting.memory->take(150'000).value(),
               c = setting.memory->take(170'000).value();
    small = b->device_pointer();
  }
  EXPECT_EQ(setting.memory->take(140'000).value()->device_pointer(), small);
}

TEST(WorkingMemory, gives_what_is_far_too_large_before_it_fails_and_frees_what_serves_nobody) {
  const Setting setting;
  const auto keeps = setting.memory->keep_all();
  { const auto large = setting.memory->take(1'000'000).value(); }
  setting.device->budget().set_limit(1'000'000);
  {
    const auto small = setting.memory->take(100'000).value();
    EXPECT_EQ(small->bytes(), 1'000'000u);
    EXPECT_FALSE(setting.memory->take(100'000));
  }
  { const auto other = setting.memory->take(400'000).value(); }
  setting.device->budget().set_limit(1'200'000);
  const auto larger = setting.memory->take(1'100'000);
  ASSERT_TRUE(larger);
  EXPECT_EQ((*larger)->bytes(), 1'100'000u);
  EXPECT_EQ(setting.used(), 1'100'000u);
}

TEST(WorkingMemory, outlives_whoever_holds_it_by_what_is_lent) {
  const auto device = CpuDevice::create(1).value();
  auto buffer = WorkingMemory::of(*device)->take(5000).value();
  const auto host = WorkingMemory::of(*device)->take_host(10, HostMemoryKind::pageable).value();
  EXPECT_EQ(WorkingMemory::of(*device), buffer.get_deleter().memory);
  buffer.reset();
  EXPECT_EQ(device->budget().used_bytes(), 0u);
}

}  // namespace
}  // namespace cingulum::working_memory_tests
