// Makes the n-th allocation of this thread fail, to test that exhausted memory is a refusal and no crash.
// failing_allocations.cpp replaces operator new, so it is linked into a program of its own, test_out_of_memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>

#include "base/result.hpp"

namespace cingulum::testing {

// Allocations of the calling thread, which alone counts and fails.
struct FailingAllocations {
  bool counting = false;
  std::size_t allocations = 0;
  std::size_t failing = 0;  // counted from 1; 0: none fails
  long live = 0;
};
[[nodiscard]] FailingAllocations& failing_allocations();

struct Attempt {
  bool succeeded = false;
  bool out_of_memory = false;
  std::size_t allocations = 0;
  long leaked = 0;
};

// One run of `body` (it returns a Status) with allocation n failing.
template <class Body>
Attempt attempt(std::size_t n, Body& body) {
  FailingAllocations& state = failing_allocations();
  Attempt result;
  state = {.counting = true, .allocations = 0, .failing = n, .live = 0};
  {
    const Status status = body();
    result.succeeded = status.has_value();
    result.out_of_memory = !status && status.error().kind() == ErrorKind::out_of_memory;
  }
  state.counting = false;
  result.allocations = state.allocations;
  result.leaked = state.live;
  return result;
}

// Runs `body` with the first, second, third, ... allocation failing, until a run needs fewer.
template <class Body>
void expect_errors_for_every_allocation(Body body, std::size_t at_least) {
  (void)body();  // what is made once and kept (tables, locales) is made now
  for (std::size_t n = 1;; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const Attempt result = attempt(n, body);
    ASSERT_EQ(result.leaked, 0);
    if (result.allocations < n) {
      EXPECT_TRUE(result.succeeded);
      EXPECT_GE(n, at_least);
      return;
    }
    // A failure may be absorbed where the allocation only served tidiness; otherwise it is named as what it is.
    ASSERT_TRUE(result.succeeded || result.out_of_memory);
  }
}

// Allocations of the checks themselves do not count.
template <class Check>
void without_counting(Check&& check) {
  failing_allocations().counting = false;
  check();
  failing_allocations().counting = true;
}

// What became of attempts that each had a process of its own.
struct AttemptsInChildren {
  std::size_t tries = 0;
  std::size_t ended = 0;    // by std::terminate, or by the null pointer of a half-made json
  std::size_t refused = 0;  // with an Error
};

// As expect_errors_for_every_allocation, each attempt in a child: for code with JSON, whose destructors allocate and
// end the process when they cannot.
template <class Body>
AttemptsInChildren attempts_in_children(Body body) {
  enum : int { done_without = 10, absorbed = 11, refused = 12, leaked = 13, wrong = 14 };
  (void)body();
  AttemptsInChildren outcome;
  for (std::size_t n = 1;; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)std::freopen("/dev/null", "w", stderr);  // what std::terminate says
      const Attempt result = attempt(n, body);
      if (result.leaked != 0) ::_exit(leaked);
      if (result.allocations < n) ::_exit(result.succeeded ? done_without : wrong);
      ::_exit(result.succeeded ? absorbed : result.out_of_memory ? refused : wrong);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child) ADD_FAILURE() << "waiting";
    const bool ended = WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    EXPECT_TRUE(ended || code == done_without || code == absorbed || code == refused)
        << "allocation " << n << ": exit " << code << ", status " << status;
    if (code == done_without || ::testing::Test::HasFailure()) return outcome;
    ++outcome.tries;
    outcome.ended += ended ? 1 : 0;
    outcome.refused += code == refused ? 1 : 0;
  }
}

// Allocations of one call.
template <class Call>
std::size_t allocations_of(Call&& call) {
  auto body = [&]() -> Status {
    call();
    return {};
  };
  (void)body();
  return attempt(0, body).allocations;
}

}  // namespace cingulum::testing
