#include "device/blocking_calls.hpp"

#include <gtest/gtest.h>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

void count_free(void* counter) {
  ++*static_cast<int*>(counter);
}

TEST(BlockingCallsRule, without_a_persistent_kernel_everything_happens_at_once) {
  BlockingCalls calls("cuda:7");
  int freed = 0;
  calls.free_or_keep("freeing", count_free, &freed);
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(calls.check("synchronising the device"));
  EXPECT_EQ(calls.forbidden_calls(), 0u);
}

TEST(BlockingCallsRule, frees_wait_for_the_last_persistent_kernel_and_are_counted) {
  BlockingCalls calls("cuda:7");
  calls.set_reaction(BlockingCalls::Reaction::go_on);
  int freed = 0;
  auto first = calls.persistent_kernel_runs("actors");
  auto second = calls.persistent_kernel_runs("actors");
  calls.free_or_keep("freeing device memory", count_free, &freed);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(calls.kept(), 1u);
  EXPECT_EQ(calls.forbidden_calls(), 1u);
  first.reset();
  EXPECT_EQ(freed, 0);
  EXPECT_TRUE(calls.forbidden());
  second.reset();
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(calls.kept(), 0u);
  EXPECT_FALSE(calls.forbidden());
}

TEST(BlockingCallsRule, a_call_that_answers_is_refused_with_device_call_and_kernel) {
  BlockingCalls calls("cuda:7");
  calls.set_reaction(BlockingCalls::Reaction::go_on);
  const auto runs = calls.persistent_kernel_runs("echo actors");
  const Status refused = calls.check("synchronising the device");
  EXPECT_TRUE(testing::fails_with(refused, ErrorKind::invalid_state, "device cuda:7: synchronising the device"));
  EXPECT_TRUE(testing::fails_with(refused, ErrorKind::invalid_state, "'echo actors'"));
  EXPECT_EQ(calls.forbidden_calls(), 1u);
}

TEST(BlockingCallsRuleDeathTest, debug_builds_end_where_the_mistake_is_made) {
  BlockingCalls calls("cuda:7");
  calls.set_reaction(BlockingCalls::Reaction::abort);
  const auto runs = calls.persistent_kernel_runs("echo actors");
  EXPECT_DEATH(static_cast<void>(calls.check("synchronising the device")), "would block until persistent kernel");
}

}  // namespace
}  // namespace cingulum
