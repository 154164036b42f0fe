#include "ring/cpu/cpu_actor.hpp"

#include <fmt/format.h>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <exception>
#include <system_error>

#include "ring/actor/reply_buffer.hpp"

namespace cingulum::ring {
namespace {

void pin_this_thread(int processor) {
#if defined(__linux__)
  if (processor < 0 || processor >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);  // a wish: refused on machines without this processor
#else
  (void)processor;
#endif
}

void name_this_thread(const std::string& name) {
#if defined(__linux__)
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
#else
  (void)name;
#endif
}

}  // namespace

CpuActor::CpuActor(std::string name, std::uint16_t number, CpuBody body, const ActorOptions& options,
                   RuntimeServices services)
    : Actor(name, number, options, services),
      core_(std::make_shared<CpuActorCore>(std::move(name), number, std::move(body), options, std::move(services))) {}

CpuActor::~CpuActor() {
  // A handle that goes away while the actor runs: it is told to stop, and waited for.
  core_->stop.store(true, std::memory_order_release);
  if (core_->replies) core_->replies->wake();
  core_->inbox.close();
  core_->outbox.close();
  if (services().replies) services().replies->wake_deliverers();
  join_or_let_go(thread_);
  drop_outputs();
}

void CpuActor::drop_outputs() {
  const std::lock_guard lock(receive_mutex_);
  for (const Message& message : saved_outputs_) drop_answer(message);
  core_->outbox.clear([](const Message& message) { drop_answer(message); });
}

PutStatus CpuActor::put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                        const std::atomic<bool>* stop) {
  return core_->inbox.put(message, deadline_ns, expires_ns, stop);
}

Status CpuActor::do_launch() {
  const ActorOptions& wanted = options();
  if (wanted.reply_buffers == 0) return {};
  CGL_TRY_ASSIGN(core_->replies, ReplyRing::make_own(*services().buffers, wanted.reply_buffers,
                                                     wanted.reply_buffer_bytes, services().schedule));
  return {};
}

Status CpuActor::do_activate() {
  return start_thread();
}

Status CpuActor::start_thread() {
  core_->running.store(true, std::memory_order_release);
  Schedule* const schedule = services().schedule;
  const int turn = schedule != nullptr ? schedule->announce() : 0;
  try {
    thread_ = std::thread([core = core_, actor = weak_from_this(), turn] { run(core, actor, turn); });
  } catch (const std::system_error& error) {
    core_->running.store(false, std::memory_order_release);
    return fail(ErrorKind::unavailable, "no thread can be started: {}", error.what());
  }
  return {};
}

void CpuActor::run(const std::shared_ptr<CpuActorCore>& core, const std::weak_ptr<Actor>& weak_actor, int turn) {
  Schedule* const schedule = core->services.schedule;
  if (schedule != nullptr) schedule->enter(turn);
  pin_this_thread(core->processor);
  name_this_thread(core->name);
  int code = 0;
  std::string reason;
  std::uint64_t request = 0;
  bool had_message = false;
  {
    CpuContext context(*core);
    try {
      code = core->body(context);
      if (code != 0) reason = fmt::format("its body returned {}", code);
    } catch (const std::exception& error) {
      code = -1;
      reason = error.what();
    } catch (...) {
      code = -1;
      reason = "its body threw something that is not an exception";
    }
    request = context.current_request();
    had_message = context.has_current();
  }
  // The actor is gone only when its destructor waits for this thread, or has given it up.
  if (const auto actor = std::static_pointer_cast<CpuActor>(weak_actor.lock())) {
    if (code != 0) {
      if (had_message) core->dead_letters.fetch_add(1, std::memory_order_relaxed);
      actor->body_failed(code, std::move(reason), request);
    } else {
      actor->body_ended();
    }
  }
  core->running.store(false, std::memory_order_release);
  if (schedule != nullptr) {
    schedule->leave();
  } else {
    core->ended.ring_always();
  }
}

void CpuActor::do_gate(bool open, Nanoseconds patience) {
  const bool wait = !open && core_->running.load(std::memory_order_acquire);
  core_->inbox.set_gate(open, wait ? deadline_after(now_ns(), patience) : 0);
}

Result<TerminationReport> CpuActor::do_terminate(const Termination& how) {
  const std::uint64_t received_before = HostAtomics::load_relaxed(core_->counters.received);
  const std::uint64_t deadline = deadline_after(now_ns(), how.timeout);
  const auto has_ended = [&] { return !core_->running.load(std::memory_order_acquire); };
  core_->inbox.close();
  bool ended = has_ended();
  // Also when it has ended: by a failure of this moment, maybe, with messages in its queue.
  if (how.mode == Termination::Mode::drain) {
    core_->inbox.set_gate(true, 0);
    let_answers_overflow();
    // A body that waits for room in an output that nobody reads could not end.
    constexpr std::uint64_t look_ns = 1'000'000;
    for (;;) {
      const std::uint64_t now = now_ns();
      ended = core_->ended.wait(has_ended, std::min(deadline, now + look_ns));
      if (ended && restarts_to_drain() && do_restart()) continue;
      if (ended || now >= deadline) break;
      save_outputs();
    }
  }
  if (!ended) {
    core_->stop.store(true, std::memory_order_release);
    if (core_->replies) core_->replies->wake();
    core_->inbox.wake();
    core_->outbox.wake();
    if (services().replies) services().replies->wake_deliverers();
    wake_targets();
    // After a drain that took all its time, the body still gets a moment to see that it shall stop.
    constexpr std::uint64_t grace_ns = 1'000'000'000;
    const std::uint64_t last = how.mode == Termination::Mode::drain ? now_ns() + grace_ns : deadline;
    ended = core_->ended.wait(has_ended, last);
  }
  if (!ended) {
    if (thread_.joinable()) thread_.detach();
    core_->outbox.close();
    return fail(
        ErrorKind::timed_out,
        "its body did not return within {} ms after it was told to stop; its thread is left behind with {} queued "
        "messages",
        static_cast<double>(how.timeout.count()) * 1e-6, core_->inbox.depth());
  }
  if (thread_.joinable()) thread_.join();
  TerminationReport report;
  report.drained = HostAtomics::load_relaxed(core_->counters.received) - received_before;
  report.dropped = discard_inbox(core_->discarded);
  core_->outbox.close();
  cut_wires();
  return report;
}

// By whoever is the only one left to read the inbox.
std::uint64_t CpuActor::discard_inbox(std::atomic<std::uint64_t>& counter) {
  core_->inbox.close();
  const std::uint64_t count = core_->inbox.clear([this](const Message& message) {
    if (!message.has(mark_request) || !services().replies) return;
    services().replies->fail(
        message.header.correlation,
        Error(ErrorKind::closed, fmt::format("actor '{}' ended before it took the request", name())));
  });
  counter.fetch_add(count, std::memory_order_relaxed);
  return count;
}

void CpuActor::let_answers_overflow() {
  if (core_->drains.exchange(true, std::memory_order_acq_rel)) return;
  if (services().replies) services().replies->wake_deliverers();
}

void CpuActor::queue_unread_outputs() {
  let_answers_overflow();
  save_outputs();
}

void CpuActor::save_outputs() {
  const std::unique_lock lock(receive_mutex_, std::try_to_lock);
  if (!lock || core_->outbox.depth() < core_->outbox.capacity()) return;  // somebody reads, or there is room
  Envelope envelope;
  while (core_->outbox.try_take(envelope) == GetStatus::taken) saved_outputs_.push_back(envelope.message);
}

GetStatus CpuActor::do_receive(Message& message, std::uint64_t deadline_ns) {
  const std::lock_guard lock(receive_mutex_);
  if (!saved_outputs_.empty()) {
    message = saved_outputs_.front();
    saved_outputs_.pop_front();
    return GetStatus::taken;
  }
  Envelope envelope;
  const GetStatus status = core_->outbox.take(envelope, deadline_ns);
  message = envelope.message;
  return status;
}

std::uint32_t CpuActor::do_send_batch(std::span<const Message> messages) {
  // Other policies count what they refuse or drop, one message at a time.
  if (options().inbox_policy != FullPolicy::block) return Actor::do_send_batch(messages);
  return core_->inbox.put_batch(messages.data(), static_cast<std::uint32_t>(messages.size()));
}

std::uint32_t CpuActor::do_receive_batch(std::span<Message> messages) {
  const std::lock_guard lock(receive_mutex_);
  std::uint32_t got = 0;
  for (; got < messages.size() && !saved_outputs_.empty(); ++got) {
    messages[got] = saved_outputs_.front();
    saved_outputs_.pop_front();
  }
  for (Envelope envelope; got < messages.size() && core_->outbox.try_take(envelope) == GetStatus::taken; ++got) {
    messages[got] = envelope.message;
  }
  return got;
}

Status CpuActor::do_wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) {
  const std::lock_guard lock(core_->wires_mutex);
  if (targets.empty()) {
    core_->ports[port].store(nullptr, std::memory_order_release);
    return {};
  }
  core_->wires.push_back(std::make_unique<const CpuActorCore::Targets>(std::move(targets)));
  core_->ports[port].store(core_->wires.back().get(), std::memory_order_release);
  return {};
}

std::vector<std::shared_ptr<MessageSink>> CpuActor::do_targets() const {
  const std::lock_guard lock(core_->wires_mutex);
  std::vector<std::shared_ptr<MessageSink>> targets;
  for (const auto& port : core_->ports) {
    const CpuActorCore::Targets* const wired = port.load(std::memory_order_acquire);
    if (wired != nullptr) targets.insert(targets.end(), wired->begin(), wired->end());
  }
  return targets;
}

Actor::Idleness CpuActor::do_idleness() const {
  // In this order: a message that is gone from the inbox has a reader that does not wait.
  const bool is_empty = core_->inbox.depth() == 0;
  return {.is_idle = core_->inbox.reader_waits() && is_empty};
}

void CpuActor::cut_wires() {
  const std::lock_guard lock(core_->wires_mutex);
  for (auto& port : core_->ports) port.store(nullptr, std::memory_order_release);
  core_->wires.clear();
}

void CpuActor::wake_targets() {
  const std::lock_guard lock(core_->wires_mutex);
  for (const auto& targets : core_->wires) {
    for (const std::shared_ptr<MessageSink>& target : *targets) target->wake_writers();
  }
}

void CpuActor::wake_writers() {
  core_->inbox.wake();
}

void CpuActor::do_telemetry(ActorTelemetry& telemetry) const {
  telemetry.backend = "cpu";
  telemetry.loss = core_->inbox.losses();
  const LossCounters output = core_->outbox.losses();
  telemetry.loss.dropped_new += output.dropped_new;
  telemetry.loss.dropped_oldest += output.dropped_oldest;
  telemetry.loss.dead_letters = core_->dead_letters.load(std::memory_order_relaxed);
  telemetry.loss.discarded = core_->discarded.load(std::memory_order_relaxed);
  telemetry.loss.late_replies = core_->late_replies.load(std::memory_order_relaxed);
  for (std::uint32_t band = 0; band < band_count; ++band) {
    telemetry.inbox_depth_of_band[band] = core_->inbox.depth(static_cast<Band>(band));
    telemetry.inbox_depth += telemetry.inbox_depth_of_band[band];
  }
  telemetry.inbox_peak = core_->inbox.peak();
  telemetry.outbox_depth = core_->outbox.depth();
  telemetry.latency = core_->latency.summary();
}

ActorCounters CpuActor::do_counters() const {
  return read_counters(core_->counters);
}

Status CpuActor::do_restart() {
  // The thread has called body_failed and is at its very end, if it is not over already.
  (void)core_->ended.wait([&] { return !core_->running.load(std::memory_order_acquire); }, no_deadline);
  if (thread_.joinable()) thread_.join();
  return start_thread();
}

void CpuActor::do_give_up() {
  discard_inbox(failure() ? core_->dead_letters : core_->discarded);
  core_->outbox.close();
}

}  // namespace cingulum::ring
