// Work of the library for a Python call: it runs on a thread of its own while the calling thread waits without the GIL,
// looks for signals a few times in a tenth of a second, and hands on log lines and progress. So Ctrl-C is a
// KeyboardInterrupt soon after it was pressed, callbacks run in the thread that called, and no thread of the library
// ever takes the GIL. Every function of the binding that may work for long goes through run_job.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>

#include "base/cancel.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"

namespace cingulum::python {

namespace nb = nanobind;

// What the work gets: the token that Ctrl-C cancels, and who is told how far it is.
struct JobContext {
  CancelToken cancel;
  ProgressObserver* observer = nullptr;  // never null
};

enum class Stopping {
  by_token,   // the work polls its token
  by_process  // some of the work asks the process: other runs that do so end with it
};

// Throws NativeError where the work failed, and nb::python_error where a signal handler or `progress` raised; then the
// work was cancelled and has ended. `progress` is None or a callable of one ProgressEvent (cingulum/_talk.py).
// `on_stop` is called besides where the work is to end early. The caller holds the GIL.
void run_job(const nb::object& progress, Stopping stopping, const std::function<Status(JobContext&)>& work,
             const std::function<void()>& on_stop = {});

// Fails in a process that was forked off one in which the library had worked: its threads are not there.
void refuse_after_fork();

// From now on the library's log goes to logging.getLogger("cingulum"); false: to stderr, as the program's does.
void send_log_to_python(bool on);

}  // namespace cingulum::python
