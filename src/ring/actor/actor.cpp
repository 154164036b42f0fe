#include "ring/actor/actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/log.hpp"
#include "ring/actor/actor_context.hpp"
#include "ring/actor/reply_table.hpp"

namespace cingulum::ring {
namespace {

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Actor::Actor(std::string name, std::uint16_t number, ActorOptions options, RuntimeServices services)
    : name_(std::move(name)),
      number_(number),
      identity_(next_identity()),
      options_(options),
      services_(std::move(services)) {}

Actor::~Actor() {
  if (!restart_thread_.joinable()) return;
  // It may itself be the last to hold the actor.
  if (restart_thread_.get_id() == std::this_thread::get_id()) {
    restart_thread_.detach();
  } else {
    restart_thread_.join();
  }
}

std::uint64_t Actor::now_ns() const {
  return services_.schedule != nullptr ? services_.schedule->now_ns() : steady_now_ns();
}

std::optional<Failure> Actor::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

bool Actor::move_state(ActorState from, ActorState to) {
  return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

Status Actor::launch() {
  const std::lock_guard lock(operation_mutex_);
  CGL_TRY(check_operation(name_, state(), Operation::launch));
  CGL_TRY(check_options(name_, options_));
  CGL_TRY(add_context(do_launch(), "launching actor '{}'", name_));
  {
    const std::lock_guard failure_lock(failure_mutex_);
    launched_ns_ = now_ns();
    heartbeat_since_ns_ = launched_ns_;
  }
  state_.store(ActorState::launched, std::memory_order_release);
  return {};
}

Status Actor::activate() {
  const std::lock_guard lock(operation_mutex_);
  CGL_TRY(check_operation(name_, state(), Operation::activate));
  // Active before it runs: a body that fails at once finds the state from which it can fail.
  state_.store(ActorState::active, std::memory_order_release);
  Status started = add_context(do_activate(), "activating actor '{}'", name_);
  if (!started) state_.store(ActorState::launched, std::memory_order_release);
  return started;
}

Status Actor::deactivate(Nanoseconds patience) {
  const std::lock_guard lock(operation_mutex_);
  CGL_TRY(check_operation(name_, state(), Operation::deactivate));
  if (!move_state(ActorState::active, ActorState::deactivated)) {
    return check_operation(name_, state(), Operation::deactivate);  // it failed this moment
  }
  do_gate(false, patience);
  return {};
}

Status Actor::reactivate() {
  const std::lock_guard lock(operation_mutex_);
  CGL_TRY(check_operation(name_, state(), Operation::reactivate));
  if (!move_state(ActorState::deactivated, ActorState::active)) {
    return check_operation(name_, state(), Operation::reactivate);
  }
  do_gate(true, Nanoseconds::zero());
  return {};
}

Result<TerminationReport> Actor::terminate(const Termination& how) {
  const std::lock_guard lock(operation_mutex_);
  bool restart_first = false;
  {
    const std::lock_guard failure_lock(failure_mutex_);
    if (state() == ActorState::terminated) return TerminationReport{};
    state_.store(ActorState::terminating, std::memory_order_release);
    // What is queued waits for a restart that was to come: to drain is to make it now.
    restart_first = how.mode == Termination::Mode::drain && restart_due_ns_ != no_deadline;
    if (restart_first) ++restarts_;
    is_draining_ = how.mode == Termination::Mode::drain;
    restart_due_ns_ = no_deadline;
    circuit_open_ = false;
  }
  if (restart_first) static_cast<void>(do_restart());
  Result<TerminationReport> report = add_context(do_terminate(how), "terminating actor '{}'", name_);
  if (report) {
    state_.store(ActorState::terminated, std::memory_order_release);
  } else {
    const std::lock_guard failure_lock(failure_mutex_);
    ++failures_;
    failure_ = Failure{0, report.error().message(), now_ns()};
    state_.store(ActorState::failed, std::memory_order_release);
  }
  if (services_.replies) services_.replies->fail_all_to(identity_, ended_error());
  return report;
}

Error Actor::ended_error() const {
  const ActorState now = state();
  const std::lock_guard lock(failure_mutex_);
  if (circuit_open_ && failure_) {
    return Error(ErrorKind::closed, fmt::format("actor '{}' rests after {} failures, the last: {}; try again later",
                                                name_, failures_, failure_->message));
  }
  if (failure_) {
    return Error(ErrorKind::closed, fmt::format("actor '{}' failed: {}", name_, failure_->message));
  }
  return Error(ErrorKind::closed, fmt::format("actor '{}' has ended (state {})", name_, state_name(now)));
}

Error Actor::refusal(PutStatus status) const {
  switch (status) {
    case PutStatus::full:
      return Error(ErrorKind::full,
                   fmt::format("actor '{}': its queue of {} messages is full", name_, options_.inbox_capacity));
    case PutStatus::dropped_new:
      return Error(ErrorKind::full, fmt::format("actor '{}': its queue of {} messages is full; the message was dropped",
                                                name_, options_.inbox_capacity));
    case PutStatus::timed_out:
      return Error(ErrorKind::timed_out, fmt::format("actor '{}': no room in its queue of {} messages in time", name_,
                                                     options_.inbox_capacity));
    case PutStatus::expired:
      return Error(ErrorKind::timed_out,
                   fmt::format("actor '{}': the message's time to live ended before there was room", name_));
    case PutStatus::closed:
    case PutStatus::stored: break;
  }
  return ended_error();
}

Status Actor::send(const Message& message, const SendOptions& options) {
  CGL_TRY(check_operation(name_, state(), Operation::send));
  std::uint64_t deadline = no_deadline;
  std::uint64_t expires = no_deadline;
  if (options.timeout != no_time_limit || options.time_to_live != no_time_limit) {
    const std::uint64_t now = now_ns();
    deadline = deadline_after(now, options.timeout);
    expires = deadline_after(now, options.time_to_live);
  }
  return send_request(message, deadline, expires);
}

Status Actor::send_request(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns) {
  const PutStatus status = put(message, deadline_ns, expires_ns, nullptr);
  if (status == PutStatus::stored) return {};
  return tl::make_unexpected(refusal(status));
}

PutStatus Actor::try_send(const Message& message) {
  if (!is_allowed(state(), Operation::send)) return PutStatus::closed;
  const PutStatus status = put(message, 0, no_deadline, nullptr);
  return status == PutStatus::timed_out ? PutStatus::full : status;
}

std::uint32_t Actor::send_batch(std::span<const Message> messages) {
  return is_allowed(state(), Operation::send) ? do_send_batch(messages) : 0;
}

std::uint32_t Actor::receive_batch(std::span<Message> messages) {
  return is_allowed(state(), Operation::receive) ? do_receive_batch(messages) : 0;
}

std::uint32_t Actor::do_send_batch(std::span<const Message> messages) {
  std::uint32_t sent = 0;
  for (const Message& message : messages) {
    const PutStatus status = put(message, 0, no_deadline, nullptr);
    if (status != PutStatus::stored && status != PutStatus::dropped_new) break;
    ++sent;
  }
  return sent;
}

std::uint32_t Actor::do_receive_batch(std::span<Message> messages) {
  std::uint32_t got = 0;
  while (got < messages.size() && do_receive(messages[got], 0) == GetStatus::taken) ++got;
  return got;
}

Result<Message> Actor::receive(Nanoseconds timeout) {
  CGL_TRY(check_operation(name_, state(), Operation::receive));
  Message message;
  switch (do_receive(message, timeout == no_time_limit ? no_deadline : deadline_after(now_ns(), timeout))) {
    case GetStatus::taken: return message;
    case GetStatus::closed: return tl::make_unexpected(ended_error());
    case GetStatus::empty:
    case GetStatus::timed_out: break;
  }
  return fail(ErrorKind::timed_out, "actor '{}': no message in its output within {} ms", name_,
              static_cast<double>(timeout.count()) * 1e-6);
}

Status Actor::wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) {
  const std::lock_guard lock(operation_mutex_);
  CGL_TRY(check_operation(name_, state(), Operation::wire));
  if (port >= port_count) {
    return fail(ErrorKind::invalid_argument, "actor '{}': port {} is not one of 0 to {}", name_, port, port_count - 1);
  }
  return add_context(do_wire(port, std::move(targets)), "wiring actor '{}'", name_);
}

std::vector<const Actor*> Actor::receivers() const {
  std::vector<const Actor*> receivers;
  for (const std::shared_ptr<MessageSink>& target : do_targets()) target->add_receivers(receivers);
  return receivers;
}

Actor::Idleness Actor::idleness() const {
  return is_allowed(state(), Operation::send) ? do_idleness() : Idleness{};
}

void Actor::body_failed(int code, std::string message, std::uint64_t correlation) {
  const std::uint64_t now = now_ns();
  bool give_up = false;
  {
    const std::lock_guard lock(failure_mutex_);
    ++failures_;
    failure_ = Failure{code, std::move(message), now};
    const ActorState before = state();
    const bool is_draining = before == ActorState::terminating && is_draining_;
    if (is_draining || before == ActorState::active || before == ActorState::deactivated ||
        before == ActorState::failed) {
      const RestartPolicy& policy = options_.restart;
      std::erase_if(recent_failures_ns_, [&](std::uint64_t then) {
        return now - then >= static_cast<std::uint64_t>(policy.window.count());
      });
      recent_failures_ns_.push_back(now);
      const std::size_t recent = recent_failures_ns_.size();
      if (policy.kind != RestartKind::never && recent <= policy.max_restarts) {
        const auto doublings = std::min<std::size_t>(recent - 1, 30);
        const std::int64_t longest = policy.max_back_off.count();
        const std::int64_t first = policy.back_off.count();
        const std::int64_t delay = first > (longest >> doublings) ? longest : first << doublings;
        restart_due_ns_ = now + static_cast<std::uint64_t>(delay);
      } else if (is_draining) {
        // It ends as it is; what is left is discarded.
      } else if (policy.kind == RestartKind::circuit_breaker) {
        resume_state_ = before == ActorState::failed ? resume_state_ : before;
        circuit_open_ = true;
        restart_due_ns_ = now + static_cast<std::uint64_t>(policy.cool_down.count());
        state_.store(ActorState::failed, std::memory_order_release);
      } else {
        state_.store(ActorState::failed, std::memory_order_release);
        give_up = true;
      }
    }
  }
  if (services_.replies && correlation != 0) services_.replies->fail(correlation, ended_error());
  if (give_up) {
    do_give_up();
    if (services_.replies) services_.replies->fail_all_to(identity_, ended_error());
  } else if (services_.monitor) {
    services_.monitor->ring_always();
  }
}

bool Actor::restarts_to_drain() {
  const std::lock_guard lock(failure_mutex_);
  if (!is_draining_ || restart_due_ns_ == no_deadline) return false;
  restart_due_ns_ = no_deadline;
  ++restarts_;
  return true;
}

void Actor::body_ended() {
  {
    const std::lock_guard lock(failure_mutex_);
    const ActorState before = state();
    if (before != ActorState::active && before != ActorState::deactivated) return;
    state_.store(ActorState::terminated, std::memory_order_release);
  }
  do_give_up();
  if (services_.replies) services_.replies->fail_all_to(identity_, ended_error());
}

void Actor::supervise(std::uint64_t now, bool host_was_away) {
  std::unique_lock operation(operation_mutex_, std::try_to_lock);
  if (!operation) return;  // somebody is at it; the next look is soon
  bool is_due = false;
  {
    const std::lock_guard lock(failure_mutex_);
    if (restart_due_ns_ <= now) {
      is_due = true;
      restart_due_ns_ = no_deadline;
    }
  }
  if (is_due && restarts_slowly()) {
    operation.unlock();
    restart_in_own_thread(now);
    return;
  }
  if (is_due) restart();
  do_supervise(now);

  const ActorCounters counters = do_counters();
  const std::lock_guard lock(failure_mutex_);
  const bool working = is_allowed(state(), Operation::send) && counters.in_body == 1;
  if (!working || host_was_away || counters.heartbeat != seen_heartbeat_) {
    seen_heartbeat_ = counters.heartbeat;
    heartbeat_since_ns_ = now;
    if (!host_was_away) stalled_ = false;
  } else if (!stalled_ && now - heartbeat_since_ns_ > static_cast<std::uint64_t>(options_.stall_limit.count())) {
    stalled_ = true;
    ++stalls_;
    log_warning("actor '{}' gives no sign of life for {} ms", name_,
                static_cast<double>(now - heartbeat_since_ns_) * 1e-6);
  }
}

void Actor::restart_in_own_thread(std::uint64_t now) {
  if (!is_restarting_.exchange(true)) {
    if (restart_thread_.joinable()) restart_thread_.join();  // it has done its work
    try {
      restart_thread_ = std::thread([self = shared_from_this()] {
        {
          const std::lock_guard lock(self->operation_mutex_);
          self->restart();
        }
        self->is_restarting_ = false;
      });
      return;
    } catch (const std::system_error&) {
      is_restarting_ = false;
    }
  }
  const std::lock_guard lock(failure_mutex_);
  restart_due_ns_ = now + 10'000'000;  // no thread now, or the last restart is not over
}

void Actor::restart() {
  {
    const std::lock_guard lock(failure_mutex_);
    if (state() == ActorState::terminating || state() == ActorState::terminated) return;
    ++restarts_;
    if (circuit_open_) {
      circuit_open_ = false;
      state_.store(resume_state_, std::memory_order_release);
    }
  }
  if (Status restarted = do_restart(); !restarted) body_failed(0, restarted.error().message(), 0);
}

std::uint64_t Actor::next_due_ns() const {
  const std::lock_guard lock(failure_mutex_);
  return restart_due_ns_;
}

ActorCounters read_counters(const ActorCounters& line) {
  ActorCounters counters;
  counters.received = HostAtomics::load_relaxed(line.received);
  counters.sent = HostAtomics::load_relaxed(line.sent);
  counters.emitted = HostAtomics::load_relaxed(line.emitted);
  counters.refused = HostAtomics::load_relaxed(line.refused);
  counters.heartbeat = HostAtomics::load_relaxed(line.heartbeat);
  counters.busy_ns = HostAtomics::load_relaxed(line.busy_ns);
  counters.in_body = HostAtomics::load_relaxed(line.in_body);
  counters.started = HostAtomics::load_relaxed(line.started);
  return counters;
}

ActorTelemetry Actor::telemetry() const {
  ActorTelemetry telemetry;
  telemetry.name = name_;
  telemetry.number = number_;
  telemetry.state = state();
  const ActorCounters counters = do_counters();
  telemetry.received = counters.received;
  telemetry.sent = counters.sent;
  telemetry.emitted = counters.emitted;
  telemetry.refused = counters.refused;
  telemetry.blocked = counters.in_body == 2;
  telemetry.inbox_capacity = options_.inbox_capacity;
  {
    const std::lock_guard lock(failure_mutex_);
    telemetry.failures = failures_;
    telemetry.restarts = restarts_;
    if (failure_) telemetry.last_failure = failure_->message;
    telemetry.stalled = stalled_;
    telemetry.stalls = stalls_;
    if (launched_ns_ != 0) telemetry.uptime_s = static_cast<double>(now_ns() - launched_ns_) * 1e-9;
  }
  if (telemetry.uptime_s > 0) {
    telemetry.messages_per_s = static_cast<double>(counters.received) / telemetry.uptime_s;
    telemetry.busy_share = std::min(1.0, static_cast<double>(counters.busy_ns) * 1e-9 / telemetry.uptime_s);
  }
  do_telemetry(telemetry);
  return telemetry;
}

}  // namespace cingulum::ring
