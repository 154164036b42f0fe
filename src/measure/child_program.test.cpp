#include "measure/child_program.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/temporary_folder.hpp"

namespace cingulum::measure {
namespace child_program_tests {

TEST(ChildProgram, one_that_ends_in_time_is_what_it_was_without_a_limit) {
  const TemporaryFolder folder;
  const ChildRun run = run_child({"sh", "-c", "echo said; exit 0"}, folder / "out", ChildErrors::shown, 60);
  EXPECT_TRUE(run.succeeded);
  EXPECT_FALSE(run.too_long);
  std::string said;
  std::ifstream(folder / "out") >> said;
  EXPECT_EQ(said, "said");
  const ChildRun failed = run_child({"sh", "-c", "exit 3"}, folder / "out", ChildErrors::shown, 60);
  EXPECT_FALSE(failed.succeeded);
  EXPECT_FALSE(failed.too_long);
}

// Peers start programs of their own, which must not compute on beside the next one.
TEST(ChildProgram, one_that_takes_too_long_ends_with_all_that_it_started) {
  const TemporaryFolder folder;
  const ChildRun run = run_child({"sh", "-c", "sleep 600 & echo $!; wait"}, folder / "out", ChildErrors::shown, 0.5);
  EXPECT_FALSE(run.succeeded);
  EXPECT_TRUE(run.too_long);
  std::string started;
  std::ifstream(folder / "out") >> started;
  ASSERT_FALSE(started.empty());
  const auto is_gone = [&] {
    std::string word;
    std::ifstream state("/proc/" + started + "/stat");
    state >> word >> word >> word;  // number, name, state
    return !state || word == "Z";
  };
  for (int i = 0; i < 1000 && !is_gone(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_gone());
}

}  // namespace child_program_tests
}  // namespace cingulum::measure
