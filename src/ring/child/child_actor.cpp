#include "ring/child/child_actor.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace cingulum::ring {

ChildActor::ChildActor(std::string name, std::uint16_t number, std::shared_ptr<ChildHost> host, std::string body,
                       std::span<const std::byte> arguments, RingKind kind, const ActorOptions& options,
                       RuntimeServices services)
    : RemoteActor(std::move(name), number, arguments, kind, options, std::move(services)),
      host_(std::move(host)),
      body_(std::move(body)) {}

ChildActor::~ChildActor() {
  if (index_in_child_ < 0) return;
  ChildRequest end = request(ChildCommand::terminate);
  if (host_->process() > 0) static_cast<void>(host_->ask(end));
  host_->let_go(end.actor);
}

ChildRequest ChildActor::request(ChildCommand command) const {
  ChildRequest made;
  made.command = command;
  made.actor = static_cast<std::uint32_t>(index_in_child_.load());
  made.generation = generation_;
  made.kind = kind_;
  made.inbox_capacity = options().inbox_capacity;
  made.outbox_capacity = options().outbox_capacity;
  made.stall_limit_ns = static_cast<std::uint64_t>(options().stall_limit.count());
  std::memcpy(made.body, body_.data(), body_.size());
  made.argument_bytes = static_cast<std::uint32_t>(arguments_.size());
  std::memcpy(made.arguments, arguments_.data(), arguments_.size());
  return made;
}

Status ChildActor::ask(ChildCommand command, Nanoseconds timeout) {
  ChildRequest asking = request(command);
  asking.timeout_ns = static_cast<std::uint64_t>(timeout.count());
  CGL_TRY(host_->ask(asking));
  return {};
}

Status ChildActor::do_launch() {
  if (options().inbox_policy == FullPolicy::drop_oldest) {
    return fail(ErrorKind::invalid_argument, "actor '{}': in a child process drop_oldest is not offered", name());
  }
  {
    const std::lock_guard lock(host_->actors_mutex_);
    const auto free = std::find(host_->taken_.begin(), host_->taken_.end(), false);
    if (free == host_->taken_.end()) {
      return fail(ErrorKind::full, "actor '{}': a child process has room for {}", name(), child_actor_count);
    }
    *free = true;
    index_in_child_ = static_cast<std::int32_t>(free - host_->taken_.begin());
    host_->actors_[static_cast<std::uint32_t>(index_in_child_)] =
        std::static_pointer_cast<ChildActor>(shared_from_this());
  }
  Status launched = launch_in_child();
  if (!launched) {
    host_->let_go(static_cast<std::uint32_t>(index_in_child_.exchange(-1)));
  }
  return launched;
}

Status ChildActor::launch_in_child() {
  {
    const std::lock_guard lock(output_mutex_);
    old_outputs_ = queue_.size();
    outputs_read_ = parts_settled_ = 0;
    unsent_cancels_.clear();
    publish_credit();
  }
  {
    const std::lock_guard lock(input_mutex_);
    ++generation_;
    accepted_ = 0;
  }
  ended_ = true;  // until it is there: the end of a child that goes meanwhile is not this launch's
  CGL_TRY(ask(ChildCommand::launch));
  ended_ = false;
  closed_ = false;
  return {};
}

Status ChildActor::do_activate() {
  CGL_TRY(ask(ChildCommand::activate));
  // Not before: an actor that is launched alone refuses messages.
  const std::lock_guard lock(input_mutex_);
  takes_messages_ = true;
  return {};
}

void ChildActor::do_gate(bool open, Nanoseconds patience) {
  static_cast<void>(ask(open ? ChildCommand::reactivate : ChildCommand::deactivate, patience));
}

std::uint64_t ChildActor::received_in_child() const {
  return host_->counters(static_cast<std::uint32_t>(index_in_child_)).received;
}

std::uint64_t ChildActor::stop_taking(std::uint64_t received) {
  const std::lock_guard lock(input_mutex_);
  takes_messages_ = false;
  return accepted_ - std::min(accepted_, received);
}

Result<ChildEnded> ChildActor::wait_for_end(std::uint64_t deadline_ns) {
  LookAgain again(WaitStrategy{WaitMode::spin_then_park, 200});
  for (;;) {
    {
      const std::lock_guard lock(output_mutex_);
      if (end_) return *end_;
    }
    if (ended_) return fail(ErrorKind::closed, "the process of the device ended before the actor did");
    if (steady_now_ns() >= deadline_ns) {
      host_->end_child(SIGKILL);
      return fail(ErrorKind::timed_out, "the process of the device does not end the actor and was ended");
    }
    again.pause();
  }
}

Result<TerminationReport> ChildActor::do_terminate(const Termination& how) {
  closed_ = true;
  TerminationReport report;
  if (index_in_child_ < 0) return report;
  queue_unread_outputs();  // nobody may come to read
  Status result;
  if (!ended_ && host_->process() > 0) {
    ChildRequest asking = request(ChildCommand::terminate);
    asking.drain = how.mode == Termination::Mode::drain ? 1 : 0;
    asking.timeout_ns = static_cast<std::uint64_t>(how.timeout.count());
    // Its neighbours go on meanwhile: the command is answered at once.
    Result<ChildEnded> end = ChildEnded{};
    if (auto begun = host_->ask(asking); !begun) {
      end = tl::make_unexpected(std::move(begun.error()));
    } else {
      const auto limit = static_cast<std::uint64_t>(host_->options_.answer_limit.count());
      const std::uint64_t deadline = deadline_from_now(how.timeout);
      end = wait_for_end(deadline == no_deadline ? deadline : deadline + limit);
    }
    if (end) {
      report.drained = end->drained;
      if (end->ok == 0) {
        result = fail(static_cast<ErrorKind>(end->error_kind), "{}",
                      std::string(end->text, strnlen(end->text, sizeof end->text)));
      }
    } else {
      result = tl::make_unexpected(std::move(end.error()));
    }
  }
  // What a failure took along was counted by it.
  if (!ended_.exchange(true)) report.dropped = stop_taking(received_in_child());
  discarded_ += report.dropped;
  host_->let_go(static_cast<std::uint32_t>(index_in_child_.exchange(-1)));
  CGL_TRY(std::move(result));
  return report;
}

PutStatus ChildActor::try_put(const Message& message) {
  const std::lock_guard lock(input_mutex_);
  const std::int32_t index = index_in_child_;
  if (closed_ || index < 0) return PutStatus::closed;
  // The child never holds more of this actor's messages than its inbox and one fill of it.
  const std::uint64_t in_flight = accepted_ - std::min(accepted_, received_in_child());
  if (!takes_messages_ || in_flight >= options().inbox_capacity) return PutStatus::full;
  // A process that has just ended is another reason to wait.
  if (host_->put(message, static_cast<std::uint32_t>(index), generation_) != PutStatus::stored) return PutStatus::full;
  ++accepted_;
  return PutStatus::stored;
}

PutStatus ChildActor::put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                          const std::atomic<bool>* stop) {
  if (message.has(mark_request)) request_latency_.sending(message.header.correlation);
  // While a child is started again its actors wait for it, as they wait for room.
  return put_by([&] { return try_put(message); }, deadline_ns, expires_ns, stop);
}

GetStatus ChildActor::do_receive(Message& message, std::uint64_t deadline_ns) {
  const auto take_next = [&] {
    const std::lock_guard lock(output_mutex_);
    if (queue_.empty()) return closed_ && ended_ ? GetStatus::closed : GetStatus::empty;
    message = queue_.front();
    queue_.pop_front();
    if (old_outputs_ != 0) {
      --old_outputs_;
    } else {
      ++outputs_read_;
      publish_credit();
    }
    return GetStatus::taken;
  };
  return receive_by(take_next, deadline_ns);
}

Status ChildActor::do_wire(std::uint32_t, std::vector<std::shared_ptr<MessageSink>>) {
  return fail(ErrorKind::unavailable, "actor '{}': actors in a child process are not wired from outside", name());
}

ActorCounters ChildActor::do_counters() const {
  const std::int32_t index = index_in_child_;
  return index < 0 ? ActorCounters{} : host_->counters(static_cast<std::uint32_t>(index));
}

void ChildActor::do_telemetry(ActorTelemetry& telemetry) const {
  telemetry.backend = "child process";
  telemetry.loss = losses();
  telemetry.latency = request_latency_.summary();
}

Status ChildActor::do_restart() {
  if (index_in_child_ < 0) return fail(ErrorKind::closed, "actor '{}' has left its process", name());
  if (state() == ActorState::terminating) return {};  // its queue went down with the child
  CGL_TRY(launch_in_child());
  CGL_TRY(do_activate());
  // What the actor takes up before this comes from nobody: its queue went down with the child.
  return state() == ActorState::deactivated ? ask(ChildCommand::deactivate) : Status();
}

void ChildActor::do_give_up() {
  closed_ = true;
  ended_ = true;
}

void ChildActor::do_supervise(std::uint64_t) {
  std::deque<std::uint64_t> unsent;
  {
    const std::lock_guard lock(output_mutex_);
    unsent.swap(unsent_cancels_);
  }
  for (const std::uint64_t correlation : unsent) request_abandoned(correlation);
  // A body that never returns holds its whole device: only the end of the process frees it.
  if (!host_->options_.end_stalled || index_in_child_ < 0 || ended_) return;
  if (host_->counters(static_cast<std::uint32_t>(index_in_child_)).in_body == 1) host_->end_child(SIGKILL);
}

void ChildActor::take(const ChildSlot& slot) {
  const Message& message = slot.message;
  if (message.has(mark_control) && holds<ChildEnded>(message)) {
    const std::lock_guard lock(output_mutex_);
    end_ = payload<ChildEnded>(message);
    return;
  }
  if (message.has(mark_control) && holds<ChildEvent>(message)) {
    const auto event = payload<ChildEvent>(message);
    if (event.kind == ChildEvent::lost || ended_.exchange(true)) return;
    dead_letters_ += stop_taking(received_in_child());
    const std::string text(event.text, strnlen(event.text, sizeof event.text));
    if (event.kind == ChildEvent::failed) {
      services().replies->fail_all_to(identity(),
                                      Error(ErrorKind::closed, fmt::format("actor '{}' failed: {}", name(), text)));
      body_failed(event.code, text, 0);
    } else {
      body_ended();
    }
    return;
  }
  if (message.has(mark_request)) request_latency_.answered(message.header.correlation);
  if (message.has(mark_request) && !message.has(mark_stream)) {
    if (services().replies->deliver(message.header.correlation, message) == Delivery::unwanted) ++late_replies_;
    return;
  }
  const std::lock_guard lock(output_mutex_);
  if (message.has(mark_stream)) {
    held_.push_back(message);
    give_held();
  } else {
    queue_.push_back(message);
  }
}

void ChildActor::give_held() {
  const std::size_t settled = give_held_by([&](const Message& reply) {
    const std::uint64_t correlation = reply.header.correlation;
    const Delivery delivery = leaving_ ? services().replies->deliver_beyond_window(correlation, reply)
                                       : services().replies->deliver(correlation, reply);
    if (delivery == Delivery::unwanted) ++late_replies_;
    return delivery != Delivery::full;
  });
  parts_settled_ += settled;
  if (settled != 0) publish_credit();
}

void ChildActor::publish_credit() {
  const std::int32_t index = index_in_child_;
  if (index < 0) return;
  host_->give_credit(static_cast<std::uint32_t>(index), leaving_ ? unlimited_credit : outputs_read_,
                     leaving_ ? unlimited_credit : parts_settled_);
}

void ChildActor::see_to_answers() {
  const std::lock_guard lock(output_mutex_);
  give_held();
}

void ChildActor::queue_unread_outputs() {
  const std::lock_guard lock(output_mutex_);
  if (std::exchange(leaving_, true)) return;
  give_held();
  publish_credit();
}

void ChildActor::request_abandoned(std::uint64_t correlation) {
  Message cancel = make_message(ChildCancel{correlation});
  cancel.header.flags |= mark_control;
  const std::int32_t index = index_in_child_;
  if (index < 0 || closed_) return;
  if (host_->put(cancel, static_cast<std::uint32_t>(index), generation_) != PutStatus::full) return;
  const std::lock_guard lock(output_mutex_);
  unsent_cancels_.push_back(correlation);
}

void ChildActor::child_ended(const std::string& how, std::span<const std::uint64_t> received) {
  const std::int32_t index = index_in_child_;
  if (index < 0 || ended_.exchange(true)) return;
  dead_letters_ += stop_taking(received[static_cast<std::size_t>(index)]);
  const std::string text = fmt::format("the process of its device {}", how);
  services().replies->fail_all_to(identity(), Error(ErrorKind::closed, fmt::format("actor '{}': {}", name(), text)));
  body_failed(-1, text, 0);
}

}  // namespace cingulum::ring
