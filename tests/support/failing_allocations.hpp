// Makes the n-th allocation of this thread fail (goal R10). failing_allocations.cpp replaces operator new, so it is
// linked into a program of its own, test_out_of_memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace cingulum::testing {

// Of the calling thread, which alone counts and fails.
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

}  // namespace cingulum::testing
