// What the benches of the ring measure, on CPU threads and on a GPU: every row has a figure, every message is checked.
#include "measure/ring_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/registry.hpp"
#include "measure/ring_exchanges.hpp"
#include "measure/ring_streams.hpp"

namespace cingulum::measure {
namespace {

using ring::Traffic;
using ring::WorkloadBody;

void expect_all_measured(ring::WorkloadPlace& place, const RingCounts& counts) {
  std::set<std::string> scenarios;
  std::size_t with_limit = 0;
  for (const auto rows_of : {&ring_answer_rows, &ring_stream_rows}) {
    const auto rows = rows_of(place, counts);
    ASSERT_TRUE(rows.has_value()) << rows.error().message();
    EXPECT_GE(rows->size(), 5U);
    for (const RingRow& row : *rows) {
      EXPECT_GT(row.value, 0) << row.scenario;
      EXPECT_EQ(row.limit > 0, !row.limit_name.empty()) << row.scenario;
      EXPECT_TRUE(row.p99 == 0 || row.p99 >= row.value) << row.scenario;
      EXPECT_TRUE(scenarios.insert(row.scenario).second) << row.scenario << " is measured twice";
      with_limit += row.limit > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(with_limit, 2U) << "rows stand beside what the machine allows";
}

TEST(ring_rows, every_row_is_measured_on_threads) {
  const auto place = ring::make_cpu_place(2).value();
  expect_all_measured(*place, {200, 2000, 200, 2, 4, 5});
}

TEST(ring_rows, every_row_is_measured_on_cuda) {
  auto registry = DeviceRegistry::probe({});
  ASSERT_TRUE(registry.has_value()) << registry.error().message();
  const auto device = registry->select_one("cuda");
  if (!device) GTEST_SKIP() << device.error().message();
  for (const std::uint32_t lanes : {32U, 128U}) {
    const auto place = ring::make_cuda_place(
        **device, {.actors = 8, .lanes = lanes, .time_limit = std::chrono::seconds(20), .limit_samples = 2000});
    ASSERT_TRUE(place.has_value()) << place.error().message();
    expect_all_measured(**place, {2000, 50000, 1000, 4, 8, 50});
  }
}

class ring_measurements : public ::testing::Test {
 protected:
  ring::ActorHandle start(const std::string& name, WorkloadBody body, Traffic traffic) {
    return place_->start(name, body, traffic, {}).value();
  }
  std::unique_ptr<ring::WorkloadPlace> place_ = ring::make_cpu_place(2).value();
};

TEST_F(ring_measurements, a_series_has_as_many_times_as_were_asked_for) {
  const auto echo = start("echo", WorkloadBody::echo, Traffic::answers);
  for (const auto& seconds :
       {round_trip_seconds(*echo, {.count = 30, .warm_up = 7}), send_seconds(*echo, {.count = 30, .warm_up = 7}),
        request_seconds(place_->runtime(), "echo", {.count = 30, .warm_up = 7}),
        request_seconds(place_->runtime(), *echo, {.count = 30, .warm_up = 7}),
        word_seconds({.count = 30, .warm_up = 7}), thread_seconds({.count = 30, .warm_up = 7})}) {
    ASSERT_TRUE(seconds.has_value()) << seconds.error().message();
    EXPECT_EQ(seconds->size(), 30U);
  }
}

TEST_F(ring_measurements, a_series_that_lasts_too_long_ends_with_what_it_has) {
  const auto echo = start("echo", WorkloadBody::echo, Traffic::answers);
  const auto seconds = round_trip_seconds(*echo, {.count = 1'000'000'000, .longest = std::chrono::milliseconds(5)});
  ASSERT_TRUE(seconds.has_value()) << seconds.error().message();
  EXPECT_FALSE(seconds->empty());
}

TEST_F(ring_measurements, an_answer_that_is_changed_is_an_error) {
  const auto hop = start("hop", WorkloadBody::hop, Traffic::answers);  // counts down, which no echo does
  const auto seconds = round_trip_seconds(*hop, {.count = 3});
  ASSERT_FALSE(seconds.has_value());
  EXPECT_EQ(seconds.error().kind(), ErrorKind::corrupt);
}

TEST_F(ring_measurements, restarts_are_as_many_as_failures) {
  const auto actor = place_->start("fails", WorkloadBody::hop, Traffic::answers, restarting_at_once({})).value();
  const auto seconds = restart_seconds(place_->runtime(), *actor, 20);
  ASSERT_TRUE(seconds.has_value()) << seconds.error().message();
  EXPECT_EQ(seconds->size(), 20U);
  // Earlier failures of the actor are counted, too, so that the check of a second series fails.
  EXPECT_FALSE(restart_seconds(place_->runtime(), *actor, 20).has_value());
}

TEST_F(ring_measurements, streams_are_measured_by_one_thread_by_several_and_by_a_writer_beside_a_reader) {
  std::vector<ring::ActorHandle> actors;
  for (const char* name : {"a", "b", "c"}) actors.push_back(start(name, WorkloadBody::batch_echo, Traffic::stream));
  for (const HostSide& host : {HostSide{}, HostSide{.threads = 2}, HostSide{.writer_and_reader = true}}) {
    const auto used = std::span(actors).first(host.writer_and_reader ? 1 : 3);
    const auto rates = batch_rates(used, {.messages_each = 3000, .repetitions = 2, .host = host});
    ASSERT_TRUE(rates.has_value()) << rates.error().message();
    EXPECT_EQ(rates->size(), 2U);
  }
  const auto rates = call_rates(actors, {.messages_each = 3000, .repetitions = 2});
  ASSERT_TRUE(rates.has_value()) << rates.error().message();
  EXPECT_EQ(rates->size(), 2U);
}

TEST(bare_ring, every_message_comes_one_by_one_and_in_batches) {
  for (const std::uint32_t batch : {1U, 64U}) {
    const auto rates = bare_ring_rates({.messages = 5001, .repetitions = 2, .capacity = 256, .batch = batch});
    ASSERT_TRUE(rates.has_value()) << rates.error().message();
    EXPECT_EQ(rates->size(), 2U);
    EXPECT_GT(*std::min_element(rates->begin(), rates->end()), 0);
  }
}

}  // namespace
}  // namespace cingulum::measure
