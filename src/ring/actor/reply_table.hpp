// The table of the threads that wait for answers: one slot per request in flight, named by the correlation of its
// message (slot and generation). Runtime::request opens a slot for one answer, Runtime::request_stream one for many;
// whoever holds an answer delivers it (a CPU actor's thread directly, the host side of a device ring as it reads). An
// answer whose slot is gone is reported to the caller, who counts it as late.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

enum class Delivery : std::uint8_t {
  taken,     // and the request is over
  part,      // taken by a stream that goes on
  unwanted,  // nobody waits for it (any more)
  full       // a stream whose window is full of answers that were not read yet
};

class ReplyTable {
 public:
  // `first_generation`: tables whose correlations meet (in one grid) begin far apart.
  explicit ReplyTable(std::uint32_t capacity, WaitStrategy waiting = {}, Schedule* schedule = nullptr,
                      std::uint64_t first_generation = 0);
  ~ReplyTable();

  // A slot for a request to the actor of this identity. ErrorKind::full when `capacity` requests are in flight.
  [[nodiscard]] Result<std::uint64_t> open(std::uint64_t actor);
  // The same for a request with several answers, of which `window` may wait to be read.
  [[nodiscard]] Result<std::uint64_t> open_stream(std::uint64_t actor, std::uint32_t window);

  // Any thread, without waiting. A request for one answer takes its first; a stream takes answers up to the first
  // without mark_more.
  Delivery deliver(std::uint64_t correlation, const Message& reply);
  // The same, called by the requesting thread itself, which found its answer: no thread has to be woken.
  Delivery deliver_own(std::uint64_t correlation, const Message& reply);
  // The same, whatever the window: for actors that end and cannot wait for a reader.
  Delivery deliver_beyond_window(std::uint64_t correlation, const Message& reply);
  // Waits for room. `stop` gives up with `full`; `overflow` becomes true: the window counts no more.
  Delivery deliver_waiting(std::uint64_t correlation, const Message& reply, const std::atomic<bool>& stop,
                           const std::atomic<bool>& overflow);
  // Wakes the threads in deliver_waiting, so that they look at their flags again.
  void wake_deliverers();
  // Ends the request with this error and wakes the thread that waits for it. What a stream holds is read before it.
  bool fail(std::uint64_t correlation, const Error& error);
  // Fails all requests to `actor` that are still open; answers how many there were.
  std::uint32_t fail_all_to(std::uint64_t actor, const Error& error);
  // Any thread: whether an answer would be taken.
  [[nodiscard]] bool is_wanted(std::uint64_t correlation) const;

  // For the requesting thread: waits, takes the answer and frees the slot, whatever the outcome. ErrorKind::timed_out
  // at the deadline.
  [[nodiscard]] Result<Message> wait(std::uint64_t correlation, std::uint64_t deadline_ns);
  struct Next {
    std::optional<Message> answer;  // none: the last one was taken before
    bool made_room = false;         // the window was full before it was taken
  };
  // For the thread that reads a stream: the next answer. ErrorKind::timed_out leaves the stream as it is; any other
  // error is its end. The slot is kept until abandon.
  [[nodiscard]] Result<Next> next(std::uint64_t correlation, std::uint64_t deadline_ns);
  // For the requesting thread: whether wait or next would return at once.
  [[nodiscard]] bool is_done(std::uint64_t correlation) const;
  // For the requesting thread, which wants no answer any more: frees the slot. True: answers could still have come.
  // `unread` is given what was not taken; otherwise its reply buffers go back to their actors.
  bool abandon(std::uint64_t correlation, const std::function<void(const Message&)>& unread = {});

  // The moment `timeout` from now, on the clock that wait uses.
  [[nodiscard]] std::uint64_t deadline(Nanoseconds timeout) const;

 private:
  struct Slot;
  [[nodiscard]] Slot* slot_of(std::uint64_t correlation) const;
  [[nodiscard]] Result<std::uint32_t> take_slot();
  [[nodiscard]] std::uint64_t begin(std::uint32_t index, std::uint64_t actor);
  // The slot belongs to the caller until it stores another state. False: the request is not open.
  [[nodiscard]] static bool claim(Slot& slot, std::uint64_t correlation);
  enum class Wake : bool { no, yes };
  enum class Window : bool { counts, is_lifted };
  Delivery settle(std::uint64_t correlation, const Message& reply, Wake wake, Window window);
  void give_back(std::uint64_t correlation);

  const WaitStrategy waiting_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Schedule* const schedule_;
  std::atomic<std::uint32_t> spare_{0};  // 1 + a slot that is free, at hand without the lock; 0: none
  mutable std::mutex mutex_;             // guards free_
  std::vector<std::uint32_t> free_;
};

}  // namespace cingulum::ring
