#include "ring/actor/reply_table.hpp"

#include <fmt/format.h>

#include <deque>

#include "ring/actor/reply_buffer.hpp"

namespace cingulum::ring {
namespace {

// A correlation is generation and slot; a slot's state word is generation and phase. Generations begin at 1, so that 0
// is never a request's correlation.
constexpr std::uint32_t slot_bits = 20;
enum Phase : std::uint64_t { phase_free = 0, phase_waiting = 1, phase_writing = 2, phase_done = 3 };

std::uint64_t state_word(std::uint64_t correlation, Phase phase) {
  return (correlation >> slot_bits) << 2 | phase;
}

// Answers of a stream that were not read yet.
struct UnreadAnswers {
  UnreadAnswers(WaitStrategy waiting, Schedule* schedule) : room(waiting, schedule) {}

  std::deque<Message> messages;  // of the one who has claimed the slot
  std::atomic<std::uint32_t> window{0};
  Doorbell room;
};

}  // namespace

struct alignas(line_bytes) ReplyTable::Slot {
  Slot(WaitStrategy waiting, Schedule* schedule) : bell(waiting, schedule) {}

  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> actor{0};
  std::atomic<std::uint32_t> unread{0};  // messages of the stream
  std::atomic<bool> is_stream{false};    // stored while the slot is free; true: `stream` is there
  // Belongs to the one who moved the state from waiting to writing, then to the requester when it is done.
  Message reply;
  std::optional<Error> error;
  std::unique_ptr<UnreadAnswers> stream;  // made for the slot's first stream and kept
  Doorbell bell;
};

ReplyTable::ReplyTable(std::uint32_t capacity, WaitStrategy waiting, Schedule* schedule, std::uint64_t first_generation)
    : waiting_(waiting), schedule_(schedule) {
  for (std::uint32_t i = 0; i < capacity; ++i) {
    slots_.push_back(std::make_unique<Slot>(waiting, schedule));
    slots_.back()->state.store(first_generation << 2, std::memory_order_relaxed);
    free_.push_back(capacity - 1 - i);
  }
}

ReplyTable::~ReplyTable() = default;

Result<std::uint32_t> ReplyTable::take_slot() {
  const std::uint32_t spare = spare_.exchange(0, std::memory_order_acquire);
  if (spare != 0) return spare - 1;
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    return cingulum::fail(ErrorKind::full,
                          "{} requests are in flight already; wait for some, or allow more (max_requests)",
                          slots_.size());
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

std::uint64_t ReplyTable::begin(std::uint32_t index, std::uint64_t actor) {
  Slot& slot = *slots_[index];
  const std::uint64_t generation = (slot.state.load(std::memory_order_relaxed) >> 2) + 1;
  const std::uint64_t correlation = generation << slot_bits | index;
  slot.actor.store(actor, std::memory_order_relaxed);
  slot.error.reset();
  slot.state.store(state_word(correlation, phase_waiting), std::memory_order_release);
  return correlation;
}

Result<std::uint64_t> ReplyTable::open(std::uint64_t actor) {
  CGL_TRY_ASSIGN(const std::uint32_t index, take_slot());
  slots_[index]->is_stream.store(false, std::memory_order_relaxed);
  return begin(index, actor);
}

Result<std::uint64_t> ReplyTable::open_stream(std::uint64_t actor, std::uint32_t window) {
  if (window == 0) return cingulum::fail(ErrorKind::invalid_argument, "a stream with a window of 0 takes no answer");
  CGL_TRY_ASSIGN(const std::uint32_t index, take_slot());
  Slot& slot = *slots_[index];
  if (slot.stream == nullptr) slot.stream = std::make_unique<UnreadAnswers>(waiting_, schedule_);
  slot.stream->window.store(window, std::memory_order_relaxed);
  slot.is_stream.store(true, std::memory_order_release);
  return begin(index, actor);
}

ReplyTable::Slot* ReplyTable::slot_of(std::uint64_t correlation) const {
  const std::uint64_t index = correlation & ((1u << slot_bits) - 1);
  return index < slots_.size() ? slots_[index].get() : nullptr;
}

bool ReplyTable::claim(Slot& slot, std::uint64_t correlation) {
  for (std::uint32_t look = 1;; ++look) {
    std::uint64_t expected = state_word(correlation, phase_waiting);
    if (slot.state.compare_exchange_strong(expected, state_word(correlation, phase_writing),
                                           std::memory_order_acq_rel)) {
      return true;
    }
    // An answer of the same stream is being written or read at this moment; a single answer is, and the request over.
    if (expected != state_word(correlation, phase_writing)) return false;
    if (look % 64 == 0) std::this_thread::yield();
    HostAtomics::pause();
  }
}

Delivery ReplyTable::settle(std::uint64_t correlation, const Message& reply, Wake wake, Window window) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr || !claim(*slot, correlation)) return Delivery::unwanted;
  Phase next = phase_done;
  if (slot->is_stream.load(std::memory_order_relaxed)) {
    UnreadAnswers& stream = *slot->stream;
    if (window == Window::counts && stream.messages.size() >= stream.window.load(std::memory_order_relaxed)) {
      slot->state.store(state_word(correlation, phase_waiting), std::memory_order_release);
      return Delivery::full;
    }
    stream.messages.push_back(reply);
    slot->unread.fetch_add(1, std::memory_order_relaxed);
    if (reply.has(mark_more)) next = phase_waiting;
  } else {
    slot->reply = reply;
  }
  slot->state.store(state_word(correlation, next), std::memory_order_release);
  if (wake == Wake::yes) slot->bell.ring();
  return next == phase_done ? Delivery::taken : Delivery::part;
}

Delivery ReplyTable::deliver(std::uint64_t correlation, const Message& reply) {
  return settle(correlation, reply, Wake::yes, Window::counts);
}

Delivery ReplyTable::deliver_own(std::uint64_t correlation, const Message& reply) {
  return settle(correlation, reply, Wake::no, Window::counts);
}

Delivery ReplyTable::deliver_beyond_window(std::uint64_t correlation, const Message& reply) {
  return settle(correlation, reply, Wake::yes, Window::is_lifted);
}

Delivery ReplyTable::deliver_waiting(std::uint64_t correlation, const Message& reply, const std::atomic<bool>& stop,
                                     const std::atomic<bool>& overflow) {
  for (;;) {
    const bool lifted = overflow.load(std::memory_order_acquire);
    const Delivery delivery = settle(correlation, reply, Wake::yes, lifted ? Window::is_lifted : Window::counts);
    if (delivery != Delivery::full || stop.load(std::memory_order_acquire)) return delivery;
    Slot& slot = *slot_of(correlation);
    const auto look_again = [&] {
      return slot.unread.load(std::memory_order_acquire) < slot.stream->window.load(std::memory_order_relaxed) ||
             !is_wanted(correlation) || stop.load(std::memory_order_acquire) ||
             overflow.load(std::memory_order_acquire);
    };
    static_cast<void>(slot.stream->room.wait(look_again, no_deadline));
  }
}

void ReplyTable::wake_deliverers() {
  for (const auto& slot : slots_) {
    // A stream that is opened at this moment has nobody waiting for its room.
    if ((slot->state.load(std::memory_order_acquire) & 3) != phase_free &&
        slot->is_stream.load(std::memory_order_acquire)) {
      slot->stream->room.ring_always();
    }
  }
}

bool ReplyTable::fail(std::uint64_t correlation, const Error& error) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr || !claim(*slot, correlation)) return false;
  slot->error = error;
  slot->state.store(state_word(correlation, phase_done), std::memory_order_release);
  slot->bell.ring();
  if (slot->is_stream.load(std::memory_order_acquire)) slot->stream->room.ring_always();
  return true;
}

std::uint32_t ReplyTable::fail_all_to(std::uint64_t actor, const Error& error) {
  std::uint32_t failed = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::uint64_t state = slots_[i]->state.load(std::memory_order_acquire);
    const bool is_open = (state & 3) == phase_waiting || (state & 3) == phase_writing;
    if (!is_open || slots_[i]->actor.load(std::memory_order_relaxed) != actor) continue;
    // Were the slot reused meanwhile, its generation would not fit.
    if (fail((state >> 2) << slot_bits | i, error)) ++failed;
  }
  return failed;
}

bool ReplyTable::is_wanted(std::uint64_t correlation) const {
  const Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return false;
  const std::uint64_t state = slot->state.load(std::memory_order_acquire);
  return state == state_word(correlation, phase_waiting) || state == state_word(correlation, phase_writing);
}

Result<Message> ReplyTable::wait(std::uint64_t correlation, std::uint64_t deadline_ns) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return cingulum::fail(ErrorKind::not_found, "request {} was never made", correlation);
  const std::uint64_t done = state_word(correlation, phase_done);
  const auto is_there = [&] { return slot->state.load(std::memory_order_acquire) == done; };
  if (!slot->bell.wait(is_there, deadline_ns)) {
    std::uint64_t expected = state_word(correlation, phase_waiting);
    if (slot->state.compare_exchange_strong(expected, state_word(correlation, phase_free), std::memory_order_acq_rel)) {
      give_back(correlation);
      return cingulum::fail(ErrorKind::timed_out, "no answer came in time");
    }
    while (!is_there()) HostAtomics::pause();  // it is being written at this moment
  }
  Result<Message> result = slot->error ? Result<Message>(tl::make_unexpected(std::move(*slot->error))) : slot->reply;
  slot->state.store(state_word(correlation, phase_free), std::memory_order_release);
  give_back(correlation);
  return result;
}

Result<ReplyTable::Next> ReplyTable::next(std::uint64_t correlation, std::uint64_t deadline_ns) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return cingulum::fail(ErrorKind::not_found, "request {} was never made", correlation);
  if (!slot->bell.wait([&] { return is_done(correlation); }, deadline_ns)) {
    return cingulum::fail(ErrorKind::timed_out, "no further answer came in time");
  }
  const bool is_open = claim(*slot, correlation);  // otherwise it is done, and nobody else's
  UnreadAnswers& stream = *slot->stream;
  Next taken;
  if (!stream.messages.empty()) {
    taken.answer = stream.messages.front();
    stream.messages.pop_front();
    taken.made_room = slot->unread.fetch_sub(1, std::memory_order_acq_rel) == stream.window.load();
  }
  if (is_open) slot->state.store(state_word(correlation, phase_waiting), std::memory_order_release);
  if (taken.answer) {
    stream.room.ring();
  } else if (slot->error) {
    return tl::make_unexpected(*slot->error);
  }
  return taken;
}

bool ReplyTable::is_done(std::uint64_t correlation) const {
  const Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return false;
  const std::uint64_t state = slot->state.load(std::memory_order_acquire);
  if (state == state_word(correlation, phase_done)) return true;
  return slot->unread.load(std::memory_order_acquire) != 0 && state >> 2 == correlation >> slot_bits;
}

bool ReplyTable::abandon(std::uint64_t correlation, const std::function<void(const Message&)>& unread) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return false;
  const bool was_open = claim(*slot, correlation);
  if (!was_open && slot->state.load(std::memory_order_acquire) != state_word(correlation, phase_done)) return false;
  UnreadAnswers* const stream = slot->is_stream.load(std::memory_order_relaxed) ? slot->stream.get() : nullptr;
  std::deque<Message> left;
  if (stream != nullptr) {
    left.swap(stream->messages);
    slot->unread.store(0, std::memory_order_release);
  } else if (!was_open && !slot->error) {
    left.push_back(slot->reply);
  }
  slot->state.store(state_word(correlation, phase_free), std::memory_order_release);
  // Before another can open it: who waits for room looks at this slot.
  if (stream != nullptr) stream->room.ring_always();
  give_back(correlation);
  for (const Message& message : left) unread ? unread(message) : drop_answer(message);
  return was_open;
}

void ReplyTable::give_back(std::uint64_t correlation) {
  const auto index = static_cast<std::uint32_t>(correlation & ((1u << slot_bits) - 1));
  std::uint32_t none = 0;
  if (spare_.compare_exchange_strong(none, index + 1, std::memory_order_release, std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(index);
}

std::uint64_t ReplyTable::deadline(Nanoseconds timeout) const {
  if (timeout == no_time_limit) return no_deadline;
  return deadline_after(schedule_ != nullptr ? schedule_->now_ns() : steady_now_ns(), timeout);
}

}  // namespace cingulum::ring
