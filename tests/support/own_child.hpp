// Runs one test of this very program in a process of its own: for what ends a process or its device, and for what must
// be killed from outside. Such tests are named DISABLED_ and are run by nobody else.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace cingulum::testing {

class OwnChild {
 public:
  // The child's standard output is ours to read; what it prints on standard error is shown.
  explicit OwnChild(const std::string& test) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return;
    const std::string filter = "--gtest_filter=" + test;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::execl("/proc/self/exe", "test", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  OwnChild(const OwnChild&) = delete;
  OwnChild& operator=(const OwnChild&) = delete;
  ~OwnChild() {
    kill(SIGKILL);
    static_cast<void>(wait(std::chrono::seconds(10)));
    if (output_ >= 0) ::close(output_);
  }

  // Whether `text` appeared in what it printed within the time.
  bool prints(const std::string& text, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (printed_.find(text) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd waiting{output_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
      char bytes[4096];
      const ssize_t got = ::read(output_, bytes, sizeof bytes);
      if (got <= 0) return false;
      printed_.append(bytes, static_cast<std::size_t>(got));
    }
    return true;
  }
  void kill(int signal) {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  // Once it has said that it is ready: stopped for a while, then set going again.
  void stop_for(std::chrono::milliseconds time) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(SIGSTOP);
    std::this_thread::sleep_for(time);
    kill(SIGCONT);
  }
  // The status of waitpid, or -1 when it did not end in time.
  int wait(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (pid_ > 0) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        status_ = status;
      } else if (std::chrono::steady_clock::now() > deadline) {
        return -1;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    return status_;
  }
  bool succeeds(std::chrono::milliseconds patience) {
    static_cast<void>(prints("\n[  PASSED  ] 1 test.", patience));
    const int status = wait(patience);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && printed_.find("[  PASSED  ] 1 test.") != std::string::npos;
  }
  [[nodiscard]] const std::string& printed() const { return printed_; }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  int status_ = -1;
  std::string printed_;
};

}  // namespace cingulum::testing
