// The threads that wait for an answer: one slot per request in flight, named by the correlation of its message (slot
// and generation). Runtime::request opens a slot; whoever holds the answer completes it (a CPU actor's thread directly,
// the host side of a device ring as it reads). An answer whose slot is gone is told to the caller, who counts it as
// late.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

class ReplyTable {
 public:
  explicit ReplyTable(std::uint32_t capacity, WaitStrategy waiting = {}, Schedule* schedule = nullptr);
  ~ReplyTable();

  // A slot for a request to `actor`. ErrorKind::full when `capacity` requests are in flight.
  [[nodiscard]] Result<std::uint64_t> open(std::uint16_t actor);
  // Any thread, once per request: false when nobody waits for it (any more).
  bool complete(std::uint64_t correlation, const Message& reply);
  // The same, called by the requesting thread itself, which found its answer: no thread has to be woken.
  bool complete_own(std::uint64_t correlation, const Message& reply);
  // Ends the request with this error and wakes the thread that waits for it.
  bool fail(std::uint64_t correlation, const Error& error);
  // Fails all requests to `actor` that are still open; answers how many there were.
  std::uint32_t fail_all_to(std::uint16_t actor, const Error& error);

  // For the requesting thread: waits, takes the answer and frees the slot, whatever the outcome. ErrorKind::timed_out
  // at the deadline.
  [[nodiscard]] Result<Message> wait(std::uint64_t correlation, std::uint64_t deadline_ns);
  // For the requesting thread: whether wait would return at once.
  [[nodiscard]] bool is_done(std::uint64_t correlation) const;
  // For the requesting thread, which does not want the answer any more.
  void abandon(std::uint64_t correlation);

  // The moment `timeout` from now, on the clock that wait uses.
  [[nodiscard]] std::uint64_t deadline(Nanoseconds timeout) const;

 private:
  struct Slot;
  [[nodiscard]] Slot* slot_of(std::uint64_t correlation) const;
  // The first call for a request writes the answer and wakes the thread that waits; later calls answer false.
  template <class Write>
  bool settle(std::uint64_t correlation, bool wake, Write&& write);
  void give_back(std::uint64_t correlation);

  std::vector<std::unique_ptr<Slot>> slots_;
  Schedule* const schedule_;
  std::atomic<std::uint32_t> spare_{0};  // 1 + a slot that is free, at hand without the lock; 0: none
  mutable std::mutex mutex_;             // guards free_
  std::vector<std::uint32_t> free_;
};

}  // namespace cingulum::ring
