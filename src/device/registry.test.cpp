#include "device/registry.hpp"

#include <gtest/gtest.h>

#include "device/selfcheck.hpp"
#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;
using testing::registry;

TEST(Registry, lists_the_backends_in_order_and_each_has_devices_or_a_reason) {
  const auto backends = registry().backends();
  ASSERT_EQ(backends.size(), 3u);
  EXPECT_EQ(backends[0].backend, Backend::cuda);
  EXPECT_EQ(backends[1].backend, Backend::webgpu);
  EXPECT_EQ(backends[2].backend, Backend::cpu);
  for (const BackendReport& report : backends) {
    EXPECT_EQ(report.devices.empty(), !report.absent_reason.empty()) << backend_name(report.backend);
    int index = 0;
    for (const auto& device : report.devices) EXPECT_EQ(device->description().index, index++);
  }
  EXPECT_EQ(backends[2].devices.size(), 1u);
}

TEST(Registry, names_of_other_programs_are_understood) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, registry().select_one("numba"));
  EXPECT_EQ(cpu->id(), "cpu");
  ASSERT_OK_AND_ASSIGN(Device * best, registry().select_one("auto"));
  EXPECT_FALSE(best->capabilities().software) << "an emulated GPU is never chosen by itself";
  ASSERT_OK_AND_ASSIGN(const auto list, registry().select("cpu,auto"));
  EXPECT_EQ(list, (std::vector<Device*>{cpu, best}));
}

TEST(Registry, a_device_may_be_named_twice) {
  ASSERT_OK_AND_ASSIGN(const auto list, registry().select("cpu,cpu"));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0], list[1]);
  EXPECT_TRUE(fails_with(registry().select_one("cpu,cpu"), ErrorKind::invalid_argument, "2 devices"));
}

TEST(Registry, unknown_and_absent_devices_are_refused_with_the_list_of_those_there_are) {
  EXPECT_TRUE(fails_with(registry().select("quantum"), ErrorKind::invalid_argument, "cpu"));
  EXPECT_TRUE(fails_with(registry().select("cpu:7"), ErrorKind::invalid_argument, "available: auto"));
  for (const BackendReport& report : registry().backends()) {
    if (!report.devices.empty()) continue;
    EXPECT_TRUE(
        fails_with(registry().select(backend_name(report.backend)), ErrorKind::unavailable, report.absent_reason));
  }
}

class Selfcheck : public testing::EachDevice {};
CGL_FOR_EACH_DEVICE(Selfcheck);

TEST_P(Selfcheck, every_item_has_the_bits_of_the_cpu) {
  ASSERT_OK_AND_ASSIGN(const SelfcheckResult result, run_selfcheck(device(), 300001));
  EXPECT_EQ(result.items, 300001u);
  EXPECT_EQ(result.equal, result.items);
}

// R13: with a share of the memory that a job needs it runs, or is refused with the numbers, and a smaller one runs
// after.
TEST_P(Selfcheck, with_less_memory_than_needed_is_refused_and_a_smaller_one_runs) {
  constexpr std::uint32_t items = 100000;
  constexpr std::uint64_t need = items * 16;
  const std::uint64_t base = device().budget().used_bytes();
  for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
    device().budget().set_limit(base + need * percent / 100);
    const auto result = run_selfcheck(device(), items);
    if (percent == 100) {
      ASSERT_OK(result);
      EXPECT_EQ(result->equal, items);
    } else {
      EXPECT_TRUE(fails_with(result, ErrorKind::out_of_memory, "1.5 MiB needed"));
    }
    ASSERT_OK_AND_ASSIGN(const SelfcheckResult smaller, run_selfcheck(device(), items / 100));
    EXPECT_EQ(smaller.equal, smaller.items);
  }
  device().budget().set_limit(std::nullopt);
  for (std::uint64_t n = 1; n <= 2; ++n) {
    device().budget().fail_nth_allocation(n);
    const auto result = run_selfcheck(device(), 1000);
    device().budget().fail_nth_allocation(0);
    EXPECT_EQ(result.has_value(), n > 1) << testing::message_of(result);
  }
  EXPECT_EQ(device().budget().used_bytes(), base);
}

TEST(SelfcheckLimits, more_items_than_a_launch_can_count_are_refused) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, registry().select_one("cpu"));
  EXPECT_TRUE(fails_with(run_selfcheck(*cpu, 0), ErrorKind::invalid_argument, "1 to"));
  EXPECT_TRUE(fails_with(run_selfcheck(*cpu, ~0u), ErrorKind::invalid_argument, "1 to"));
}

}  // namespace
}  // namespace cingulum
