// The workloads on a GPU: checked by themselves, and equal to the CPU's to the bit.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/registry.hpp"
#include "ring/workloads/anomaly.hpp"
#include "ring/workloads/echo_and_sum.hpp"
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
      const auto result = run_pagerank(*gpu, 20000, edges, {.workers = actors});
      ASSERT_TRUE(result.has_value()) << result.error().message();
      EXPECT_EQ(result->fastest.steps, expected->fastest.steps);
      EXPECT_EQ(result->ranks, expected->ranks) << actors << " actors of " << lanes << " lanes";
    }
  }
}

// Rows of all lengths, one of them longer than any column; more nodes than lanes.
TEST_F(cuda_workloads, ranks_of_an_uneven_graph_are_the_bits_of_the_cpu) {
  constexpr std::uint32_t nodes = 40000;
  std::vector<Edge> edges = random_edges(nodes, 150000, 2).value();
  for (std::uint32_t i = 0; i < 5000; ++i) edges.push_back({(i * 7919) % nodes, i % 3 == 0 ? 11 : i % 50});
  const auto cpu = make_cpu_place(2).value();
  const auto expected = run_pagerank(*cpu, nodes, edges, {});
  ASSERT_TRUE(expected.has_value()) << expected.error().message();
  const auto gpu = place({.actors = 64, .lanes = 256, .ring_capacity = 16});
  ASSERT_NE(gpu, nullptr);
  for (const std::uint32_t actors : {1U, 64U}) {
    const auto result = run_pagerank(*gpu, nodes, edges, {.workers = actors});
    ASSERT_TRUE(result.has_value()) << result.error().message();
    EXPECT_EQ(result->fastest.steps, expected->fastest.steps);
    EXPECT_TRUE(result->ranks == expected->ranks) << actors;
  }
}

// What `ring top` shows of an actor on a GPU: how long it takes to answer.
TEST_F(cuda_workloads, requests_to_an_actor_fill_its_latency_histogram) {
  const auto gpu = place({.actors = 1, .lanes = 32});
  ASSERT_NE(gpu, nullptr);
  const ActorHandle echo = gpu->start("echo", WorkloadBody::echo, Traffic::answers, {}).value();
  for (int i = 0; i < 1600; ++i) {
    ASSERT_TRUE(gpu->runtime().request(*echo, make_message(Ping{1}), std::chrono::seconds(5)).has_value());
  }
  const LatencySummary latency = echo->telemetry().latency;
  EXPECT_EQ(latency.count, 100U);
  EXPECT_GT(latency.min_ns, 500U) << "no bus is that fast";
  EXPECT_GE(latency.p99_ns, latency.p50_ns);
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
