#include "base/cancel.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/interrupt.hpp"

namespace cingulum {
namespace {

struct InterruptGuard {
  ~InterruptGuard() { clear_interrupt(); }
};

TEST(Cancel, stops_the_tokens_of_its_source_and_no_others) {
  CancelSource one, other;
  const CancelToken token = one.token();
  EXPECT_FALSE(token.cancelled());
  EXPECT_TRUE(token.check());
  one.cancel();
  EXPECT_TRUE(token.cancelled());
  EXPECT_TRUE(one.token().cancelled());
  EXPECT_EQ(token.check().error().kind(), ErrorKind::interrupted);
  EXPECT_FALSE(other.token().cancelled());
  EXPECT_FALSE(CancelToken().cancelled());
}

TEST(Cancel, a_source_that_follows_a_token_is_cancelled_with_it_and_not_the_other_way_round) {
  CancelSource run;
  CancelSource part(run.token());
  CancelSource piece(part.token());
  part.cancel();
  EXPECT_TRUE(piece.token().cancelled());
  EXPECT_FALSE(run.token().cancelled());
  CancelSource another(run.token());
  EXPECT_FALSE(another.token().cancelled());
  run.cancel();
  EXPECT_TRUE(another.token().cancelled());
}

TEST(Cancel, a_token_of_nobody_follows_the_interrupt_and_a_source_alone_does_not) {
  const InterruptGuard guard;
  const CancelToken process;
  CancelSource alone;
  CancelSource following(process);
  request_interrupt();
  EXPECT_TRUE(process.cancelled());
  EXPECT_TRUE(following.token().cancelled());
  EXPECT_FALSE(alone.token().cancelled());
  clear_interrupt();
  EXPECT_FALSE(following.token().cancelled());
}

TEST(Cancel, a_token_outlives_its_source_and_is_heard_in_another_thread) {
  CancelToken token;
  {
    CancelSource source;
    token = source.token();
    std::thread waiting([held = token] {
      while (!held.cancelled()) std::this_thread::yield();
    });
    source.cancel();
    waiting.join();
  }
  EXPECT_TRUE(token.cancelled());
}

}  // namespace
}  // namespace cingulum
