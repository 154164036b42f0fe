// Ctrl-C and the other signals that ask to end (SIGTERM, SIGHUP), for the process as a whole. The program's entry
// installs the handlers; work polls the token of its run (base/cancel.hpp), which follows this flag unless it was made
// otherwise; AtomicFile registers its partial files so that even the second, impatient Ctrl-C leaves none. A library
// user who never installs the handlers keeps their own signals.
#pragma once

#include "base/result.hpp"

namespace cingulum {

// SIGINT, SIGTERM and SIGHUP: the first sets the flag; the second removes the registered files, gives the terminal back
// and ends the process with exit code 130. Signals that the parent had set to be ignored (nohup, background jobs of a
// shell) stay ignored. SIGPIPE is ignored: writers see EPIPE.
[[nodiscard]] Status install_interrupt_handlers();

// any thread
[[nodiscard]] bool interrupt_requested() noexcept;

// For tests, and for programs that have another way to be stopped. any thread
void request_interrupt() noexcept;
void clear_interrupt() noexcept;

// An error of kind interrupted when a stop was requested: CGL_TRY(check_interrupt()); any thread
[[nodiscard]] Status check_interrupt();

constexpr int interrupted_exit_code = 130;

// A file that the second signal removes. The path is kept until unregister. When all places are taken the file is not
// registered (-1): it would be left behind as a partial file, which the next run removes. any thread
[[nodiscard]] int register_partial_file(const char* path) noexcept;
void unregister_partial_file(int registration) noexcept;

}  // namespace cingulum
