// What comes out of an actor's seat: answers go to the threads and streams that wait for them, the rest to receive.
#include <algorithm>

#include "ring/actor/reply_buffer.hpp"
#include "ring/actor/reply_table.hpp"
#include "ring/resident/resident_actor.hpp"

namespace cingulum::ring {
namespace {

constexpr int looks_per_lock = 8;
// So long who requests reads the outbox himself, before he leaves it to the service thread and waits.
constexpr std::uint64_t requester_spin_ns = 50'000;

}  // namespace

bool ResidentActor::take_from_ring(Message& message) {
  if (!outbox_open_) return false;
  const GetStatus status = kind_ == RingKind::fast ? fast_out_.try_get(message) : bulk_out_.try_get(message);
  if (status != GetStatus::taken) return false;
  ++taken_outputs_;
  return true;
}

bool ResidentActor::take_output(Message& message) {
  if (!queue_.empty()) {
    message = queue_.front();
    queue_.pop_front();
    return true;
  }
  if (!held_.empty()) give_held();
  while (may_hold_more() && take_from_ring(message)) {
    if (!message.has(mark_request)) return true;
    answer(message);
  }
  return false;
}

std::uint32_t ResidentActor::do_receive_batch(std::span<Message> messages) {
  const std::lock_guard lock(output_mutex_);
  std::uint32_t taken = 0;
  if (!held_.empty()) give_held();
  if (kind_ == RingKind::bulk && queue_.empty() && outbox_open_ && may_hold_more()) {
    const std::uint32_t got = bulk_out_.get_batch(messages.data(), static_cast<std::uint32_t>(messages.size()));
    taken_outputs_ += got;
    // Answers to requests are rare in streams: they are taken out of the batch.
    for (std::uint32_t i = 0; i < got; ++i) {
      if (messages[i].has(mark_request)) {
        answer(messages[i]);
      } else {
        if (taken != i) messages[taken] = messages[i];
        ++taken;
      }
    }
    return taken;
  }
  while (taken < messages.size() && take_output(messages[taken])) ++taken;
  return taken;
}

void ResidentActor::save_outputs() {
  const std::lock_guard lock(output_mutex_);
  leaving_ = true;
  give_held();
  Message message;
  while (take_from_ring(message)) {
    if (!message.has(mark_request)) {
      queue_.push_back(message);
    } else {
      answer(message);
    }
  }
}

void ResidentActor::answer(const Message& reply, std::uint64_t own) {
  request_latency_.answered(reply.header.correlation);
  const auto waits_before = [&](const Message& held) { return held.header.correlation == reply.header.correlation; };
  if ((!held_.empty() && std::any_of(held_.begin(), held_.end(), waits_before)) || !settle(reply, own)) {
    held_.push_back(reply);
  }
}

bool ResidentActor::settle(const Message& reply, std::uint64_t own) {
  ReplyTable& replies = *services().replies;
  const std::uint64_t correlation = reply.header.correlation;
  const Delivery delivery = leaving_             ? replies.deliver_beyond_window(correlation, reply)
                            : correlation == own ? replies.deliver_own(correlation, reply)
                                                 : replies.deliver(correlation, reply);
  if (delivery == Delivery::taken) grid_->reply_came();
  if (delivery == Delivery::unwanted) {
    ++late_replies_;
    drop_answer(reply);
    if (!reply.has(mark_more)) grid_->late_reply_came(correlation);
  }
  return delivery != Delivery::full;
}

void ResidentActor::give_held() {
  static_cast<void>(give_held_by([&](const Message& reply) { return settle(reply, 0); }));
}

GetStatus ResidentActor::do_receive(Message& message, std::uint64_t deadline_ns) {
  const auto take_next = [&] {
    const std::lock_guard lock(output_mutex_);
    // Several looks for one lock: an answer that comes is seen at once.
    for (int look = 0; look < looks_per_lock; ++look) {
      if (take_output(message)) return GetStatus::taken;
      if (!outbox_open_ || gone_) return GetStatus::closed;
      if (deadline_ns == 0) break;
    }
    return GetStatus::empty;
  };
  return receive_by(take_next, deadline_ns);
}

bool ResidentActor::carry_answers() {
  if (!output_mutex_.try_lock()) return false;
  const std::lock_guard lock(output_mutex_, std::adopt_lock);
  return carry_while_locked(0);
}

bool ResidentActor::carry_while_locked(std::uint64_t own) {
  Message message;
  bool came = false;
  if (!held_.empty()) give_held();
  // Outputs that nobody reads stay in the ring, so that the actor feels it.
  while (queue_.size() < options().outbox_capacity && may_hold_more() && take_from_ring(message)) {
    came = true;
    if (!message.has(mark_request)) {
      queue_.push_back(message);
    } else {
      answer(message, own);
    }
  }
  return came;
}

void ResidentActor::see_to_answers() {
  grid_->call_service();
}

void ResidentActor::spin_for_answer(ReplyTable& replies, std::uint64_t correlation, std::uint64_t deadline_ns) {
  if (others_answer_.load(std::memory_order_relaxed)) grid_->call_service();
  spinning_requesters_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t until = std::min(deadline_ns, steady_now_ns() + requester_spin_ns);
  bool carried = false;
  for (std::uint32_t look = 1;; ++look) {
    // Several looks for one lock: an answer that comes is seen at once.
    if (output_mutex_.try_lock()) {
      const std::lock_guard lock(output_mutex_, std::adopt_lock);
      for (int i = 0; i < looks_per_lock && !carried; ++i) carried = carry_while_locked(correlation);
    }
    if (replies.is_done(correlation)) break;
    carried = false;  // it was another's answer
    if (look % 8 == 0 && steady_now_ns() >= until) break;
  }
  spinning_requesters_.fetch_sub(1, std::memory_order_relaxed);
  if (carried == others_answer_.load(std::memory_order_relaxed)) {
    others_answer_.store(!carried, std::memory_order_relaxed);
  }
  if (!replies.is_done(correlation)) grid_->call_service();
}

}  // namespace cingulum::ring
