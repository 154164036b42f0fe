// What a run gets from its caller: the token that cancels it, the observer of its progress, and the log that it writes
// to. Functions that work for long take one (or its `cancel` alone) instead of asking the process. All members have a
// default that is the process's: Ctrl-C, a bar or lines on stderr, the log on stderr.
#pragma once

#include "base/cancel.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"

namespace cingulum {

struct RunContext {
  RunContext() = default;
  // Where only the progress is the caller's own.
  RunContext(ProgressOptions shown) : progress(std::move(shown)) {}  // NOLINT(google-explicit-constructor)

  CancelToken cancel = {};
  ProgressOptions progress = {};
  Log* log = &Log::standard();  // never null
};

}  // namespace cingulum
