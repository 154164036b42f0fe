#include "base/side_task.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

namespace cingulum {
namespace {

TEST(side_task, tasks_of_one_owner_take_turns_on_one_other_thread) {
  SideTask<std::thread::id> task;
  task.begin([]() -> Result<std::thread::id> { return std::this_thread::get_id(); });
  const auto first = task.end();
  task.begin([]() -> Result<std::thread::id> { return std::this_thread::get_id(); });
  const auto second = task.end();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, std::this_thread::get_id());
}

TEST(side_task, a_task_goes_on_while_its_owner_does_something_else) {
  std::atomic<bool> owner_went_on = false;
  SideTask<void> task;
  task.begin([&]() -> Status {
    while (!owner_went_on) std::this_thread::yield();
    return {};
  });
  owner_went_on = true;
  EXPECT_TRUE(task.end());
}

TEST(side_task, failures_and_memory_that_runs_out_are_answers) {
  SideTask<int> task;
  task.begin([]() -> Result<int> { return fail(ErrorKind::io, "a full disk"); });
  EXPECT_EQ(task.end().error().message(), "a full disk");
  task.begin([]() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(task.end().error().kind(), ErrorKind::out_of_memory);
  task.begin([]() -> Result<int> { return 7; });
  EXPECT_EQ(task.end().value(), 7);
}

TEST(side_task, an_owner_that_ends_waits_for_its_task_and_none_that_began_nothing_waits) {
  std::atomic<int> done = 0;
  {
    SideTask<void> task;
    EXPECT_TRUE(task.end());
    task.begin([&]() -> Status {
      ++done;
      return {};
    });
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace cingulum
