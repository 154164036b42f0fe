#include "runs/wanted_devices.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

TEST(WantedDevices, are_the_same_each_time_and_for_each_run_that_shares_them) {
  const Settings settings = Settings::from_variables({});
  const RunMachine machine(settings, {});
  ASSERT_OK_AND_ASSIGN(WantedDevices wanted, WantedDevices::begin("cpu", 1, machine));
  int leases = 0;
  WantedDevices leased = wanted.leased([&]() -> Status {
    ++leases;
    return {};
  });
  ASSERT_OK_AND_ASSIGN(DeviceRegistry* const first, wanted.registry());
  ASSERT_OK_AND_ASSIGN(DeviceRegistry* const second, wanted.registry());
  ASSERT_OK_AND_ASSIGN(DeviceRegistry* const shared, leased.registry());
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, shared);
  EXPECT_EQ(leases, 1);
  EXPECT_EQ(first->backends().size(), 1u);
  ASSERT_OK_AND_ASSIGN(const std::vector<Device*> devices, wanted.devices());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0]->id(), "cpu");
}

TEST(WantedDevices, that_are_not_there_fail_alike_each_time) {
  const Settings settings = Settings::from_variables({});
  const RunMachine machine(settings, {});
  EXPECT_TRUE(testing::fails_with(WantedDevices::begin("cuda,,", 1, machine), ErrorKind::invalid_argument, "cuda,,"));
  ASSERT_OK_AND_ASSIGN(WantedDevices refused, WantedDevices::begin("cpu:7", 1, machine, false));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        testing::fails_with(refused.registry(), ErrorKind::invalid_argument, "device cpu:7: unknown device 'cpu:7'"));
  }
}

}  // namespace
}  // namespace cingulum
