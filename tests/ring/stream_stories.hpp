// The tests of a request with several answers, written once and run for CPU actors, resident actors and actors in a
// child process. The actors run testing::Parts and testing::PartsThenFail.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "ring/actor/runtime.hpp"
#include "ring/resident_bodies.hpp"
#include "ring/small_actors.hpp"
#include "support/each_device.hpp"

namespace cingulum::ring::testing {

inline void tells_all_parts_in_order(Runtime& runtime, Actor& parts) {
  using namespace std::chrono_literals;
  for (const std::uint64_t count : {0u, 1u, 5u, 300u}) {
    for (const std::uint32_t window : {1u, 3u, 64u}) {
      StreamOptions options;
      options.window = window;
      ASSERT_OK_AND_ASSIGN(ReplyStream stream,
                           runtime.request_stream(parts, make_message(numbered(count), 77), options));
      for (std::uint64_t i = 0; i <= count; ++i) {
        ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
        ASSERT_TRUE(answer) << i << " of " << count;
        ASSERT_EQ(number_in(*answer), i);
        ASSERT_EQ(answer->has(mark_more), i != count);
        ASSERT_FALSE(answer->has(mark_request));
        ASSERT_EQ(answer->header.correlation, 77u);
      }
      for (int again = 0; again < 2; ++again) {
        ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
        ASSERT_FALSE(answer);
      }
    }
  }
}

// `most_ahead`: what the rings and queues between actor and reader may hold beside the window.
inline void waits_for_its_reader_and_learns_that_he_left(Runtime& runtime, Actor& parts, std::uint64_t most_ahead) {
  using namespace std::chrono_literals;
  StreamOptions options;
  options.window = 4;
  std::this_thread::sleep_for(50ms);  // counters of devices are published once a millisecond
  const std::uint64_t before = parts.telemetry().sent;
  constexpr std::uint64_t endless = 1u << 30;
  ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime.request_stream(parts, make_message(numbered(endless)), options));
  std::uint64_t sent = 0;
  // It stands still when two looks, far apart, agree.
  for (int look = 0; look < 200; ++look) {
    std::this_thread::sleep_for(50ms);
    const std::uint64_t now = parts.telemetry().sent - before;
    if (now == sent && now != 0) break;
    sent = now;
  }
  EXPECT_GE(sent, options.window);
  EXPECT_LE(sent, options.window + most_ahead);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer);
    ASSERT_EQ(number_in(*answer), i);
  }
  stream.cancel();
  ASSERT_OK_AND_ASSIGN(const std::optional<Message> none, stream.next(10s));
  EXPECT_FALSE(none);
  // The body leaves the rest, says so, and serves the next.
  ASSERT_OK_AND_ASSIGN(const Message sent_count, parts.receive(10s));
  EXPECT_GE(number_in(sent_count), 2000u);
  EXPECT_LT(number_in(sent_count), endless);
  tells_all_parts_in_order(runtime, parts);
}

inline void is_read_before_the_failure_that_ends_it(Runtime& runtime, Actor& failing) {
  using namespace std::chrono_literals;
  ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime.request_stream(failing, make_message(numbered(3))));
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer);
    ASSERT_EQ(number_in(*answer), i);
  }
  const auto end = stream.next(10s);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind(), ErrorKind::closed) << end.error().message();
}

}  // namespace cingulum::ring::testing
