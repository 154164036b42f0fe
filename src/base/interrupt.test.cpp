#include "base/interrupt.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic_file.hpp"
#include "support/temporary_folder.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace cingulum {
namespace {

// Runs `body` in a child process; the value is its exit code, or minus the signal that ended it.
template <class Body>
int exit_code_of_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Interrupt, first_signal_sets_the_flag_and_work_goes_on) {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(exit_code_of_child([&] {
                if (!install_interrupt_handlers() || interrupt_requested() || !check_interrupt()) return 1;
                ::raise(signal_number);
                if (!interrupt_requested()) return 2;
                const Status status = check_interrupt();
                return !status && status.error().kind() == ErrorKind::interrupted ? 0 : 3;
              }),
              0);
  }
}

TEST(Interrupt, second_signal_removes_partial_files_and_ends_with_130) {
  const TemporaryFolder folder;
  folder.put("old", "old");
  EXPECT_EQ(exit_code_of_child([&] {
              if (!install_interrupt_handlers()) return 1;
              auto first = AtomicFile::create(folder / "new");
              auto second = AtomicFile::create(folder / "old", {.force = true});
              if (!first || !second || !first->append("x") || folder.names().size() != 3) return 2;
              ::raise(SIGINT);
              if (folder.names().size() != 3) return 3;
              ::raise(SIGTERM);
              return 4;
            }),
            interrupted_exit_code);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"old"});
  EXPECT_EQ(folder.content("old"), "old");
}

TEST(Interrupt, committed_and_discarded_files_are_registered_no_more) {
  const TemporaryFolder folder;
  EXPECT_EQ(exit_code_of_child([&] {
              if (!install_interrupt_handlers()) return 1;
              if (!write_file_atomically(folder / "kept", "text")) return 2;
              ::raise(SIGINT);
              ::raise(SIGINT);
              return 3;
            }),
            interrupted_exit_code);
  EXPECT_EQ(folder.content("kept"), "text");
}

// The place of a file is given up once: the next file may have it before the first object is gone.
TEST(Interrupt, a_file_that_was_given_up_leaves_the_places_of_others_alone) {
  const TemporaryFolder folder;
  EXPECT_EQ(exit_code_of_child([&] {
              if (!install_interrupt_handlers()) return 1;
              auto stays = AtomicFile::create(folder / "stays");
              {
                auto given_up = AtomicFile::create(folder / "given_up");
                if (!stays || !given_up || folder.names().size() != 2) return 2;
                given_up->discard();
              }
              if (folder.names().size() != 1) return 3;
              ::raise(SIGINT);
              ::raise(SIGINT);
              return 4;
            }),
            interrupted_exit_code);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(Interrupt, signals_that_the_parent_ignores_stay_ignored) {
  EXPECT_EQ(exit_code_of_child([&] {
              ::signal(SIGHUP, SIG_IGN);
              if (!install_interrupt_handlers()) return 1;
              ::raise(SIGHUP);
              ::raise(SIGHUP);
              return interrupt_requested() ? 2 : 0;
            }),
            0);
}

TEST(Interrupt, a_closed_pipe_is_an_error_not_a_death) {
  EXPECT_EQ(exit_code_of_child([&] {
              if (!install_interrupt_handlers()) return 1;
              int ends[2];
              if (::pipe(ends) != 0) return 2;
              ::close(ends[0]);
              return ::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 3;
            }),
            0);
}

TEST(Interrupt, more_files_than_there_are_places_are_not_registered_and_do_no_harm) {
  std::vector<int> places;
  for (int i = 0; i < 1100; ++i) places.push_back(register_partial_file("/nonexistent/cingulum-test"));
  EXPECT_EQ(std::count(places.begin(), places.end(), -1), 1100 - 1024);
  for (const int place : places) unregister_partial_file(place);
  const int again = register_partial_file("/nonexistent/cingulum-test");
  EXPECT_GE(again, 0);
  unregister_partial_file(again);
}

#if defined(__GLIBC__)
TEST(Interrupt, a_file_that_found_no_place_takes_no_memory) {
  std::vector<int> places;
  for (int i = 0; i < 1024; ++i) places.push_back(register_partial_file("/nonexistent/cingulum-test"));
  const std::string path = "/nonexistent/" + std::string(4096, 'x');
  const std::size_t before = ::mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(register_partial_file(path.c_str()), -1);
  // Copies of all paths would be 4 MB.
  EXPECT_LT(::mallinfo2().uordblks, before + 1000000);
  for (const int place : places) unregister_partial_file(place);
}
#endif

}  // namespace
}  // namespace cingulum
