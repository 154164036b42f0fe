// Where the threads of a bench run. Threads inherit it from those who start them: a peer's threads are started while
// the caller is where they are to be.
#pragma once

#include <sched.h>

#include <cstddef>

namespace cingulum::bench {

// Asks the system to run the calling thread on one processor; a refusal is ignored.
inline void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

constexpr int asking_processor = 0;
constexpr int answering_processor = 1;

}  // namespace cingulum::bench
