// Binds the threads of a bench to processors. Threads inherit the binding from those who start them, so a peer's
// threads are started while the caller is bound to the processors that they shall use.
#pragma once

#include <sched.h>

#include <cstddef>

namespace cingulum::bench {

// The calling thread to one processor; a wish.
inline void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

constexpr int asking_processor = 0;
constexpr int answering_processor = 1;

}  // namespace cingulum::bench
