// Requests with several answers on a resident grid, emulated and on CUDA.
#include <gtest/gtest.h>

#include "ring/each_grid.hpp"
#include "ring/stream_stories.hpp"

namespace cingulum::ring::resident_stream_tests {
namespace {

using namespace std::chrono_literals;
using testing::Echo;
using testing::numbered;
using testing::Parts;
using testing::PartsThenFail;
using testing::Repeat;

class ResidentStreams : public testing::EachGrid {
 protected:
  void SetUp() override {
    EachGrid::SetUp();
    GridOptions options;
    options.seats = 4;
    options.time_limit = 60s;
    open_on(testing::make_test_backend(GetParam()), options);
  }
  template <class Body>
  ActorHandle start(const char* body_name, const Body& body, RingKind kind = RingKind::fast,
                    const ActorOptions& options = {}) {
    return testing::activated(grid_->launch(*runtime_, body_name, body_name, body, kind, options));
  }
};
CGL_FOR_DEVICES(ResidentStreams, "emulated", "cuda");

TEST_P(ResidentStreams, tell_all_parts_in_order) {
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    testing::tells_all_parts_in_order(*runtime_, *start("parts", Parts{}, kind));
    ASSERT_OK(runtime_->terminate("parts"));
  }
}

TEST_P(ResidentStreams, make_the_actor_wait_for_the_reader_and_tell_it_that_he_left) {
  ActorOptions small;
  small.outbox_capacity = 16;
  // The ring, as much again at the host, and what a bulk seat collects or a host takes at a time.
  testing::waits_for_its_reader_and_learns_that_he_left(*runtime_, *start("parts", Parts{}, RingKind::fast, small),
                                                        2 * 16 + 1);
  ASSERT_OK(runtime_->terminate("parts"));
  testing::waits_for_its_reader_and_learns_that_he_left(*runtime_, *start("parts", Parts{}, RingKind::bulk, small),
                                                        2 * 16 + 256);
}

TEST_P(ResidentStreams, are_read_before_the_failure_that_ends_them) {
  testing::is_read_before_the_failure_that_ends_it(*runtime_, *start("parts_then_fail", PartsThenFail{}));
}

TEST_P(ResidentStreams, that_are_not_read_do_not_keep_an_actor_from_ending) {
  ActorOptions small;
  small.outbox_capacity = 8;
  const ActorHandle parts = start("parts", Parts{}, RingKind::fast, small);
  ASSERT_OK_AND_ASSIGN(ReplyStream stream,
                       runtime_->request_stream(*parts, make_message(numbered(100)), {.window = 2}));
  ASSERT_OK(runtime_->terminate("parts", Termination::drain(10s)));
  for (std::uint64_t i = 0; i <= 100; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer) << i;
    ASSERT_EQ(testing::number_in(*answer), i);
  }
}

// A second answer made the count of open requests negative, and nothing was carried to anybody any more.
TEST_P(ResidentStreams, of_answers_that_nobody_asked_for_leave_the_neighbours_served) {
  const ActorHandle repeat = start("repeat", Repeat{2});
  const ActorHandle echo = start("echo", Echo{});
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const Message answer, runtime_->request(*repeat, make_message(numbered(i)), 10s));
    EXPECT_EQ(testing::number_in(answer), i);
  }
  // Read: five second answers are there and late.
  EXPECT_EQ(repeat->receive(200ms).error().kind(), ErrorKind::timed_out);
  EXPECT_EQ(repeat->telemetry().loss.late_replies, 5u);
  // The service thread carries these: nobody polls for them.
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(PendingReply pending, runtime_->request_later(*echo, make_message(numbered(i))));
    ASSERT_OK_AND_ASSIGN(const Message answer, pending.wait(2s));
    EXPECT_EQ(testing::number_in(answer), i);
  }
}

// Nobody reads what was asked for, and the actor is not kept waiting by it.
TEST_P(ResidentStreams, that_were_given_up_leave_room_for_other_messages) {
  ActorOptions small;
  small.outbox_capacity = 4;
  const ActorHandle repeat = start("repeat", Repeat{40}, RingKind::fast, small);
  { ASSERT_OK_AND_ASSIGN(PendingReply pending, runtime_->request_later(*repeat, make_message(numbered(1)))); }
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const Message answer, runtime_->request(*repeat, make_message(numbered(i)), 10s));
    EXPECT_EQ(testing::number_in(answer), i);
  }
}

}  // namespace
}  // namespace cingulum::ring::resident_stream_tests
