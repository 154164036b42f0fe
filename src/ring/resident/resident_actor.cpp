#include "ring/resident/resident_actor.hpp"

#include <algorithm>
#include <utility>

namespace cingulum::ring {

ResidentActor::ResidentActor(std::string name, std::uint16_t number, std::shared_ptr<ResidentGrid> grid,
                             std::uint32_t body, std::span<const std::byte> arguments, RingKind kind,
                             const ActorOptions& options, RuntimeServices services)
    : RemoteActor(std::move(name), number, arguments, kind, options, std::move(services)),
      grid_(std::move(grid)),
      body_(body) {}

SeatState ResidentActor::seat_state() const {
  return static_cast<SeatState>(HostAtomics::load_acquire(grid_->seat(*seat_).device.state));
}

PutStatus ResidentActor::try_put(const Message& message) {
  const std::lock_guard lock(input_mutex_);
  if (inbox_closed_) return PutStatus::closed;
  PutStatus status = PutStatus::stored;
  if (kind_ == RingKind::bulk) {
    status = bulk_in_.try_put(message);
  } else if (options().inbox_policy == FullPolicy::drop_oldest) {
    fast_in_.put_over(message);
  } else {
    status = fast_in_.try_put(message);
  }
  return status;
}

PutStatus ResidentActor::put_at_once(const Message& message) {
  if (message.has(mark_request)) request_latency_.sending(message.header.correlation);
  const PutStatus status = try_put(message);
  if (status == PutStatus::stored) {
    if (message.has(mark_request)) grid_->expect_reply();
    grid_->wake();
  }
  return status;
}

PutStatus ResidentActor::put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                             const std::atomic<bool>* stop) {
  return put_by([&] { return put_at_once(message); }, deadline_ns, expires_ns, stop);
}

bool ResidentActor::send_at_once(const Message& message) {
  return put_at_once(message) == PutStatus::stored;
}

std::uint32_t ResidentActor::do_send_batch(std::span<const Message> messages) {
  // Other policies count what they refuse or drop, one message at a time; so are requests counted.
  const bool is_plain =
      options().inbox_policy == FullPolicy::block &&
      std::none_of(messages.begin(), messages.end(), [](const Message& m) { return m.has(mark_request); });
  if (!is_plain) return Actor::do_send_batch(messages);
  const std::lock_guard lock(input_mutex_);
  if (inbox_closed_) return 0;
  std::uint32_t stored = 0;
  const auto count = static_cast<std::uint32_t>(messages.size());
  if (kind_ == RingKind::bulk) {
    stored = bulk_in_.put_batch(messages.data(), count);
  } else {
    while (stored < count && fast_in_.try_put(messages[stored]) == PutStatus::stored) ++stored;
  }
  if (stored != 0) grid_->wake();
  return stored;
}

Status ResidentActor::do_wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) {
  if (activated_) {
    return fail(ErrorKind::invalid_state, "actor '{}': on {} wires are laid before activation", name(),
                grid_->backend().id());
  }
  std::vector<ResidentActor*> receivers;
  for (const auto& target : targets) {
    auto* const receiver = dynamic_cast<ResidentActor*>(target.get());
    if (receiver == nullptr || receiver->grid_ != grid_) {
      return fail(ErrorKind::invalid_argument,
                  "actor '{}': port {} can only lead to actors of the same grid; let a CPU actor carry the messages",
                  name(), port);
    }
    if (receiver->activated_ || receiver->edges_in_.size() == largest_edge_count) {
      return fail(ErrorKind::invalid_state, "actor '{}': '{}' is active already or has {} wires", name(),
                  receiver->name(), largest_edge_count);
    }
    receivers.push_back(receiver);
  }
  for (auto edge = edges_out_.begin(); edge != edges_out_.end();) {
    if (edge->port != port) {
      ++edge;
      continue;
    }
    return fail(ErrorKind::invalid_state, "actor '{}': port {} is wired already", name(), port);
  }
  if (edges_out_.size() + receivers.size() > largest_edge_count) {
    return fail(ErrorKind::full, "actor '{}': {} wires at most", name(), largest_edge_count);
  }
  for (ResidentActor* receiver : receivers) {
    CGL_TRY_ASSIGN(const std::uint32_t edge, grid_->take_edge());
    edges_out_.push_back({edge, port});
    receiver->edges_in_.push_back(edge);
  }
  const std::lock_guard lock(receivers_mutex_);
  receivers_.insert(receivers_.end(), targets.begin(), targets.end());
  return {};
}

std::vector<std::shared_ptr<MessageSink>> ResidentActor::do_targets() const {
  const std::lock_guard lock(receivers_mutex_);
  std::vector<std::shared_ptr<MessageSink>> targets;
  for (const auto& receiver : receivers_) {
    if (auto target = receiver.lock()) targets.push_back(std::move(target));
  }
  return targets;
}

Actor::Idleness ResidentActor::do_idleness() const {
  const std::lock_guard lock(seat_mutex_);
  if (!seat_ || !activated_ || gone_) return {};
  const SeatState state = seat_state();
  const Seat& memory = grid_->seat(*seat_);
  Idleness idleness;
  // The wires of a parked grid are looked at by its service thread.
  idleness.is_idle = state == SeatState::parked ||
                     (state == SeatState::running && HostAtomics::load_relaxed(memory.counters.in_body) == 0);
  idleness.looks = HostAtomics::load_relaxed(memory.counters.heartbeat);
  // What a beat publishes may be from before a message that the pass behind it finds, which comes with the next beat.
  idleness.looks_to_prove = state == SeatState::parked ? 0 : 3;
  const std::lock_guard input_lock(input_mutex_);
  const std::uint64_t written = written_position();
  idleness.is_idle = idleness.is_idle && written == HostAtomics::load_acquire(memory.inbox_reader.position);
  return idleness;
}

ActorCounters ResidentActor::do_counters() const {
  const std::lock_guard lock(seat_mutex_);
  return counters_of_seat();
}

ActorCounters ResidentActor::counters_of_seat() const {
  // Until the seat has taken the actor up, its line is still the one of the actor before.
  if (!seat_ || !activated_) return last_counters_;
  ActorCounters counters = read_counters(grid_->seat(*seat_).counters);
  // The beat of several seats is the one that has beaten least: one that stands still is a stall of the actor.
  for (std::size_t i = 0; i < other_seats_.size(); ++i) {
    const std::uint64_t beats = HostAtomics::load_relaxed(grid_->seat(other_seats_[i]).counters.heartbeat);
    counters.heartbeat = std::min(counters.heartbeat, beats_before_[0] + (beats - beats_before_[i + 1]));
  }
  // Only a seat that runs beats.
  counters.in_body = activated_ && seat_state() == SeatState::running ? 1 : 0;
  return counters;
}

void ResidentActor::do_telemetry(ActorTelemetry& telemetry) const {
  telemetry.backend = grid_->backend().id();
  const ActorCounters counters = do_counters();
  telemetry.received = counters.received;
  telemetry.sent = counters.sent;
  telemetry.emitted = counters.emitted;
  telemetry.refused = counters.refused;
  telemetry.latency = request_latency_.summary();
  telemetry.inbox_capacity = options().inbox_capacity;
  telemetry.loss = losses();
  telemetry.loss.dropped_oldest = overtaken_;
  {
    const std::lock_guard seat_lock(seat_mutex_);
    const std::lock_guard lock(input_mutex_);
    if (seat_) {
      const std::uint64_t written = written_position();
      const std::uint64_t taken = HostAtomics::load_acquire(grid_->seat(*seat_).inbox_reader.position);
      telemetry.inbox_depth = written - std::min(written, taken);
    }
  }
  const std::lock_guard lock(output_mutex_);
  telemetry.outbox_depth = queue_.size() + (counters.sent > taken_outputs_ ? counters.sent - taken_outputs_ : 0);
}

bool ResidentActor::serve() {
  SeatState state = SeatState::none;
  int code = 0;
  bool had_message = false;
  std::uint64_t working_on = 0;
  std::uint64_t failures = 0;
  {
    const std::lock_guard lock(seat_mutex_);
    if (!seat_ || !activated_ || gone_) return false;
    state = seat_state();
    const SeatDeviceLine& line = grid_->seat(*seat_).device;
    failures = HostAtomics::load_acquire(line.failures);
    code = static_cast<int>(static_cast<std::int64_t>(HostAtomics::load_acquire(line.failure)));
    had_message = HostAtomics::load_acquire(line.had_message) != 0;
    working_on = HostAtomics::load_acquire(line.working_on);
  }
  bool came = false;
  // Who receives reads for himself, and so does who has just requested; answers to others are carried here.
  if (grid_->expects_replies() && spinning_requesters_.load(std::memory_order_relaxed) == 0) came = carry_answers();
  if (state == SeatState::failed && !end_expected_ && failures_seen_.exchange(failures) != failures) {
    if (had_message) ++dead_letters_;
    body_failed(code, fmt::format("its body on {} returned {}", grid_->backend().id(), code), working_on);
    failures_reported_.store(failures, std::memory_order_release);
  } else if (state == SeatState::ended && !end_expected_.exchange(true)) {
    body_ended();
  }
  return came;
}

bool ResidentActor::has_work_waiting() {
  const std::lock_guard lock(seat_mutex_);
  if (!seat_ || !activated_ || gone_ || seat_state() != SeatState::parked) return false;
  const Seat& memory = grid_->seat(*seat_);
  if (is_hold(command_of(HostAtomics::load_acquire(memory.host.command)))) return false;
  const std::lock_guard input_lock(input_mutex_);
  const std::uint64_t written = written_position();
  return written != HostAtomics::load_acquire(memory.inbox_reader.position);
}

void ResidentActor::grid_is_gone(const Error& why) {
  if (gone_.exchange(true)) return;
  body_failed(-1, why.message(), 0);
}

}  // namespace cingulum::ring
