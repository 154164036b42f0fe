#include "ring/telemetry/request_latency.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace cingulum::ring {
namespace {

TEST(RequestLatency, times_every_nth_request_from_the_first_on) {
  RequestLatency latency(3);
  for (std::uint64_t correlation = 1; correlation <= 9; ++correlation) {
    latency.sending(correlation);
    latency.answered(correlation);
  }
  EXPECT_EQ(latency.summary().count, 3U);
}

TEST(RequestLatency, is_the_time_between_a_request_and_its_own_answer) {
  RequestLatency latency(1);
  latency.sending(7);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  latency.answered(8);  // another's
  EXPECT_EQ(latency.summary().count, 0U);
  latency.answered(7);
  latency.answered(7);  // a second answer to the same request is not timed
  EXPECT_EQ(latency.summary().count, 1U);
  EXPECT_GE(latency.summary().min_ns, 3'000'000U);
}

TEST(RequestLatency, a_request_without_an_answer_gives_way_to_the_next) {
  RequestLatency latency(2);
  latency.sending(1);
  latency.sending(2);
  latency.sending(3);
  latency.answered(1);
  EXPECT_EQ(latency.summary().count, 0U);
  latency.answered(3);
  EXPECT_EQ(latency.summary().count, 1U);
}

TEST(RequestLatency, times_nothing_where_it_is_told_so) {
  RequestLatency latency(0);
  latency.sending(1);
  latency.answered(1);
  latency.answered(0);
  EXPECT_EQ(latency.summary().count, 0U);
}

}  // namespace
}  // namespace cingulum::ring
