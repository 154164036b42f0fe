#include "ring/telemetry/gpu_monitor.hpp"

#include <gtest/gtest.h>

namespace cingulum::ring {
namespace {

TEST(gpu_monitor, reads_every_gpu_that_nvml_knows) {
  const GpuMonitor monitor(std::filesystem::path(CINGULUM_TEST_FAKE_NVML));
  ASSERT_TRUE(monitor.available()) << monitor.read()[0].note;
  const auto gpus = monitor.read();
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "First GPU");
  EXPECT_EQ(gpus[0].uuid, "GPU-0");
  EXPECT_EQ(gpus[0].memory_total_bytes, 1000U);
  EXPECT_EQ(gpus[0].memory_used_bytes, 600U);
  EXPECT_EQ(gpus[0].utilisation, 1.0);
  EXPECT_EQ(gpus[0].memory_utilisation, 0.25);
  EXPECT_EQ(gpus[0].temperature_celsius, 41);
  EXPECT_EQ(gpus[0].power_watts, 350.5);
  EXPECT_EQ(gpus[0].power_limit_watts, 700);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].name, "Second GPU");
  // What NVML does not report is 0.
  EXPECT_EQ(gpus[1].memory_total_bytes, 0U);
  EXPECT_EQ(gpus[1].memory_used_bytes, 0U);
  EXPECT_EQ(gpus[1].utilisation, 0);
  EXPECT_EQ(gpus[1].memory_utilisation, 0);
  EXPECT_EQ(gpus[1].temperature_celsius, 0);
  EXPECT_EQ(gpus[1].power_watts, 0);
  EXPECT_EQ(gpus[1].power_limit_watts, 0);
  EXPECT_TRUE(gpus[1].available());
}

}  // namespace
}  // namespace cingulum::ring
