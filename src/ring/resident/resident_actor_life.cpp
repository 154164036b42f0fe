// An actor takes a seat, its body is started, held, restarted and ended, and the seat is given back.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/actor/reply_buffer.hpp"
#include "ring/resident/resident_actor.hpp"

namespace cingulum::ring {
namespace {

// How long a seat may take to see a command; it looks every few microseconds unless its body is away.
constexpr Nanoseconds command_patience = std::chrono::seconds(2);

bool is_over(SeatState state) {
  return state == SeatState::ended || state == SeatState::failed || state == SeatState::left;
}

}  // namespace

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
    written = written_position();
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

}  // namespace cingulum::ring
