// Answers that asyncio waits for: a thread looks at the requests that are on their way and writes a byte into a pipe
// when one has ended, which an event loop can watch. A request comes here only after it was not answered within the
// microseconds for which the asking thread looked itself. The thread takes no GIL.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ring/actor/runtime.hpp"

namespace cingulum::python {

// Looks for an answer for this long, then every so often: soon at first, later at a twentieth of the time that has
// passed, at most a millisecond.
[[nodiscard]] bool look_for_answer(const ring::PendingReply& pending, std::uint64_t until_ns);

class AnswerWatcher {
 public:
  AnswerWatcher() = default;
  ~AnswerWatcher();
  AnswerWatcher(const AnswerWatcher&) = delete;
  AnswerWatcher& operator=(const AnswerWatcher&) = delete;

  // The end of the pipe that an event loop watches. The first call makes pipe and thread.
  [[nodiscard]] Result<int> open();
  // `number` comes back with the answer.
  void add(std::uint64_t number, ring::PendingReply pending, std::uint64_t deadline_ns);
  // Nobody waits any more.
  void drop(std::uint64_t number);
  // What has ended since the last call; empties the pipe.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, Result<ring::Message>>> take();

 private:
  struct Waiting {
    std::uint64_t number;
    std::unique_ptr<ring::PendingReply> pending;
    std::uint64_t deadline_ns;
  };
  void watch();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<std::uint64_t, Result<ring::Message>>> ended_;
  bool stop_ = false;
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace cingulum::python
