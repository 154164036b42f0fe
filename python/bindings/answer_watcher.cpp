#include "answer_watcher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "ring/queue/waiting.hpp"

namespace cingulum::python {
namespace {

constexpr std::uint64_t spin_ns = 20'000;
constexpr std::uint64_t shortest_nap_ns = 20'000;
constexpr std::uint64_t longest_nap_ns = 1'000'000;

std::chrono::nanoseconds nap_after(std::uint64_t waited_ns) {
  return std::chrono::nanoseconds(std::clamp(waited_ns / 20, shortest_nap_ns, longest_nap_ns));
}

}  // namespace

bool look_for_answer(const ring::PendingReply& pending, std::uint64_t until_ns) {
  const std::uint64_t since = ring::steady_now_ns();
  for (std::uint32_t look = 1;; ++look) {
    if (pending.is_done()) return true;
    ring::HostAtomics::pause();
    if (look % 32 != 0) continue;
    const std::uint64_t now = ring::steady_now_ns();
    if (now >= until_ns) return pending.is_done();
    if (now - since > spin_ns) std::this_thread::sleep_for(nap_after(now - since));
  }
}

AnswerWatcher::~AnswerWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (const int end : pipe_) {
    if (end >= 0) ::close(end);
  }
}

Result<int> AnswerWatcher::open() {
  const std::lock_guard lock(mutex_);
  if (pipe_[0] >= 0) return pipe_[0];
  if (::pipe(pipe_) != 0) return fail(ErrorKind::io, "making a pipe for answers: error {}", errno);
  for (const int end : pipe_) {
    ::fcntl(end, F_SETFL, O_NONBLOCK);
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  thread_ = std::thread([this] { watch(); });
  return pipe_[0];
}

void AnswerWatcher::add(std::uint64_t number, ring::PendingReply pending, std::uint64_t deadline_ns) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({number, std::make_unique<ring::PendingReply>(std::move(pending)), deadline_ns});
  }
  changed_.notify_one();
}

void AnswerWatcher::drop(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Waiting& one) { return one.number == number; });
  std::erase_if(ended_, [&](const auto& one) { return one.first == number; });
}

std::vector<std::pair<std::uint64_t, Result<ring::Message>>> AnswerWatcher::take() {
  const std::lock_guard lock(mutex_);
  char bytes[64];
  while (::read(pipe_[0], bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) {
  }
  return std::exchange(ended_, {});
}

void AnswerWatcher::watch() {
  std::unique_lock lock(mutex_);
  std::uint64_t since = 0;
  while (!stop_) {
    if (waiting_.empty()) {
      // wait() without a limit would ask for a newer libstdc++ than the wheel may (base/older_libstdcxx.cpp).
      while (!changed_.wait_for(lock, std::chrono::hours(1), [&] { return stop_ || !waiting_.empty(); })) {
      }
      since = ring::steady_now_ns();
      continue;
    }
    const std::uint64_t now = ring::steady_now_ns();
    const std::size_t before = waiting_.size();
    std::erase_if(waiting_, [&](Waiting& one) {
      if (!one.pending->is_done() && now < one.deadline_ns) return false;
      ended_.emplace_back(one.number, one.pending->wait(std::chrono::nanoseconds(0)));
      return true;
    });
    if (waiting_.size() != before) {
      // A full pipe is fine: the loop has bytes to read then.
      static_cast<void>(::write(pipe_[1], "", 1) == 1);
      since = now;
    }
    if (now - since < spin_ns) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else {
      changed_.wait_for(lock, nap_after(now - since));
    }
  }
}

}  // namespace cingulum::python
