#include "measure/child_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"

namespace cingulum::measure {

namespace fs = std::filesystem;

fs::path own_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

namespace {

// Whether the child ended by itself; else its whole group was killed, and the child is still to be waited for.
bool ended_within(pid_t child, double limit_seconds, std::chrono::steady_clock::time_point start) {
  constexpr auto look_again = std::chrono::milliseconds(5);
  while (true) {
    siginfo_t state = {};
    if (::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) != 0 || state.si_pid == child) {
      return true;
    }
    if (seconds_since(start) > limit_seconds || interrupt_requested()) {
      ::kill(-child, SIGKILL);
      return false;
    }
    std::this_thread::sleep_for(look_again);
  }
}

}  // namespace

ChildRun run_child(const std::vector<std::string>& words, const fs::path& output, ChildErrors errors,
                   double limit_seconds) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    if (limit_seconds > 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) {
      ::dup2(file, STDOUT_FILENO);
      if (errors == ChildErrors::with_output) ::dup2(file, STDERR_FILENO);
    }
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  if (child > 0 && limit_seconds > 0) ::setpgid(child, child);  // whoever of the two comes first
  const bool too_long = child > 0 && limit_seconds > 0 && !ended_within(child, limit_seconds, start);
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child) return {};
  const double seconds = seconds_since(start);
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds, in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, WIFEXITED(status) && WEXITSTATUS(status) == 0, too_long};
}

Result<ScratchFolder> ScratchFolder::create(const fs::path& where) {
  std::string name = (where / "cingulum-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return fail(ErrorKind::io, "making a folder in {}: it cannot be written", where.string());
  }
  return ScratchFolder(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace cingulum::measure
