#include "ring/cpu/cpu_context.hpp"

#include <algorithm>
#include <cstring>

namespace cingulum::ring {
namespace {

MailboxOptions inbox_options(const ActorOptions& options, const RuntimeServices& services) {
  MailboxOptions mailbox;
  mailbox.capacity = options.inbox_capacity;
  mailbox.policy = options.inbox_policy;
  mailbox.waiting = options.waiting;
  mailbox.fairness_interval = options.fairness_interval;
  mailbox.latency_sample_interval = options.latency_sample_interval;
  mailbox.schedule = services.schedule;
  mailbox.on_expired = [replies = services.replies](const Message& message) {
    if (replies && message.has(mark_request)) {
      replies->fail(message.header.correlation,
                    Error(ErrorKind::timed_out, "the request's time to live ended before the actor took it"));
    }
  };
  return mailbox;
}

MailboxOptions outbox_options(const ActorOptions& options, const RuntimeServices& services) {
  MailboxOptions mailbox;
  mailbox.capacity = options.outbox_capacity;
  mailbox.policy = options.outbox_policy;
  mailbox.waiting = options.waiting;
  mailbox.fairness_interval = options.fairness_interval;
  mailbox.schedule = services.schedule;
  return mailbox;
}

}  // namespace

CpuActorCore::CpuActorCore(std::string actor_name, std::uint16_t actor_number,
                           std::function<int(CpuContext&)> actor_body, const ActorOptions& options,
                           RuntimeServices runtime_services)
    : name(std::move(actor_name)),
      number(actor_number),
      body(std::move(actor_body)),
      services(std::move(runtime_services)),
      processor(options.processor),
      inbox(inbox_options(options, services)),
      outbox(outbox_options(options, services)),
      ended(WaitStrategy{WaitMode::spin_then_park, 100}, services.schedule) {}

CpuActorCore::~CpuActorCore() {
  if (replies) replies->close(reply_position);
}

CpuContext::CpuContext(CpuActorCore& core) : core_(core), busy_since_ns_(time_ns()) {
  core_.state_bytes.fill(0);
  count(core_.counters.started);
  count(core_.counters.heartbeat);
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
}

CpuContext::~CpuContext() {
  count(core_.counters.busy_ns, time_ns() - busy_since_ns_);
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{0});
}

void CpuContext::begin(const Envelope& envelope, Message& message) {
  message = envelope.message;
  current_request_ = message.has(mark_request) ? message.header.correlation : 0;
  has_current_ = true;
  count(core_.counters.received);
  count(core_.counters.heartbeat);
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
  if (envelope.sent_ns != 0) {
    const std::uint64_t now = time_ns();
    core_.latency.record(now > envelope.sent_ns ? now - envelope.sent_ns : 0);
  }
}

bool CpuContext::receive(Message& message) {
  has_current_ = false;
  current_request_ = 0;
  Envelope envelope;
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{0});
  // Waits of a microsecond or two count as work: the clock would cost more than they last.
  constexpr int looks_before_idle = 64;
  GetStatus status = GetStatus::empty;
  for (int look = 0; look < looks_before_idle; ++look) {
    if (should_stop()) return false;
    status = core_.inbox.try_take(envelope);
    if (status != GetStatus::empty || core_.services.schedule != nullptr) break;
    HostAtomics::pause();
  }
  if (status == GetStatus::empty) {
    count(core_.counters.busy_ns, time_ns() - busy_since_ns_);
    status = core_.inbox.take(envelope, no_deadline, &core_.stop);
    busy_since_ns_ = time_ns();
  }
  if (status != GetStatus::taken) return false;
  begin(envelope, message);
  return true;
}

GetStatus CpuContext::try_receive(Message& message) {
  if (should_stop()) return GetStatus::closed;
  Envelope envelope;
  const GetStatus status = core_.inbox.try_take(envelope);
  if (status == GetStatus::taken) {
    begin(envelope, message);
  } else {
    count(core_.counters.heartbeat);
    if (status == GetStatus::empty && core_.services.schedule != nullptr) {
      core_.services.schedule->idle(core_.services.schedule->now_ns() + 1);
    }
  }
  return status;
}

bool CpuContext::peek(Message& message) {
  count(core_.counters.heartbeat);
  Envelope envelope;
  if (should_stop() || !core_.inbox.peek(envelope)) return false;
  message = envelope.message;
  return true;
}

ReplySpace CpuContext::reply_buffer() {
  if (!core_.replies) return {};
  if (!core_.reply_in_hand) {
    HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{2});
    core_.reply_in_hand = core_.replies->wait_for(core_.reply_position, core_.stop);
    HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
    count(core_.counters.heartbeat);
    if (!core_.reply_in_hand) return {};
  }
  return {core_.reply_in_hand->handle, reinterpret_cast<void*>(core_.reply_in_hand->address)};
}

void CpuContext::hand_over(const Message& sent) {
  if (!core_.reply_in_hand || !sent.has(mark_handle)) return;
  BufferHandle handle;
  std::memcpy(&handle, sent.payload, sizeof handle);
  if (!names_the_same(handle, core_.reply_in_hand->handle)) return;
  core_.reply_in_hand.reset();
  ++core_.reply_position;
}

void CpuContext::back_off() {
  if (core_.services.schedule != nullptr) {
    core_.services.schedule->idle(core_.services.schedule->now_ns() + 1);
  } else if (++back_offs_ % 64 == 0) {
    std::this_thread::yield();  // the one who is waited for may have no processor
  } else {
    HostAtomics::pause();
  }
}

PutStatus CpuContext::deliver(MessageSink& target, const Message& message) {
  return target.put(message, no_deadline, no_deadline, &core_.stop);
}

PutStatus CpuContext::send(const Message& message) {
  Message outgoing = message;
  outgoing.set_source(core_.number);
  if (outgoing.has(mark_request) && core_.services.replies) return answer(outgoing);
  if (core_.ports[0].load(std::memory_order_acquire) != nullptr) return emit(0, message);
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{2});
  const PutStatus status = core_.outbox.put(outgoing, no_deadline, no_deadline, &core_.stop);
  if (status == PutStatus::stored) hand_over(outgoing);
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
  count(status == PutStatus::stored ? core_.counters.sent : core_.counters.refused);
  return status;
}

PutStatus CpuContext::answer(const Message& reply) {
  const std::uint64_t correlation = reply.header.correlation;
  ReplyTable& replies = *core_.services.replies;
  if (correlation == current_request_ && !reply.has(mark_more)) current_request_ = 0;
  Delivery delivery = replies.deliver(correlation, reply);
  if (delivery == Delivery::full) {
    HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{2});
    delivery = replies.deliver_waiting(correlation, reply, core_.stop, core_.drains);
    HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
  }
  if (delivery == Delivery::taken || delivery == Delivery::part) {
    hand_over(reply);
    count(core_.counters.sent);
    return PutStatus::stored;
  }
  if (delivery == Delivery::unwanted) core_.late_replies.fetch_add(1, std::memory_order_relaxed);
  count(core_.counters.refused);
  return PutStatus::closed;
}

PutStatus CpuContext::emit(std::uint32_t port, const Message& message) {
  const CpuActorCore::Targets* const targets =
      port < port_count ? core_.ports[port].load(std::memory_order_acquire) : nullptr;
  if (targets == nullptr) {
    count(core_.counters.refused);
    return PutStatus::closed;
  }
  Message outgoing = message;
  outgoing.set_source(core_.number);
  PutStatus worst = PutStatus::stored;
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{2});
  for (const std::shared_ptr<MessageSink>& target : *targets) {
    const PutStatus status = deliver(*target, outgoing);
    count(status == PutStatus::stored ? core_.counters.emitted : core_.counters.refused);
    if (status == PutStatus::stored) continue;
    worst = status;
  }
  HostAtomics::store_relaxed(core_.counters.in_body, std::uint64_t{1});
  if (worst == PutStatus::stored) hand_over(outgoing);
  if (worst == PutStatus::stored && outgoing.header.correlation == current_request_) {
    current_request_ = 0;  // it is the receiver's to answer now
  }
  return worst;
}

}  // namespace cingulum::ring
