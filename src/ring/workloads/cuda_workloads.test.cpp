// The workloads on a GPU: checked by themselves, and equal to the CPU's to the bit.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/registry.hpp"
#include "ring/workloads/anomaly.hpp"
#include "ring/workloads/extended.hpp"
#include "ring/workloads/pagerank.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {
namespace {

class cuda_workloads : public ::testing::Test {
 protected:
  void SetUp() override {
    auto registry = DeviceRegistry::probe({});
    ASSERT_TRUE(registry.has_value()) << registry.error().message();
    registry_ = std::make_unique<DeviceRegistry>(std::move(*registry));
    const auto device = registry_->select_one("cuda");
    if (!device) GTEST_SKIP() << device.error().message();
    device_ = *device;
  }

  std::unique_ptr<WorkloadPlace> place(DevicePlaceOptions options) {
    options.time_limit = std::chrono::seconds(20);
    auto place = make_cuda_place(*device_, options);
    EXPECT_TRUE(place.has_value()) << place.error().message();
    return place ? std::move(*place) : nullptr;
  }

  std::unique_ptr<DeviceRegistry> registry_;
  Device* device_ = nullptr;
};

TEST_F(cuda_workloads, extended_answers_are_right) {
  const auto gpu = place({.actors = 8, .ring_capacity = 8192});
  ASSERT_NE(gpu, nullptr);
  ExtendedOptions options;
  // Fewer for slow tools.
  const char* const few = std::getenv("CINGULUM_TEST_RING_MESSAGES");
  options.message_counts = {100, few != nullptr ? static_cast<std::uint32_t>(std::atoi(few)) : 5000};
  const auto result = run_extended(*gpu, options);
  ASSERT_TRUE(result.has_value()) << result.error().message();
  EXPECT_EQ(result->concurrency.size(), 4U);
}

TEST_F(cuda_workloads, ranks_are_the_bits_of_the_cpu) {
  const auto edges = random_edges(20000, 100000, 1).value();
  const auto cpu = make_cpu_place(2).value();
  const auto expected = run_pagerank(*cpu, 20000, edges, {});
  ASSERT_TRUE(expected.has_value()) << expected.error().message();
  for (const std::uint32_t lanes : {64U, 256U}) {
    const auto gpu = place({.actors = 32, .lanes = lanes, .ring_capacity = 16});
    ASSERT_NE(gpu, nullptr);
    for (const std::uint32_t actors : {1U, 7U, 32U}) {
      const auto result = run_pagerank(*gpu, 20000, edges, {.actors = actors});
      ASSERT_TRUE(result.has_value()) << result.error().message();
      EXPECT_EQ(result->steps, expected->steps);
      EXPECT_EQ(result->ranks, expected->ranks) << actors << " actors of " << lanes << " lanes";
    }
  }
}

TEST_F(cuda_workloads, anomalies_are_those_of_the_cpu) {
  const std::vector<float> signal = example_signal(50000, 2).value();
  const auto cpu = make_cpu_place(1).value();
  const auto gpu = place({.actors = 1});
  ASSERT_NE(gpu, nullptr);
  for (const std::uint32_t batch : {100U, 1000U, 3000U}) {
    const auto expected = run_anomaly(*cpu, signal, {.batch = batch, .runs = 1});
    const auto result = run_anomaly(*gpu, signal, {.batch = batch, .runs = 2});
    ASSERT_TRUE(expected.has_value()) << expected.error().message();
    ASSERT_TRUE(result.has_value()) << result.error().message();
    EXPECT_EQ(result->anomalies, expected->anomalies);
    EXPECT_EQ(result->first_indices, expected->first_indices);
    EXPECT_EQ(result->mean_score, expected->mean_score);
    EXPECT_EQ(result->max_score, expected->max_score);
  }
}

}  // namespace
}  // namespace cingulum::ring
