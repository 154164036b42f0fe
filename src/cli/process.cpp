#include "cli/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_layer.hpp"
#include "base/interrupt.hpp"
#include "base/option_name.hpp"
#include "base/terminal.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"

namespace cingulum {
namespace {

// The first error of stdout; later calls may have changed errno.
int stdout_error = 0;

void write_to_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && stdout_error == 0) stdout_error = errno;
}

// A result that did not arrive is a failure. When the reader went away (`| head`) there is nobody to tell.
int finish_stdout(int exit_code) {
  if (std::fflush(stdout) != 0 && stdout_error == 0) stdout_error = errno;
  if (stdout_error == 0) return exit_code;
  if (stdout_error != EPIPE) log_error("writing the result to stdout: {}", system_error_text(stdout_error));
  return exit_code == 0 ? 1 : exit_code;
}

// Without destructors: tools that count at the end of a process (leaks, coverage) want them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(CINGULUM_ORDERLY_EXIT)
constexpr bool leaves_early = false;
#else
constexpr bool leaves_early = true;
#endif

void leave_process() {
  if (leaves_early) std::_Exit(finish_stdout(0));
}

// Mesa asks Wayland for a display, and libwayland complains on stderr when this variable is not set. Nothing is shown
// here, so any folder will do. The environment belongs to the process, hence not in the library.
void silence_wayland() {
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 0);
}

}  // namespace

int run_process(const std::vector<std::string>& words) {
  silence_wayland();
  const auto run = [&]() -> Result<int> {
    CGL_TRY(install_interrupt_handlers());
    CGL_TRY_ASSIGN(Settings settings, Settings::from_environment());
    Program program{.verbs = all_verbs(),
                    .settings = std::move(settings),
                    .output = write_to_stdout,
                    .output_width = terminal_width(STDOUT_FILENO),
                    .log = Log::standard(),
                    .leave = leave_process};
    return run_program(program, words);
  };
  const Result<int> exit_code = catch_out_of_memory(run);
  if (!exit_code) {
    Log::standard().set_argument_naming(option_name);
    log_error("{}", exit_code.error());
    return 1;
  }
  return finish_stdout(*exit_code);
}

}  // namespace cingulum
