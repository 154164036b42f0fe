#include "ring/actor/reply_table.hpp"

#include <fmt/format.h>

#include <optional>

namespace cingulum::ring {
namespace {

// A correlation is generation and slot; a slot's state word is generation and phase. Generations begin at 1, so that 0
// is never a request's correlation.
constexpr std::uint32_t slot_bits = 20;
enum Phase : std::uint64_t { phase_free = 0, phase_waiting = 1, phase_writing = 2, phase_done = 3 };

std::uint64_t state_word(std::uint64_t correlation, Phase phase) {
  return (correlation >> slot_bits) << 2 | phase;
}

}  // namespace

struct alignas(line_bytes) ReplyTable::Slot {
  Slot(WaitStrategy waiting, Schedule* schedule) : bell(waiting, schedule) {}

  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint16_t> actor{0};
  // Belongs to the one who moved the state from waiting to writing, then to the requester when it is done.
  Message reply;
  std::optional<Error> error;
  Doorbell bell;
};

ReplyTable::ReplyTable(std::uint32_t capacity, WaitStrategy waiting, Schedule* schedule) : schedule_(schedule) {
  for (std::uint32_t i = 0; i < capacity; ++i) {
    slots_.push_back(std::make_unique<Slot>(waiting, schedule));
    free_.push_back(capacity - 1 - i);
  }
}

ReplyTable::~ReplyTable() = default;

Result<std::uint64_t> ReplyTable::open(std::uint16_t actor) {
  std::uint32_t index = spare_.exchange(0, std::memory_order_acquire);
  if (index != 0) {
    --index;
  } else {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return cingulum::fail(ErrorKind::full,
                            "{} requests are in flight already; wait for some, or allow more (max_requests)",
                            slots_.size());
    }
    index = free_.back();
    free_.pop_back();
  }
  Slot& slot = *slots_[index];
  const std::uint64_t generation = (slot.state.load(std::memory_order_relaxed) >> 2) + 1;
  const std::uint64_t correlation = generation << slot_bits | index;
  slot.actor.store(actor, std::memory_order_relaxed);
  slot.error.reset();
  slot.state.store(state_word(correlation, phase_waiting), std::memory_order_release);
  return correlation;
}

ReplyTable::Slot* ReplyTable::slot_of(std::uint64_t correlation) const {
  const std::uint64_t index = correlation & ((1u << slot_bits) - 1);
  return index < slots_.size() ? slots_[index].get() : nullptr;
}

template <class Write>
bool ReplyTable::settle(std::uint64_t correlation, bool wake, Write&& write) {
  Slot* const slot = slot_of(correlation);
  if (slot == nullptr) return false;
  std::uint64_t expected = state_word(correlation, phase_waiting);
  if (!slot->state.compare_exchange_strong(expected, state_word(correlation, phase_writing),
                                           std::memory_order_acq_rel)) {
    return false;
  }
  write(*slot);
  slot->state.store(state_word(correlation, phase_done), std::memory_order_release);
  if (wake) slot->bell.ring();
  return true;
}

bool ReplyTable::complete(std::uint64_t correlation, const Message& reply) {
  return settle(correlation, true, [&](Slot& slot) { slot.reply = reply; });
}

bool ReplyTable::complete_own(std::uint64_t correlation, const Message& reply) {
  return settle(correlation, false, [&](Slot& slot) { slot.reply = reply; });
}

bool ReplyTable::fail(std::uint64_t correlation, const Error& error) {
  return settle(correlation, true, [&](Slot& slot) { slot.error = error; });
}

std::uint32_t ReplyTable::fail_all_to(std::uint16_t actor, const Error& error) {
  std::uint32_t failed = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::uint64_t state = slots_[i]->state.load(std::memory_order_acquire);
    if ((state & 3) != phase_waiting || slots_[i]->actor.load(std::memory_order_relaxed) != actor) continue;
    // Were the slot reused meanwhile, its generation would not fit.
    if (fail((state >> 2) << slot_bits | i, error)) ++failed;
  }
  return failed;
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

bool ReplyTable::is_done(std::uint64_t correlation) const {
  const Slot* const slot = slot_of(correlation);
  return slot != nullptr && slot->state.load(std::memory_order_acquire) == state_word(correlation, phase_done);
}

void ReplyTable::abandon(std::uint64_t correlation) {
  const std::uint64_t at_once = 0;
  (void)wait(correlation, at_once);
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
