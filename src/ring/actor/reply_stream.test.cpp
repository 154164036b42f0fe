// Requests with several answers on CPU actors; other backends run the same tests (tests/ring/stream_stories.hpp).
#include <gtest/gtest.h>

#include "ring/cpu/turn_schedule.hpp"
#include "ring/stream_stories.hpp"

namespace cingulum::ring::reply_stream_tests {
namespace {

using namespace std::chrono_literals;
using testing::numbered;
using testing::Parts;
using testing::PartsThenFail;
using testing::Repeat;

class ReplyStreams : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(runtime_, Runtime::create()); }
  template <class Body>
  ActorHandle start(const std::string& name, const Body& body, const ActorOptions& options = {}) {
    auto actor = runtime_->launch(name, body, options);
    EXPECT_TRUE(actor && (*actor)->activate());
    return actor ? *actor : nullptr;
  }
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(ReplyStreams, tell_all_parts_in_order) {
  testing::tells_all_parts_in_order(*runtime_, *start("parts", Parts{}));
}

TEST_F(ReplyStreams, make_the_actor_wait_for_the_reader_and_tell_it_that_he_left) {
  testing::waits_for_its_reader_and_learns_that_he_left(*runtime_, *start("parts", Parts{}), 0);
}

TEST_F(ReplyStreams, are_read_before_the_failure_that_ends_them) {
  testing::is_read_before_the_failure_that_ends_it(*runtime_, *start("failing", PartsThenFail{}));
}

TEST_F(ReplyStreams, that_are_not_read_do_not_keep_an_actor_from_ending) {
  for (const bool drain : {true, false}) {
    const ActorHandle parts = start("parts", Parts{});
    ASSERT_OK_AND_ASSIGN(ReplyStream stream,
                         runtime_->request_stream(*parts, make_message(numbered(100)), {.window = 2}));
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> first, stream.next(10s));
    ASSERT_TRUE(first);
    ASSERT_OK(runtime_->terminate("parts", drain ? Termination::drain(10s) : Termination::discard(10s)));
    std::uint64_t read = 1;
    for (;; ++read) {
      auto answer = stream.next(10s);
      if (!answer || !*answer) {
        EXPECT_EQ(static_cast<bool>(answer), drain);
        break;
      }
      ASSERT_EQ(testing::number_in(**answer), read);
    }
    if (drain) {
      EXPECT_EQ(read, 101u);
    } else {
      EXPECT_LT(read, 101u);
    }
  }
}

TEST_F(ReplyStreams, time_out_answer_by_answer_and_go_on) {
  const ActorHandle parts = start("parts", Parts{});
  ASSERT_OK(parts->deactivate());
  ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime_->request_stream(*parts, make_message(numbered(1))));
  for (int i = 0; i < 2; ++i) {
    const auto late = stream.next(1ms);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
  }
  ASSERT_OK(parts->reactivate());
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer);
    EXPECT_EQ(testing::number_in(*answer), i);
  }
}

TEST_F(ReplyStreams, of_which_one_answer_is_asked_for_give_their_first) {
  const ActorHandle parts = start("parts", Parts{});
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const Message answer, runtime_->request("parts", make_message(numbered(3)), 10s));
    EXPECT_EQ(testing::number_in(answer), 0u);
    ASSERT_OK(parts->receive(10s));  // it learned that nobody wants the rest
  }
}

TEST_F(ReplyStreams, of_an_answer_that_comes_twice_end_with_the_first) {
  const ActorHandle repeat = start("repeat", Repeat{3});
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime_->request_stream(*repeat, make_message(numbered(i))));
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer);
    EXPECT_EQ(testing::number_in(*answer), i);
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> none, stream.next(10s));
    EXPECT_FALSE(none);
  }
}

TEST_F(ReplyStreams, need_a_window) {
  const ActorHandle parts = start("parts", Parts{});
  EXPECT_TRUE(cingulum::testing::fails_with(runtime_->request_stream(*parts, make_message(numbered(1)), {.window = 0}),
                                            ErrorKind::invalid_argument, "window of 0"));
}

// Every order of sending, reading, cancelling and stopping that a seed draws, on virtual time.
TEST(ReplyStreamSchedules, lose_nothing_and_never_hang) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    TurnSchedule schedule(seed);
    RuntimeOptions options;
    options.schedule = &schedule;
    auto runtime = Runtime::create(options).value();
    const ActorHandle parts = runtime->launch("parts", Parts{}).value();
    ASSERT_OK(parts->activate());
    const std::uint64_t count = seed % 7;
    ASSERT_OK_AND_ASSIGN(ReplyStream stream,
                         runtime->request_stream(*parts, make_message(numbered(count)),
                                                 {.window = static_cast<std::uint32_t>(1 + seed % 3)}));
    const std::uint64_t read = seed % 5;
    for (std::uint64_t i = 0; i < std::min(read, count + 1); ++i) {
      ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(1s));
      ASSERT_TRUE(answer) << "seed " << seed;
      ASSERT_EQ(testing::number_in(*answer), i) << "seed " << seed;
    }
    if (seed % 2 == 0) stream.cancel();
    ASSERT_OK(parts->terminate(seed % 4 < 2 ? Termination::drain(1s) : Termination::discard(1s)));
  }
}

}  // namespace
}  // namespace cingulum::ring::reply_stream_tests
