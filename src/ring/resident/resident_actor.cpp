#include "ring/resident/resident_actor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/actor/reply_buffer.hpp"
#include "ring/resident/look_again.hpp"

namespace cingulum::ring {
namespace {

// How long a seat may take to see a command; it looks every few microseconds unless its body is away.
constexpr Nanoseconds command_patience = std::chrono::seconds(2);
constexpr int looks_per_lock = 8;
// So long who requests reads the outbox himself, before he leaves it to the service thread and waits.
constexpr std::uint64_t requester_spin_ns = 50'000;

bool is_over(SeatState state) {
  return state == SeatState::ended || state == SeatState::failed || state == SeatState::left;
}

}  // namespace

ResidentActor::ResidentActor(std::string name, std::uint16_t number, std::shared_ptr<ResidentGrid> grid,
                             std::uint32_t body, std::span<const std::byte> arguments, RingKind kind,
                             const ActorOptions& options, RuntimeServices services)
    : Actor(std::move(name), number, options, services),
      grid_(std::move(grid)),
      body_(body),
      arguments_(arguments.begin(), arguments.end()),
      kind_(kind),
      request_latency_(options.latency_sample_interval) {}

ResidentActor::~ResidentActor() {
  // A handle that goes without terminate: the seat is stopped and given back as well as it can be.
  if (!seat_) return;
  close_inbox();
  if (activated_) {
    end_expected_ = true;
    stop_others();
    static_cast<void>(grid_->command(*seat_, SeatCommand::stop, deadline_from_now(command_patience), is_over));
  }
  static_cast<void>(leave_seat());
  for (const Message& message : queue_) drop_answer(message);
  for (const Message& message : held_) drop_answer(message);
}

SeatState ResidentActor::seat_state() const {
  return static_cast<SeatState>(HostAtomics::load_acquire(grid_->seat(*seat_).device.state));
}

Status ResidentActor::do_launch() {
  const ActorOptions& wanted = options();
  const std::uint32_t most = grid_->options().ring_capacity;
  if (wanted.inbox_capacity > most || wanted.outbox_capacity > most) {
    return fail(ErrorKind::invalid_argument,
                "actor '{}': an inbox of {} and an outbox of {} messages do not fit the grid's ring_capacity of {}",
                name(), wanted.inbox_capacity, wanted.outbox_capacity, most);
  }
  if (kind_ == RingKind::bulk && wanted.inbox_policy == FullPolicy::drop_oldest) {
    return fail(ErrorKind::invalid_argument, "actor '{}': drop_oldest needs a fast ring, not a bulk one", name());
  }
  if (wanted.seats > 1 && (kind_ == RingKind::bulk || grid_->in_event_mode())) {
    return fail(ErrorKind::invalid_argument, "actor '{}': several seats need fast rings and a grid that stays", name());
  }
  CGL_TRY_ASSIGN(const std::vector<std::uint32_t> seats, grid_->take_seats(*this, wanted.seats));
  const std::uint32_t seat = seats.front();
  const auto rings = grid_->make_rings(seat, kind_, wanted.inbox_capacity, wanted.outbox_capacity);
  Seat& memory = grid_->seat(seat);
  if (kind_ == RingKind::fast) {
    fast_in_ = FastWriter<Message>({reinterpret_cast<FastSlot<Message>*>(rings.inbox_slots), &memory.inbox_writer,
                                    &memory.inbox_reader, wanted.inbox_capacity});
    fast_out_ = FastReader<Message>({reinterpret_cast<FastSlot<Message>*>(rings.outbox_slots), &memory.outbox_writer,
                                     &memory.outbox_reader, wanted.outbox_capacity},
                                    0, std::max(1u, wanted.outbox_capacity / 4));
  } else {
    bulk_in_ = BulkWriter<Message>({reinterpret_cast<Message*>(rings.inbox_slots), &memory.inbox_writer,
                                    &memory.inbox_reader, wanted.inbox_capacity});
    bulk_out_ = BulkReader<Message>({reinterpret_cast<Message*>(rings.outbox_slots), &memory.outbox_writer,
                                     &memory.outbox_reader, wanted.outbox_capacity},
                                    0, std::max(1u, wanted.outbox_capacity / 4));
  }
  SeatPlan& plan = memory.plan;
  plan = {};
  plan.actor = body_;
  plan.number = number();
  plan.fresh = 1;
  plan.inbox = rings.inbox;
  plan.outbox = rings.outbox;
  plan.seats = wanted.seats;
  plan.replies = grid_->replies_of(seat);
  plan.state = grid_->state_of(seat);
  plan.state_bytes = state_capacity;
  std::memcpy(plan.body, arguments_.data(), arguments_.size());
  if (wanted.seats > 1) {
    other_seats_.assign(seats.begin() + 1, seats.end());
    auto team = grid_->take_team(wanted.seats);
    if (!team) {
      for (const std::uint32_t taken : seats) grid_->give_seat(taken);
      return tl::make_unexpected(std::move(team.error()));
    }
    plan.team = team_ = *team;
    for (std::size_t i = 0; i < other_seats_.size(); ++i) {
      SeatPlan& other = grid_->seat(other_seats_[i]).plan;
      other = {};
      other.actor = body_;
      other.number = number();
      other.fresh = 1;
      other.rank = static_cast<std::uint32_t>(i) + 1;
      other.seats = wanted.seats;
      other.team = team_;
      other.state = plan.state;
      std::memcpy(other.body, plan.body, sizeof plan.body);
    }
  }
  {
    const std::lock_guard lock(input_mutex_);
    inbox_closed_ = false;
  }
  const std::lock_guard lock(output_mutex_);
  outbox_open_ = true;
  const std::lock_guard seat_lock(seat_mutex_);
  seat_ = seat;
  return {};
}

void ResidentActor::write_plan() {
  SeatPlan& plan = grid_->seat(*seat_).plan;
  plan.edges_in_count = static_cast<std::uint32_t>(edges_in_.size());
  for (std::size_t i = 0; i < edges_in_.size(); ++i) plan.edges_in[i] = grid_->edge_ring(edges_in_[i]);
  std::stable_sort(edges_out_.begin(), edges_out_.end(), [](const Edge& a, const Edge& b) { return a.port < b.port; });
  plan.edges_out_count = static_cast<std::uint32_t>(edges_out_.size());
  for (std::size_t i = 0; i < edges_out_.size(); ++i) plan.edges_out[i] = grid_->edge_ring(edges_out_[i].index);
  for (std::uint32_t port = 0; port <= port_count; ++port) {
    plan.port_start[port] = static_cast<std::uint32_t>(
        std::count_if(edges_out_.begin(), edges_out_.end(), [&](const Edge& edge) { return edge.port < port; }));
  }
}

Status ResidentActor::run_others() {
  for (const std::uint32_t seat : other_seats_) {
    CGL_TRY_ASSIGN(const bool sits, grid_->command(seat, SeatCommand::run, deadline_from_now(command_patience),
                                                   [](SeatState state) { return state == SeatState::running; }));
    if (!sits) {
      return fail(ErrorKind::timed_out, "actor '{}': seat {} of {} does not answer", name(), seat,
                  grid_->backend().id());
    }
  }
  return {};
}

void ResidentActor::stop_others() {
  for (const std::uint32_t seat : other_seats_) static_cast<void>(grid_->give_command(seat, SeatCommand::stop));
}

bool ResidentActor::vacate_others() {
  bool all = true;
  for (const std::uint32_t seat : other_seats_) {
    const auto vacant = grid_->command(seat, SeatCommand::vacate, deadline_from_now(command_patience),
                                       [](SeatState state) { return state == SeatState::vacant; });
    // A seat that does not answer is not given to another.
    if (vacant && *vacant) {
      grid_->give_seat(seat);
    } else {
      all = false;
    }
  }
  other_seats_.clear();
  return all;
}

Status ResidentActor::do_activate() {
  const std::lock_guard life(life_mutex_);
  write_plan();
  CGL_TRY(run_others());
  failures_seen_ = failures_reported_ = HostAtomics::load_acquire(grid_->seat(*seat_).device.failures);
  CGL_TRY_ASSIGN(const bool sits,
                 grid_->command(*seat_, SeatCommand::run, deadline_from_now(command_patience), [](SeatState state) {
                   return state == SeatState::running || state == SeatState::parked || is_over(state);
                 }));
  if (!sits) {
    return fail(ErrorKind::timed_out, "actor '{}': seat {} of {} does not answer", name(), *seat_,
                grid_->backend().id());
  }
  beats_before_ = {HostAtomics::load_relaxed(grid_->seat(*seat_).counters.heartbeat)};
  for (const std::uint32_t seat : other_seats_) {
    beats_before_.push_back(HostAtomics::load_relaxed(grid_->seat(seat).counters.heartbeat));
  }
  activated_ = true;
  return {};
}

void ResidentActor::do_gate(bool open, Nanoseconds patience) {
  const std::lock_guard life(life_mutex_);
  if (!seat_ || gone_) return;
  wait_for_restart(deadline_from_now(command_patience));
  const SeatState wanted = open ? SeatState::running : SeatState::held;
  static_cast<void>(grid_->command(*seat_, open ? SeatCommand::run : SeatCommand::hold, deadline_from_now(patience),
                                   [&](SeatState state) {
                                     // A parked seat delivers nothing; it takes up the command when the grid returns.
                                     return state == wanted || state == SeatState::parked || is_over(state);
                                   }));
}

void ResidentActor::close_inbox() {
  const std::lock_guard lock(input_mutex_);
  inbox_closed_ = true;
}

Result<TerminationReport> ResidentActor::do_terminate(const Termination& how) {
  const std::lock_guard life(life_mutex_);
  close_inbox();
  TerminationReport report;
  if (!seat_) return report;
  if (activated_ && !gone_) {
    end_expected_ = true;
    const auto ended = end_body(how, report.drained);
    if (ended && !*ended) {
      return fail(ErrorKind::timed_out, "actor '{}': its body does not return; its seat on {} is lost until it does",
                  name(), grid_->backend().id());
    }
  }
  report.dropped = leave_seat();
  discarded_ += report.dropped;
  return report;
}

Result<bool> ResidentActor::end_body(const Termination& how, std::uint64_t& drained) {
  const std::uint64_t deadline = deadline_from_now(how.timeout);
  const bool drains = how.mode == Termination::Mode::drain;
  const auto over = [&](SeatState state) {
    save_outputs();  // a body that waits for room in its outbox could not end
    return is_over(state);
  };
  for (;;) {
    wait_for_restart(deadline);
    if (!is_over(seat_state())) {
      if (!drains) stop_others();
      CGL_TRY_ASSIGN(bool ended,
                     grid_->command(*seat_, drains ? SeatCommand::drain : SeatCommand::stop, deadline, over));
      if (!ended && drains) {
        stop_others();
        CGL_TRY_ASSIGN(ended, grid_->command(*seat_, SeatCommand::stop, deadline_from_now(command_patience), over));
      }
      if (!ended) return false;
      drained += HostAtomics::load_acquire(grid_->seat(*seat_).device.drained);
    }
    if (seat_state() != SeatState::failed) return true;
    report_failure();
    if (!restarts_to_drain()) return true;
    CGL_TRY_ASSIGN(const bool runs, command_restart(SeatCommand::restart));
    if (!runs) return false;
  }
}

Result<bool> ResidentActor::command_restart(SeatCommand how) {
  restarted_from_ = HostAtomics::load_acquire(grid_->seat(*seat_).device.failures);
  return grid_->command(*seat_, how, deadline_from_now(command_patience), [](SeatState) { return true; });
}

void ResidentActor::wait_for_restart(std::uint64_t deadline_ns) const {
  const SeatDeviceLine& line = grid_->seat(*seat_).device;
  LookAgain again(WaitStrategy{});
  while (seat_state() == SeatState::failed && HostAtomics::load_acquire(line.failures) == restarted_from_ &&
         !grid_->has_ended() && steady_now_ns() < deadline_ns) {
    again.pause();
  }
}

void ResidentActor::report_failure() {
  const SeatDeviceLine& line = grid_->seat(*seat_).device;
  const std::uint64_t failures = HostAtomics::load_acquire(line.failures);
  if (failures_seen_.exchange(failures) == failures) {
    // The service thread has seen it, and is about to report it.
    while (failures_reported_.load(std::memory_order_acquire) != failures) std::this_thread::yield();
    return;
  }
  const int code = static_cast<int>(static_cast<std::int64_t>(HostAtomics::load_acquire(line.failure)));
  const std::uint64_t working_on = HostAtomics::load_acquire(line.working_on);
  if (HostAtomics::load_acquire(line.had_message) != 0) ++dead_letters_;
  body_failed(code, fmt::format("its body on {} returned {}", grid_->backend().id(), code), working_on);
  failures_reported_.store(failures, std::memory_order_release);
}

std::uint64_t ResidentActor::leave_seat() {
  save_outputs();
  {
    const std::lock_guard lock(output_mutex_);
    outbox_open_ = false;
  }
  const std::lock_guard lock(seat_mutex_);
  if (!seat_) return 0;
  Seat& memory = grid_->seat(*seat_);
  std::uint64_t written = 0;
  {
    const std::lock_guard input_lock(input_mutex_);
    written = kind_ == RingKind::fast ? fast_in_.position() : bulk_in_.position();
  }
  std::uint64_t left = written - HostAtomics::load_acquire(memory.inbox_reader.position);
  if (activated_) overtaken_ = HostAtomics::load_acquire(memory.device.overtaken);
  last_counters_ = counters_of_seat();
  last_counters_.in_body = 0;
  for (const std::uint32_t edge : edges_in_) static_cast<void>(grid_->close_edge_reader(edge));
  bool vacated = !activated_;
  bool others_left = true;
  if (activated_ && !gone_) {
    const auto vacant = grid_->command(*seat_, SeatCommand::vacate, deadline_from_now(command_patience),
                                       [](SeatState state) { return state == SeatState::vacant; });
    vacated = vacant && *vacant;
    others_left = vacate_others();
  } else if (!activated_) {
    others_left = vacate_others();
  }
  // A seat that does not answer is not given to another.
  if (vacated) grid_->give_seat(*seat_);
  if (vacated && others_left && team_ != nullptr) grid_->give_team(std::exchange(team_, nullptr));
  for (const std::uint32_t edge : edges_in_) left += grid_->release_edge_end(edge);
  for (const Edge& edge : edges_out_) left += grid_->release_edge_end(edge.index);
  edges_in_.clear();
  edges_out_.clear();
  seat_.reset();
  return left;
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
  if (status == PutStatus::stored) ++accepted_;
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
  LookAgain again(options().waiting);
  for (;;) {
    const PutStatus status = put_at_once(message);
    if (status == PutStatus::stored) return status;
    if (status == PutStatus::closed) {
      ++rejected_;
      return status;
    }
    switch (options().inbox_policy) {
      case FullPolicy::reject: ++rejected_; return PutStatus::full;
      case FullPolicy::drop_new: ++dropped_new_; return PutStatus::dropped_new;
      default: break;
    }
    const std::uint64_t now = steady_now_ns();
    if (now >= expires_ns) {
      ++expired_;
      return PutStatus::expired;
    }
    if (now >= deadline_ns || (stop != nullptr && stop->load(std::memory_order_acquire))) {
      ++rejected_;
      return now >= deadline_ns ? PutStatus::timed_out : PutStatus::closed;
    }
    again.pause();
  }
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
  accepted_ += stored;
  if (stored != 0) grid_->wake();
  return stored;
}

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
  std::vector<std::uint64_t> full;
  std::erase_if(held_, [&](const Message& reply) {
    const std::uint64_t correlation = reply.header.correlation;
    if (std::find(full.begin(), full.end(), correlation) != full.end()) return false;
    if (settle(reply, 0)) return true;
    full.push_back(correlation);
    return false;
  });
}

GetStatus ResidentActor::do_receive(Message& message, std::uint64_t deadline_ns) {
  LookAgain again(options().waiting);
  for (;;) {
    {
      const std::lock_guard lock(output_mutex_);
      // Several looks for one lock: an answer that comes is seen at once.
      for (int look = 0; look < looks_per_lock; ++look) {
        if (take_output(message)) return GetStatus::taken;
        if (!outbox_open_ || gone_) return GetStatus::closed;
        if (deadline_ns == 0) break;
      }
    }
    if (again.spins_over() && steady_now_ns() >= deadline_ns) return GetStatus::timed_out;
    again.pause();
  }
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
  const std::uint64_t written = kind_ == RingKind::fast ? fast_in_.position() : bulk_in_.position();
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
  const ActorCounters& line = grid_->seat(*seat_).counters;
  ActorCounters counters;
  counters.received = HostAtomics::load_relaxed(line.received);
  counters.sent = HostAtomics::load_relaxed(line.sent);
  counters.emitted = HostAtomics::load_relaxed(line.emitted);
  counters.refused = HostAtomics::load_relaxed(line.refused);
  counters.heartbeat = HostAtomics::load_relaxed(line.heartbeat);
  // The beat of several seats is the one that has beaten least: one that stands still is a stall of the actor.
  for (std::size_t i = 0; i < other_seats_.size(); ++i) {
    const std::uint64_t beats = HostAtomics::load_relaxed(grid_->seat(other_seats_[i]).counters.heartbeat);
    counters.heartbeat = std::min(counters.heartbeat, beats_before_[0] + (beats - beats_before_[i + 1]));
  }
  counters.busy_ns = HostAtomics::load_relaxed(line.busy_ns);
  // Only a seat that runs beats.
  counters.in_body = activated_ && seat_state() == SeatState::running ? 1 : 0;
  counters.started = HostAtomics::load_relaxed(line.started);
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
  telemetry.loss.rejected = rejected_;
  telemetry.loss.dropped_new = dropped_new_;
  telemetry.loss.dropped_oldest = overtaken_;
  telemetry.loss.expired = expired_;
  telemetry.loss.dead_letters = dead_letters_;
  telemetry.loss.discarded = discarded_;
  telemetry.loss.late_replies = late_replies_;
  {
    const std::lock_guard seat_lock(seat_mutex_);
    const std::lock_guard lock(input_mutex_);
    if (seat_) {
      const std::uint64_t written = kind_ == RingKind::fast ? fast_in_.position() : bulk_in_.position();
      const std::uint64_t taken = HostAtomics::load_acquire(grid_->seat(*seat_).inbox_reader.position);
      telemetry.inbox_depth = written - std::min(written, taken);
    }
  }
  const std::lock_guard lock(output_mutex_);
  telemetry.outbox_depth = queue_.size() + (counters.sent > taken_outputs_ ? counters.sent - taken_outputs_ : 0);
}

Status ResidentActor::do_restart() {
  const std::lock_guard life(life_mutex_);
  if (!seat_ || gone_) return fail(ErrorKind::closed, "actor '{}': its grid has ended", name());
  // A deactivated actor whose body failed in its last message begins again behind its gate.
  const SeatCommand how = state() == ActorState::deactivated ? SeatCommand::restart_held : SeatCommand::restart;
  CGL_TRY_ASSIGN(const bool runs, command_restart(how));
  if (!runs) return fail(ErrorKind::timed_out, "actor '{}': its seat does not answer", name());
  return {};
}

void ResidentActor::do_give_up() {
  std::unique_lock life(life_mutex_, std::defer_lock);
  while (!life.try_lock()) {
    // Who terminates the actor at this moment waits for us (report_failure), and leaves the seat himself.
    if (state() == ActorState::terminating) return;
    std::this_thread::yield();
  }
  close_inbox();
  dead_letters_ += leave_seat();
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

bool ResidentActor::has_work_waiting() {
  const std::lock_guard lock(seat_mutex_);
  if (!seat_ || !activated_ || gone_ || seat_state() != SeatState::parked) return false;
  const Seat& memory = grid_->seat(*seat_);
  if (is_hold(command_of(HostAtomics::load_acquire(memory.host.command)))) return false;
  const std::lock_guard input_lock(input_mutex_);
  const std::uint64_t written = kind_ == RingKind::fast ? fast_in_.position() : bulk_in_.position();
  return written != HostAtomics::load_acquire(memory.inbox_reader.position);
}

void ResidentActor::grid_is_gone(const Error& why) {
  if (gone_.exchange(true)) return;
  body_failed(-1, why.message(), 0);
}

}  // namespace cingulum::ring
