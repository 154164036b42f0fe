#include "base/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/file_layer.hpp"

namespace cingulum {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<char*>::is_always_lock_free,
              "the signal handler may use lock-free atomics only");

std::atomic<bool> requested{false};

// Each place owns a copy of a path. Whoever exchanges it for null (the handler, or unregister) has it alone: the
// handler never reads a path that another thread frees.
constexpr std::size_t max_registered = 1024;
std::array<std::atomic<char*>, max_registered> partial_files{};

// Erase a progress bar that may stand in the last line.
constexpr std::string_view restore_terminal = "\r\x1b[K";

extern "C" void handle_interrupt(int) {
  const int saved_errno = errno;
  if (!requested.exchange(true)) {
    errno = saved_errno;
    return;
  }
  // Async-signal-safe calls only from here.
  for (std::atomic<char*>& place : partial_files) {
    if (char* path = place.exchange(nullptr)) ::unlink(path);
  }
  if (::isatty(STDERR_FILENO) == 1) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, restore_terminal.data(), restore_terminal.size());
  }
  ::_exit(interrupted_exit_code);
}

Status install(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  if (::sigaction(signal_number, nullptr, &action) != 0) {
    return fail(ErrorKind::unavailable, "reading the handler of signal {}: {}", signal_number,
                system_error_text(errno));
  }
  if (action.sa_handler == SIG_IGN) return {};
  action = {};
  action.sa_handler = handler;
  // No SA_RESTART: a read that waits for input has to come back and see the request.
  sigemptyset(&action.sa_mask);
  for (const int masked : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, masked);
  if (::sigaction(signal_number, &action, nullptr) != 0) {
    return fail(ErrorKind::unavailable, "handling signal {}: {}", signal_number, system_error_text(errno));
  }
  return {};
}

}  // namespace

Status install_interrupt_handlers() {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) CGL_TRY(install(signal_number, handle_interrupt));
  return install(SIGPIPE, SIG_IGN);
}

bool interrupt_requested() noexcept {
  return requested.load(std::memory_order_relaxed);
}

void request_interrupt() noexcept {
  requested.store(true);
}

void clear_interrupt() noexcept {
  requested.store(false);
}

Status check_interrupt() {
  if (interrupt_requested()) return fail(ErrorKind::interrupted, "interrupted");
  return {};
}

int register_partial_file(const char* path) noexcept {
  char* copy = ::strdup(path);
  if (copy == nullptr) return -1;
  for (std::size_t i = 0; i < partial_files.size(); ++i) {
    char* expected = nullptr;
    if (partial_files[i].compare_exchange_strong(expected, copy)) return static_cast<int>(i);
  }
  std::free(copy);
  return -1;
}

void unregister_partial_file(int registration) noexcept {
  if (registration < 0) return;
  std::free(partial_files[static_cast<std::size_t>(registration)].exchange(nullptr));
}

}  // namespace cingulum
