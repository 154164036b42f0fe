// A seat of a resident grid: everything that a block of the persistent kernel does for its actor. Bodies do not see it;
// they are given a SeatContext (ring/resident/seat_context.hpp), which does what happens with every message by itself
// and calls this for the rest. Written once over a Machine (ring/cuda/cuda_machine.cuh,
// ring/resident/emulated_machine.hpp).
//
// All lanes of the block run the body and call these functions together. What the first lane holds is what is sent; all
// lanes get the same message. The first warp is the mailbox: it polls the rings, applies the host's commands, beats for
// the host and watches the host's beat; every loop that waits does all of this (look_around), so that none outlives its
// host. A stop makes receive answer false; sends that cannot be made any more are counted as refused.
//
// An actor may have several seats. The first has its rings and does what a single one does; it broadcasts the outcome
// of every call to the others, which wait for that. A seat whose body has returned stores so: whoever waits for it
// gives up, and the first one answers for all when all have returned.
#pragma once

#include "ring/resident/seat_layout.hpp"
#include "ring/resident/seat_rings.hpp"

// A function of its own on the device: one copy serves all bodies of a program, which would each carry theirs else.
#if defined(__CUDACC__)
#define CGL_OWN_FUNCTION __noinline__
#else
#define CGL_OWN_FUNCTION
#endif

namespace cingulum::ring {

// Messages that a block takes from or gives to a bulk ring at a time.
constexpr std::uint32_t seat_batch = 256;
// Passes of the polling loop between two looks at the host's line, which lies across the bus.
constexpr std::uint32_t passes_per_look = 8;
// And by time, for an actor that never waits: so often in a beat.
constexpr std::uint32_t looks_per_beat = 8;
// The same for an actor whose messages come from its neighbours: their rings answer faster than the bus.
constexpr std::uint32_t passes_per_look_at_edges = 64;
constexpr std::uint32_t smallest_eager_capacity = 16;  // smaller rings need their credit at once
constexpr std::uint32_t shortest_nap_ns = 20;
constexpr std::uint32_t vacant_nap_ns = 10000;  // nobody waits for a vacant seat but the one who seats an actor
// Not soon: the release waits for everything that is under way over the bus, and the next message waits for it. No
// writer is kept from writing: a quarter of the ring is published at once.
constexpr std::uint32_t idle_passes_before_credit = 512;

// The block's shared memory.
struct SeatShared {
  Message in[2][seat_batch];  // alternately, so that one barrier a round is enough
  Message out[seat_batch];
  Message sending;  // of the mailbox, on its way from the first lane to all
  ReplySlot reply;  // that was taken last
  SeatPlan plan;
  std::uint64_t batch_position;
  std::uint64_t credit[2];   // of the ring in which there was no room
  std::uint64_t address[2];  // of the buffer that was looked up
  struct {
    std::uint64_t position;
    std::uint64_t credit;
  } outputs[1 + largest_edge_count];  // when an actor is seated: the outbox, then the edges
  std::uint32_t verdict[2];
  std::uint32_t count[2];
  std::uint32_t eager[2];  // with a message: Eager
  std::uint32_t left[2];   // and how many more this run of its ring has
};

// What the mailbox found, posted in shared memory; the other lanes read it behind the barrier.
enum class Verdict : std::uint32_t { message, batch, nothing, end, room, leave, occupy, vacate, restart };

constexpr std::uint32_t no_port = ~0u;

// The ring that spoke last, when it may be waited for alone.
enum class Eager : std::uint32_t { none, inbox, edge };

template <class Machine>
class SeatContext;

template <class Machine>
class SeatCore {
 public:
  // `block_bytes`: of the block's memory, behind `shared`, for bodies.
  CGL_HD_GENERIC CGL_HD SeatCore(const GridPlan& grid, std::uint32_t seat, SeatShared& shared,
                                 std::uint32_t block_bytes)
      : grid_(grid), seat_(grid.seats + seat), shared_(&shared), block_bytes_(block_bytes) {
    if (!Machine::in_mailbox()) return;
    started_ns_ = Machine::time_ns();
    host_seen_ns_ = started_ns_;
    beat_cycles_ = Machine::cycles();
    beat_ns_ = started_ns_;
  }

  // ---- for SeatContext: as ring/actor/actor_context.hpp has it ----

  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool receive(Message& message) {
    return take(message, true) == GetStatus::taken;
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION GetStatus try_receive(Message& message) { return take(message, false); }
  // The message that receive would give now; it stays where it is.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool peek(Message& message) {
    if (shared().plan.rank != 0) return receive_broadcast(message) == GetStatus::taken;
    GetStatus status = GetStatus::empty;
    if (in_at_ != in_count_) {
      Machine::load_message(message, shared().in[in_buffer_][in_at_]);
      status = GetStatus::taken;
    } else {
      flush();  // who looks for the next message may wait for it, and so may the one who is to send it
      round_ ^= 1u;
      if (Machine::in_mailbox()) post_verdict(look_ahead() ? Verdict::message : Verdict::nothing, 0);
      Machine::block_sync();
      eager_ = Eager::none;  // the look may have gone on to another run of its ring
      if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::message)) {
        Machine::load_message(message, shared().in[round_][0]);
        status = GetStatus::taken;
      }
    }
    if (shared().plan.team != nullptr) broadcast(status, message);
    return status == GetStatus::taken;
  }
  // The reply buffer in hand, or the next that is free; null: none, or told to stop.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION ReplySpace reply_buffer() {
    if (shared().plan.rank != 0) {
      Message outcome;
      ReplySpace space;
      if (receive_broadcast(outcome) == GetStatus::taken) copy_payload<ReplySpace>(&space, outcome.payload);
      return space;
    }
    if (!has_reply_ && shared().plan.replies.capacity != 0) {
      round_ ^= 1u;
      if (Machine::in_mailbox()) wait_for_reply_buffer();
      Machine::block_sync();
      if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::room)) {
        has_reply_ = true;
        reply_ = shared().reply;
      }
    }
    ReplySpace space;
    if (has_reply_) space = {reply_.handle, reinterpret_cast<void*>(reply_.address)};
    if (shared().plan.team != nullptr) {
      Message outcome;
      copy_payload<ReplySpace>(outcome.payload, &space);
      broadcast(has_reply_ ? GetStatus::taken : GetStatus::closed, outcome);
    }
    return space;
  }
  // All lanes of all seats of the actor; false: one has left the body, or the actor is to end.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool sync_seats() {
    Machine::block_sync();  // what all lanes wrote is there before the word that says so
    round_ ^= 1u;
    ++barriers_;
    if (Machine::in_mailbox()) wait_for_all_seats();
    Machine::block_sync();
    return shared().verdict[round_] != static_cast<std::uint32_t>(Verdict::end);
  }
  // Each waiting message (at most seat_batch), one per lane, is changed by `answer(Message&)` and sent. The way of
  // streams: no barrier per message. False as in receive.
  CGL_HD_GENERIC template <class Answer>
  CGL_HD bool answer_batch(Answer&& answer) {
    if (shared().plan.team != nullptr) return false;  // a message for each lane of one seat
    if (stage_input(true) != GetStatus::taken) return false;
    flush();
    const std::uint32_t count = in_count_ - in_at_;
    for (std::uint32_t i = Machine::lane(); i < count; i += Machine::lanes()) {
      Message message = shared().in[in_buffer_][in_at_ + i];
      answer(message);
      message.set_source(static_cast<std::uint16_t>(shared().plan.number));
      shared().out[i] = message;
    }
    in_at_ += count;
    received_ += count;
    out_count_ = count;
    sent_ += count;
    flush();
    return true;
  }
  // Sends to the requester, to the actors wired to port 0, or to the host's output, in this order.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION PutStatus send(const Message& message) {
    if (shared().plan.rank != 0) return PutStatus::stored;  // by the first seat
    if (!message.has(mark_request) && port_size(0) != 0) return emit(0, message);
    if (message.has(mark_handle)) hand_over();
    const SeatRing& outbox = shared().plan.outbox;
    if (outbox.kind == RingKind::bulk) {
      if (out_count_ == seat_batch) flush();
      if (Machine::is_first()) {
        shared().out[out_count_] = message;
        shared().out[out_count_].set_source(static_cast<std::uint16_t>(shared().plan.number));
      }
      ++out_count_;
      ++sent_;
      eager_ = Eager::none;  // the next receive sends it off first
      if (names_reply(message)) {
        // Whether it goes is known when it has gone: otherwise the buffer stays in hand.
        const std::uint64_t counted = sent_;
        flush();
        if (sent_ != counted) return PutStatus::closed;
        reply_went();
      }
      return PutStatus::stored;
    }
    if (!put<false>(outbox, output_, message)) return PutStatus::closed;
    if (names_reply(message)) reply_went();
    ++sent_;
    return PutStatus::stored;
  }
  // Sends to every actor wired to `port`.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION PutStatus emit(std::uint32_t port, const Message& message) {
    if (shared().plan.rank != 0) return PutStatus::stored;  // by the first seat
    const std::uint32_t count = port_size(port);
    if (count == 0) return PutStatus::closed;
    if (message.has(mark_handle)) hand_over();
    const std::uint32_t first = shared().plan.port_start[port];
    if (count == 1) port_at_hand_ = port;
    std::uint32_t stored = 0;
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (put<true>(shared().plan.edges_out[i], edges_out_[i], message)) ++stored;
    }
    emitted_ += stored;
    if (stored != 0 && names_reply(message)) reply_went();
    return stored == count ? PutStatus::stored : PutStatus::closed;
  }

  // For bodies that work long between two messages: true when they are to end without draining.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool should_stop() {
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      look_when_due();
      post_verdict(ending() ? Verdict::end : Verdict::room, 0);
    }
    Machine::block_sync();
    return shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end);
  }
  // False: nobody waits any more for answers to this request. Of several seats the first looks for all: one that saw
  // it a moment later would go on alone.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool is_wanted(const Message& request) {
    if (!request.has(mark_request)) return true;
    if (shared().plan.rank != 0) {
      Message outcome;
      return receive_broadcast(outcome) == GetStatus::taken;
    }
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      look_when_due();
      const std::uint64_t correlation = request.header.correlation;
      const std::uint64_t word = Machine::load_word(grid_.abandoned + correlation % abandoned_request_count);
      post_verdict(word == correlation ? Verdict::end : Verdict::room, 0);
    }
    Machine::block_sync();
    const bool wanted = shared().verdict[round_] != static_cast<std::uint32_t>(Verdict::end);
    if (shared().plan.team != nullptr) broadcast(wanted ? GetStatus::taken : GetStatus::empty, request);
    return wanted;
  }
  CGL_HD_GENERIC CGL_HD void heartbeat() {
    if (Machine::in_mailbox()) look_when_due();
  }
  // The device's clock; every lane reads its own.
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint64_t time_ns() const { return Machine::own_time_ns(); }

  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t lane() const { return Machine::lane(); }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t lanes() const { return Machine::lanes(); }
  CGL_HD_GENERIC CGL_HD void sync() { Machine::block_sync(); }

  [[nodiscard]] CGL_HD std::uint16_t self() const { return static_cast<std::uint16_t>(shared().plan.number); }
  // Memory of the actor, shared by its lanes, in device memory. It outlasts parking; a start clears it.
  template <class S>
  [[nodiscard]] CGL_HD S& state() {
    static_assert(sizeof(S) <= state_capacity, "an actor's state is too large");
    return *static_cast<S*>(shared().plan.state);
  }
  // What a body asked for by block_bytes_of; null: it asked for less.
  template <class S>
  [[nodiscard]] CGL_HD S* block_memory() {
    return sizeof(S) <= block_bytes_ ? reinterpret_cast<S*>(&shared() + 1) : nullptr;
  }
  [[nodiscard]] CGL_HD std::uint32_t seat() const { return shared().plan.rank; }
  [[nodiscard]] CGL_HD std::uint32_t seats() const { return shared().plan.team == nullptr ? 1 : shared().plan.seats; }
  // The bytes behind a handle; null when it is stale. The table lies in mapped memory, and reads of one line over the
  // bus wait for each other, about a microsecond each: one lane of all seats looks it up.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void* buffer(BufferHandle handle) {
    if (shared().plan.rank != 0) {
      Message outcome;
      std::uint64_t address = 0;
      if (receive_broadcast(outcome) == GetStatus::taken) copy_payload<std::uint64_t>(&address, outcome.payload);
      return reinterpret_cast<void*>(address);
    }
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      const std::uint64_t found = address_of(handle);
      if (Machine::is_first()) shared().address[round_] = found;
    }
    Machine::block_sync();
    const std::uint64_t address = shared().address[round_];
    if (shared().plan.team != nullptr) {
      Message outcome;
      copy_payload<std::uint64_t>(outcome.payload, &address);
      broadcast(GetStatus::taken, outcome);
    }
    return reinterpret_cast<void*>(address);
  }

  // What all lanes wrote to a buffer is there before the message that names it: the mailbox has seen it at the barrier,
  // and its fence is good for all of it.
  CGL_HD_GENERIC CGL_HD void hand_over() {
    Machine::block_sync();
    if (Machine::in_mailbox()) Machine::fence();
  }
  // By the mailbox, when it has taken a message and before the others know: their reads of the buffer that it names
  // come after the read of the message.
  CGL_HD_GENERIC CGL_HD void take_over() {
    if (!shared().in[round_][0].has(mark_handle)) return;
    const SeatInput& input = staged_from_edge_ >= 0 ? edges_in_[staged_from_edge_] : input_;
    Machine::acquire_slot(input.next - 1);
  }
  [[nodiscard]] CGL_HD SeatShared& shared() const { return Machine::block_memory(shared_); }
  [[nodiscard]] CGL_HD std::uint32_t port_size(std::uint32_t port) const {
    return port < port_count ? shared().plan.port_start[port + 1] - shared().plan.port_start[port] : 0;
  }

  // ---- for run_seat ----

  // Waits until an actor is seated and its body is to run (not leave), or the block is to leave.
  CGL_HD_GENERIC CGL_HD Verdict wait_for_actor() {
    for (;;) {
      Verdict next = wait_for_plan();
      // The first seat says when the others begin.
      if (next != Verdict::leave && shared().plan.rank != 0) next = wait_for_start();
      if (next != Verdict::vacate) return next;
    }
  }
  // occupy: its plan lies in shared memory.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION Verdict wait_for_plan() {
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      std::uint32_t passes = 0;
      bool voted = false;
      std::uint64_t idle_since = 0;
      enter(SeatState::vacant);
      for (;;) {
        look();
        const SeatCommand command = command_of(command_);
        if (leave_ != LeaveReason::none || parking_) {
          post_verdict(Verdict::leave, 0);
          break;
        }
        // Any other command comes to a seat that is occupied, if only since before it was parked.
        const bool seated = command != SeatCommand::vacate && command != SeatCommand::leave;
        if (seated && (!voted || withdraw_vote(voted))) {
          post_verdict(Verdict::occupy, 0);
          break;
        }
        back_off(passes, vacant_nap_ns);
        if (grid_.park_after_ns != 0) consider_parking(passes, idle_since, voted);
      }
    }
    Machine::block_sync();
    const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
    if (verdict == Verdict::leave) return verdict;
    Machine::copy_words(&shared().plan, &seat_->plan, sizeof(SeatPlan));
    Machine::block_sync();
    seat_actor();
    return verdict;
  }

  // The body returned `code`. Answers what is next: restart (run it again), vacate (the seat is free again) or leave.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION Verdict body_returned(int code) {
    flush();
    if (shared().plan.team != nullptr) {
      code = leave_team(code);
      if (shared().plan.rank != 0) return wait_for_start();
    }
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      store_positions();
      SeatDeviceLine& line = seat_->device;
      Machine::store_relaxed(&line.failure, static_cast<std::uint64_t>(static_cast<std::int64_t>(code)));
      Machine::store_relaxed(&line.working_on, working_on_);
      Machine::store_relaxed(&line.had_message, has_message_ ? 1 : 0);
      Machine::store_relaxed(&line.overtaken, overtaken_);
      const bool draining = command_of(command_) == SeatCommand::drain;
      Machine::store_relaxed(&line.drained, draining ? received_ - drain_from_ : 0);
      // A body that was made to leave may return anything; the reason of leaving counts.
      const bool failed = code != 0 && leave_ == LeaveReason::none && !parking_;
      if (failed) Machine::store_relaxed(&line.failures, ++failures_);
      state_ = parking_ ? SeatState::parked : failed ? SeatState::failed : SeatState::ended;
      count_now();
      enter(state_);
      post_verdict(parking_ ? Verdict::leave : next_after_body(failed), 0);
    }
    Machine::block_sync();
    const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
    if (verdict == Verdict::restart) {
      Machine::clear_bytes(shared().plan.state, shared().plan.state_bytes);
      Machine::block_sync();
      has_message_ = false;
      working_on_ = 0;
      if (Machine::in_mailbox()) {
        ++starts_;
        enter(is_hold(command_of(command_)) ? SeatState::held : SeatState::running);
      }
      start_team();
    }
    return verdict;
  }

  // The last words of a block.
  CGL_HD_GENERIC CGL_HD void leave() {
    if (!Machine::in_mailbox() || parking_) return;
    count_now();
    Machine::store_relaxed(&seat_->device.leave_reason, static_cast<std::uint64_t>(leave_));
    enter(SeatState::left);
  }
  [[nodiscard]] CGL_HD const SeatPlan& plan() const { return shared().plan; }

 private:
  friend class SeatContext<Machine>;

  // Writes a message to a fast ring, all lanes; false: given up because the actor is to end or nobody reads. All lanes
  // keep the same account of the ring, so that they part only when there is no room.
  CGL_HD_GENERIC template <bool on_device>
  CGL_HD bool put(const SeatRing& ring, SeatOutput& output, const Message& message) {
    if (output.room == 0 && !find_room(ring, output)) return false;
    if (Machine::in_mailbox()) {
      Machine::template write_fast<on_device>(output.next, output.sequence, message, &shared().sending,
                                              shared().plan.number);
    }
    output.advance();
    return true;
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool find_room(const SeatRing& ring, SeatOutput& output) {
    if (output.next_run(ring)) return true;
    round_ ^= 1u;
    if (Machine::in_mailbox()) wait_for_credit(ring, output.end);
    Machine::block_sync();
    if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end)) {
      ++refused_;
      return false;
    }
    output.credit = shared().credit[round_];
    return output.next_run(ring);
  }
  CGL_HD_GENERIC CGL_HD void hand_out(Message& message, const Message& from) {
    Machine::load_message(message, from);
    ++received_;
    has_message_ = true;
    working_on_ = message.has(mark_request) ? message.header.correlation : 0;
  }

  // Once per actor on this seat (and again after parking): positions go on where the rings' lines say.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void seat_actor() {
    if (shared().plan.fresh != 0 && shared().plan.rank == 0) {
      Machine::clear_bytes(shared().plan.state, shared().plan.state_bytes);
    }
    has_reply_ = false;
    team_start_ = 0;
    in_at_ = in_count_ = out_count_ = 0;
    has_message_ = false;
    eager_ = Eager::none;
    port_at_hand_ = no_port;
    working_on_ = 0;
    received_ = sent_ = emitted_ = refused_ = 0;
    if (Machine::in_mailbox()) {
      const SeatPlan& plan = shared().plan;
      find_input(plan.inbox, input_);
      find_output(plan.outbox, 0);
      if (plan.replies.capacity != 0) reply_position_ = Machine::load_acquire(&plan.replies.reader->position);
      for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) find_input(plan.edges_in[i], edges_in_[i]);
      for (std::uint32_t i = 0; i < plan.edges_out_count; ++i) find_output(plan.edges_out[i], 1 + i);
      busy_ns_ = 0;
      busy_cycles_ = 0;
      starts_ = 1;
      failures_ = Machine::load_acquire(&seat_->device.failures);
      restarted_by_ = command_;  // a command from before parking has been applied
      overtaken_ = plan.fresh != 0 ? 0 : Machine::load_acquire(&seat_->device.overtaken);
      from_edge_ = false;
      drain_from_ = 0;
      if (plan.fresh == 0) {
        // After parking the counts go on.
        received_ = Machine::load_acquire(&seat_->counters.received);
        sent_ = Machine::load_acquire(&seat_->counters.sent);
        emitted_ = Machine::load_acquire(&seat_->counters.emitted);
        refused_ = Machine::load_acquire(&seat_->counters.refused);
        busy_ns_ = Machine::load_acquire(&seat_->counters.busy_ns);
        drain_from_ = received_;
        starts_ = Machine::load_acquire(&seat_->counters.started);
      }
      count_now();
      enter(is_hold(command_of(command_)) ? SeatState::held : SeatState::running);
    }
    Machine::block_sync();
    output_.start(shared().outputs[0].position, shared().outputs[0].credit);
    for (std::uint32_t i = 0; i < shared().plan.edges_out_count; ++i) {
      edges_out_[i].start(shared().outputs[1 + i].position, shared().outputs[1 + i].credit);
    }
    if (shared().plan.rank == 0) start_team();
  }
  CGL_HD_GENERIC CGL_HD void find_input(const SeatRing& ring, SeatInput& input) {
    if (ring.kind == RingKind::none) return;
    input.published = Machine::load_acquire(&ring.reader->position);
    input.move_to(ring, input.published);
  }
  CGL_HD_GENERIC CGL_HD void find_output(const SeatRing& ring, std::uint32_t index) {
    if (ring.kind == RingKind::none) return;
    const std::uint64_t position = Machine::load_acquire(&ring.writer->position);
    const std::uint64_t credit = Machine::load_acquire(&ring.reader->position);
    if (Machine::is_first()) shared().outputs[index] = {position, credit};
  }

  // A message of the inbox or, in another seat than the first, the one that the first was given.
  CGL_HD_GENERIC CGL_HD GetStatus take(Message& message, bool wait) {
    if (shared().plan.rank != 0) return receive_broadcast(message);
    const GetStatus status = stage_input(wait);
    if (status == GetStatus::taken) hand_out(message, shared().in[in_buffer_][in_at_++]);
    if (shared().plan.team != nullptr) broadcast(status, message);
    return status;
  }
  [[nodiscard]] CGL_HD bool names_reply(const Message& message) const {
    if (!has_reply_ || !message.has(mark_handle)) return false;
    BufferHandle handle;
    copy_payload<BufferHandle>(&handle, message.payload);
    return names_the_same(handle, reply_.handle);
  }
  // It is its reader's now.
  CGL_HD void reply_went() {
    has_reply_ = false;
    ++reply_position_;
  }

  // ---- several seats: all lanes ----

  // By the first seat, before a body starts: the others begin theirs.
  CGL_HD_GENERIC CGL_HD void start_team() {
    Team* const team = shared().plan.team;
    if (team == nullptr) return;
    Machine::block_sync();  // the state is cleared
    broadcast_count_ = barriers_ = 0;
    ++team_start_;
    if (Machine::in_mailbox()) Machine::store_release_on_device(&team->lines[0].starts, team_start_);
  }
  // By the others: restart when the body is to run, vacate or leave.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION Verdict wait_for_start() {
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      const std::uint64_t* const starts = &shared().plan.team->lines[0].starts;
      std::uint32_t passes = 0;
      for (;;) {
        look();
        if (leave_ != LeaveReason::none) {
          post_verdict(Verdict::leave, 0);
          break;
        }
        if (command_of(command_) == SeatCommand::vacate) {
          post_verdict(Verdict::vacate, 0);
          break;
        }
        if (Machine::load_acquire(starts) > team_start_) {
          post_verdict(Verdict::restart, 0);
          break;
        }
        back_off(passes);
      }
    }
    Machine::block_sync();
    const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
    if (verdict == Verdict::restart) {
      ++team_start_;
      broadcast_count_ = barriers_ = 0;
    }
    return verdict;
  }
  // Called on the first seat: what its call answered is the others' answer, too.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void broadcast(GetStatus status, const Message& message) {
    ++broadcast_count_;
    if (!Machine::in_mailbox()) return;
    Team* const team = shared().plan.team;
    if (broadcast_count_ > 2) {
      // The place of this outcome held the one of two calls ago.
      const std::uint64_t read = team_word(team_start_, broadcast_count_ - 2);
      std::uint32_t passes = 0;
      while (!all_reached(&TeamLine::taken, read, 1) && !one_has_left() && !ending()) {
        look_around();
        back_off(passes);
      }
    }
    TeamBroadcast& outcome = team->broadcasts[broadcast_count_ & 1u];
    std::uint64_t words[8];
    memcpy(words, &message, sizeof words);
    Machine::store_relaxed(&outcome.status, static_cast<std::uint64_t>(status));
    for (std::uint32_t i = 0; i < 8; ++i) Machine::store_relaxed(&outcome.message[i], words[i]);
    Machine::store_release_on_device(&team->lines[0].broadcast_count, team_word(team_start_, broadcast_count_));
  }
  // Called on the other seats: waits for the first seat's broadcast and answers what it holds.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION GetStatus receive_broadcast(Message& message) {
    has_message_ = false;
    round_ ^= 1u;
    ++broadcast_count_;
    if (Machine::in_mailbox()) wait_for_broadcast();
    Machine::block_sync();
    if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end)) return GetStatus::closed;
    Machine::load_message(message, shared().in[round_][0]);
    return static_cast<GetStatus>(shared().count[round_]);
  }
  // The body has returned here. By the first seat: waits until it has everywhere, and answers for all.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION int leave_team(int code) {
    Team* const team = shared().plan.team;
    if (Machine::in_mailbox()) {
      TeamLine& line = team->lines[shared().plan.rank];
      Machine::store_relaxed(&line.code, static_cast<std::uint64_t>(static_cast<std::int64_t>(code)));
      Machine::store_release_on_device(&line.left, team_start_);
    }
    if (shared().plan.rank != 0) return code;
    if (Machine::in_mailbox()) {
      std::uint32_t passes = 0;
      while (leave_ == LeaveReason::none && !all_reached(&TeamLine::left, team_start_)) {
        look_around();
        back_off(passes);
      }
      std::uint64_t outcome = static_cast<std::uint64_t>(static_cast<std::int64_t>(code));
      for (std::uint32_t i = 1; i < shared().plan.seats && outcome == 0; ++i) {
        outcome = Machine::load_acquire(&team->lines[i].code);
      }
      if (Machine::is_first()) shared().batch_position = outcome;
    }
    Machine::block_sync();
    return static_cast<int>(static_cast<std::int64_t>(shared().batch_position));
  }

  // ---- the mailbox: lanes of the first warp only, from here to the end of the section ----

  [[nodiscard]] CGL_HD static std::uint32_t mailbox_lanes() { return Machine::lanes() < 32 ? Machine::lanes() : 32; }
  // Whether this word of all of the actor's seats, from the first or from the second on, is `value` at least.
  CGL_HD_GENERIC CGL_HD bool all_reached(std::uint64_t TeamLine::*word, std::uint64_t value, std::uint32_t from = 0) {
    const Team* const team = shared().plan.team;
    bool waits = false;
    for (std::uint32_t i = from + Machine::lane(); i < shared().plan.seats; i += mailbox_lanes()) {
      waits = Machine::load_shared(&(team->lines[i].*word)) < value || waits;
    }
    return !Machine::any(waits);
  }
  CGL_HD_GENERIC CGL_HD bool one_has_left() {
    const Team* const team = shared().plan.team;
    bool found = false;
    for (std::uint32_t i = Machine::lane(); i < shared().plan.seats; i += mailbox_lanes()) {
      found = Machine::load_shared(&team->lines[i].left) == team_start_ || found;
    }
    return Machine::any(found);
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void wait_for_all_seats() {
    Team* const team = shared().plan.team;
    if (team == nullptr) {
      look_when_due();
      post_verdict(ending() ? Verdict::end : Verdict::room, 0);
      return;
    }
    const std::uint64_t arrived = team_word(team_start_, barriers_);
    Machine::store_release_on_device(&team->lines[shared().plan.rank].arrived, arrived);
    std::uint32_t passes = 0;
    for (;;) {
      if (all_reached(&TeamLine::arrived, arrived)) {
        post_verdict(Verdict::room, 0);
        return;
      }
      if (ending() || one_has_left()) {
        post_verdict(Verdict::end, 0);
        return;
      }
      look_around();
      back_off(passes);
    }
  }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint64_t address_of(BufferHandle handle) const {
    if (handle.slot >= grid_.buffer_count || (handle.generation & 1u) == 0 || handle.table != grid_.buffer_table) {
      return 0;
    }
    const BufferEntry* const entry = grid_.buffers + handle.slot;
    return Machine::load_word(&entry->generation) == handle.generation ? Machine::load_word(&entry->address) : 0;
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void wait_for_broadcast() {
    Team* const team = shared().plan.team;
    const std::uint64_t wanted = team_word(team_start_, broadcast_count_);
    std::uint32_t passes = 0;
    while (Machine::load_acquire(&team->lines[0].broadcast_count) < wanted) {
      // What the first seat broadcast before it left still counts.
      if (ending() || (Machine::load_acquire(&team->lines[0].left) == team_start_ &&
                       Machine::load_acquire(&team->lines[0].broadcast_count) < wanted)) {
        post_verdict(Verdict::end, 0);
        return;
      }
      look_around();
      back_off(passes);
    }
    const TeamBroadcast& outcome = team->broadcasts[broadcast_count_ & 1u];
    auto* const words = reinterpret_cast<std::uint64_t*>(&shared().in[round_][0]);
    for (std::uint32_t i = Machine::lane(); i < 8; i += mailbox_lanes())
      words[i] = Machine::load_word(&outcome.message[i]);
    post_verdict(Verdict::message, static_cast<std::uint32_t>(Machine::load_acquire(&outcome.status)));
    Machine::store_release_on_device(&team->lines[shared().plan.rank].taken, wanted);
  }

  // For peek: true when the next message, still in its ring, was copied to the staging buffer.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool look_ahead() {
    const SeatPlan& plan = shared().plan;
    look_when_due();
    if (gated()) return false;
    for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
      if (!take_fast<true>(plan.edges_in[i], edges_in_[i], false)) continue;
      edges_in_[i].step_back();
      acquire_peeked(edges_in_[i]);
      return true;
    }
    if (plan.inbox.kind == RingKind::fast && take_fast<false>(plan.inbox, input_, false)) {
      input_.step_back();
      acquire_peeked(input_);
      return true;
    }
    const std::uint64_t position = input_.position();
    const bool is_there =
        plan.inbox.kind == RingKind::bulk && Machine::load_acquire(&plan.inbox.writer->position) != position;
    if (!is_there) {
      // A writer that waits for room would else never send what is looked for.
      publish_taken();
      return false;
    }
    const auto* const words = reinterpret_cast<const std::uint64_t*>(static_cast<const Message*>(plan.inbox.slots) +
                                                                     (position & (plan.inbox.capacity - 1)));
    auto* const to = reinterpret_cast<std::uint64_t*>(&shared().in[round_][0]);
    for (std::uint32_t i = Machine::lane(); i < 8; i += mailbox_lanes()) to[i] = Machine::load_word(words + i);
    return true;
  }
  CGL_HD_GENERIC CGL_HD void acquire_peeked(const SeatInput& input) {
    if (shared().in[round_][0].has(mark_handle)) Machine::acquire_slot(input.next);
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void wait_for_reply_buffer() {
    const SeatReplies& replies = shared().plan.replies;
    std::uint32_t passes = 0;
    while (Machine::load_acquire(&replies.writer->position) == reply_position_) {
      if (ending()) {
        post_verdict(Verdict::end, 0);
        return;
      }
      look_around();
      back_off(passes);
    }
    const auto* const words =
        reinterpret_cast<const std::uint64_t*>(replies.slots + (reply_position_ & (replies.capacity - 1)));
    auto* const to = reinterpret_cast<std::uint64_t*>(&shared().reply);
    for (std::uint32_t i = Machine::lane(); i < sizeof(ReplySlot) / 8; i += mailbox_lanes()) {
      to[i] = Machine::load_word(words + i);
    }
    post_verdict(Verdict::room, 0);
  }

  CGL_HD_GENERIC CGL_HD void post_verdict(Verdict verdict, std::uint32_t count, Eager eager = Eager::none,
                                          std::uint32_t left = 0) {
    if (!Machine::is_first()) return;
    shared().verdict[round_] = static_cast<std::uint32_t>(verdict);
    shared().count[round_] = count;
    shared().eager[round_] = static_cast<std::uint32_t>(eager);
    shared().left[round_] = left;
  }
  CGL_HD_GENERIC CGL_HD void enter(SeatState state) {
    state_ = state;
    Machine::store_release(&seat_->device.state, static_cast<std::uint64_t>(state));
  }
  [[nodiscard]] CGL_HD bool ending() const {
    const SeatCommand command = command_of(command_);
    return leave_ != LeaveReason::none || parking_ || command == SeatCommand::stop || command == SeatCommand::vacate;
  }

  // A look at the host's line: commands, whether the host lives, the grid's own time limit.
  CGL_HD_GENERIC CGL_HD void look() { apply_host_words(Machine::read_host_line(&seat_->host)); }

  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void apply_host_words(const typename Machine::HostWords& words) {
    const std::uint64_t now = Machine::time_ns();
    if (words.beat != host_beat_) {
      host_beat_ = words.beat;
      host_seen_ns_ = now;
    } else if (now - host_seen_ns_ > grid_.lease_ns && leave_ == LeaveReason::none) {
      leave_ = LeaveReason::host_silent;
    }
    if (grid_.time_limit_ns != 0 && now - started_ns_ > grid_.time_limit_ns && leave_ == LeaveReason::none) {
      leave_ = LeaveReason::time_limit;
    }
    if (leave_ != LeaveReason::none) eager_allowed_ = false;
    if (words.command != command_) {
      command_ = words.command;
      eager_allowed_ = false;
      // What the host did before it gave the command is seen after it: the words may have been read without order. (A
      // fence, here and in stores, waits for all that is under way over the bus: several times as long as a read.)
      static_cast<void>(Machine::load_acquire(&seat_->host.command));
      const SeatCommand command = command_of(command_);
      if (command == SeatCommand::leave && leave_ == LeaveReason::none) leave_ = LeaveReason::commanded;
      if (command == SeatCommand::drain) drain_from_ = received_;
      if (state_ == SeatState::running || state_ == SeatState::held) {
        store_positions();
        // While messages lie staged the body is not at its gate yet: it gets those first.
        if (is_hold(command) && in_at_ == in_count_) state_ = SeatState::held;
        if (command == SeatCommand::run || command == SeatCommand::drain) state_ = SeatState::running;
        Machine::store_relaxed(&seat_->device.state, static_cast<std::uint64_t>(state_));
      }
      // One release publishes positions, state and this together.
      Machine::store_release(&seat_->device.acknowledged, command_);
    }
    beat(now);
  }
  // What every waiting loop does once a pass.
  CGL_HD_GENERIC CGL_HD void look_around() {
    if (passes_since_look_++ % passes_per_look == 0) look();
  }
  // For bodies that call as often or as rarely as they like: by time, not by count.
  CGL_HD_GENERIC CGL_HD void look_when_due() {
    if (Machine::cycles() - looked_cycles_ > Machine::cycles_per_beat / looks_per_beat) look();
  }
  // Longer and longer naps; starts from the beginning with every message.
  CGL_HD_GENERIC CGL_HD void back_off(std::uint32_t& passes) { back_off(passes, grid_.longest_nap_ns); }
  CGL_HD_GENERIC CGL_HD void back_off(std::uint32_t& passes, std::uint32_t longest_ns) {
    ++passes;
    if (passes <= grid_.spin_polls) return;
    const std::uint32_t doublings = (passes - grid_.spin_polls) / 8;
    std::uint32_t nap = doublings > 15 ? longest_ns : shortest_nap_ns << doublings;
    if (nap > longest_ns) nap = longest_ns;
    if (nap != 0) Machine::nap(nap);
  }

  CGL_HD_GENERIC CGL_HD void beat(std::uint64_t now) {
    const std::uint64_t cycles = Machine::cycles();
    looked_cycles_ = cycles;
    if (cycles - beat_cycles_ < Machine::cycles_per_beat) return;
    // Busy time is counted in cycles and published in nanoseconds.
    busy_ns_ += busy_cycles_ * (now - beat_ns_) / (cycles - beat_cycles_);
    busy_cycles_ = 0;
    beat_cycles_ = cycles;
    beat_ns_ = now;
    if (state_ != SeatState::vacant) count_now();
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void count_now() {
    ActorCounters& line = seat_->counters;
    Machine::store_relaxed(&line.received, received_);
    Machine::store_relaxed(&line.sent, sent_);
    Machine::store_relaxed(&line.emitted, emitted_);
    Machine::store_relaxed(&line.refused, refused_);
    Machine::store_relaxed(&line.busy_ns, busy_ns_);
    Machine::store_relaxed(&line.started, starts_);
    // An idle seat beats as well, so a beat that stands still is a stall whatever the actor was doing.
    // 0 while the seat waits for input: the host sees by it that nothing goes round (ResidentActor::do_idleness).
    Machine::store_relaxed(&line.in_body, busy_since_ != 0 ? 1 : 0);
    Machine::store_relaxed(&line.heartbeat, ++beats_);
  }

  CGL_HD_GENERIC template <bool on_device = false>
  CGL_HD void publish(const SeatRing& ring, SeatInput& input, std::uint64_t position) {
    if (input.published == position) return;
    input.published = position;
    if constexpr (on_device) {
      Machine::store_release_on_device(&ring.reader->position, position);
    } else {
      Machine::store_release(&ring.reader->position, position);
    }
  }
  // Stores what was delivered, not what lies staged: a successor finds the rest in the ring. Positions of writers are
  // published by the release of what the caller stores next.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void store_positions() {
    publish_taken();
    const SeatPlan& plan = shared().plan;
    if (plan.outbox.kind == RingKind::fast) Machine::store_relaxed(&plan.outbox.writer->position, output_.position());
    if (plan.replies.capacity != 0) Machine::store_relaxed(&plan.replies.reader->position, reply_position_);
    for (std::uint32_t i = 0; i < plan.edges_out_count; ++i) {
      Machine::store_relaxed(&plan.edges_out[i].writer->position, edges_out_[i].position());
    }
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void publish_taken() {
    const SeatPlan& plan = shared().plan;
    const std::uint32_t staged = in_count_ - in_at_;
    if (plan.inbox.kind != RingKind::none) {
      publish(plan.inbox, input_, input_.position() - (staged_from_edge_ < 0 ? staged : 0));
    }
    for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
      const bool holds_it = staged_from_edge_ == static_cast<std::int32_t>(i);
      publish<true>(plan.edges_in[i], edges_in_[i], edges_in_[i].position() - (holds_it ? staged : 0));
    }
  }

  // A run of slots is over, all of it handed out: the writer gets its credit, and the next run begins.
  CGL_HD_GENERIC template <bool on_device>
  CGL_HD CGL_OWN_FUNCTION void begin_run(const SeatRing& ring, SeatInput& input) {
    if (input.end - input.published >= credit_interval(ring)) publish<on_device>(ring, input, input.end);
    input.move_to(ring, input.end);
  }
  // One look into a fast ring. True: the message lies in the staging buffer.
  CGL_HD_GENERIC template <bool on_device>
  CGL_HD bool take_fast(const SeatRing& ring, SeatInput& input, bool with_look) {
    typename Machine::HostWords words = {};
    for (;;) {
      if (input.left == 0) begin_run<on_device>(ring, input);
      const std::int32_t ahead = Machine::template read_fast<on_device>(
          input.next, input.sequence, &shared().in[round_][0], with_look ? &seat_->host : nullptr, &words);
      if (with_look) apply_host_words(words);
      with_look = false;
      if (ahead > 0) {
        // The writer drops the oldest and has overtaken us.
        const std::uint64_t lost = lost_when_lapped(ahead, ring.capacity);
        input.move_to(ring, input.position() + lost);
        if constexpr (!on_device) overtaken_ += lost;
        continue;
      }
      if (ahead < 0 || gated()) return false;
      input.advance();
      return true;
    }
  }

  // Whether a ring that has just spoken may be waited for alone: what answers in microseconds is spoken to again at
  // once. With several inputs none may keep the others waiting.
  CGL_HD_GENERIC [[nodiscard]] CGL_HD Eager eager_about(const SeatRing& ring, Eager from) {
    const std::uint32_t edges = shared().plan.edges_in_count;
    const bool alone = (from == Eager::edge ? edges == 1 : edges == 0) && shared().plan.team == nullptr;
    const SeatCommand command = command_of(command_);
    eager_allowed_ = alone && grid_.eager_polls != 0 && ring.capacity >= smallest_eager_capacity &&
                     (command == SeatCommand::run || command == SeatCommand::restart) && !ending();
    return eager_allowed_ ? from : Eager::none;
  }
  // Nothing is delivered now: held, or ending.
  [[nodiscard]] CGL_HD bool gated() const {
    const SeatCommand command = command_of(command_);
    return ending() ||
           !(command == SeatCommand::run || command == SeatCommand::drain || command == SeatCommand::restart);
  }

  // Waits for input and posts the verdict. The messages lie in in[round_], or `count` may be copied from the bulk
  // inbox.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void wait_for_input(bool wait) {
    const SeatPlan& plan = shared().plan;
    std::uint32_t passes = 0;
    bool voted = false;
    bool looked_draining = false;
    std::uint64_t idle_since = 0;
    for (;;) {
      // An idle seat looks every time, so that a command is applied at once.
      const std::uint32_t interval = from_edge_ ? passes_per_look_at_edges : passes_per_look;
      const bool with_look = passes_since_look_++ % interval == 0 || passes > grid_.spin_polls;
      bool looked = false;
      // A stream that never pauses must not keep the host's orders waiting, nor the sign that we live.
      if (Machine::cycles() - looked_cycles_ > Machine::cycles_per_beat / looks_per_beat) {
        look();
        looked = true;
      }
      if (!gated()) {
        for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
          if (take_fast<true>(plan.edges_in[i], edges_in_[i], false)) {
            if (!claim(edges_in_[i], voted)) break;
            from_edge_ = true;
            staged_from_edge_ = static_cast<std::int32_t>(i);
            post_verdict(Verdict::message, 1, eager_about(plan.edges_in[i], Eager::edge), edges_in_[i].left);
            return;
          }
        }
        // An actor with messages from neighbours looks over the bus less often: that read takes longer than theirs.
        const bool look_at_inbox = !from_edge_ || with_look || command_of(command_) == SeatCommand::drain;
        if (plan.inbox.kind == RingKind::fast && look_at_inbox) {
          const bool looks = with_look && !looked;
          looked = looked || looks;
          if (take_fast<false>(plan.inbox, input_, looks) && claim(input_, voted)) {
            from_edge_ = false;
            staged_from_edge_ = -1;
            post_verdict(Verdict::message, 1, eager_about(plan.inbox, Eager::inbox), input_.left);
            return;
          }
        } else if (plan.inbox.kind == RingKind::bulk && look_at_inbox) {
          const std::uint64_t ready = Machine::load_acquire(&plan.inbox.writer->position) - input_.position();
          if (ready != 0 && !gated() && (!voted || withdraw_vote(voted))) {
            from_edge_ = false;
            staged_from_edge_ = -1;
            post_verdict(Verdict::batch, static_cast<std::uint32_t>(ready < seat_batch ? ready : seat_batch));
            return;
          }
        }
      }
      if (with_look && !looked) look();
      if (is_hold(command_of(command_)) && state_ == SeatState::running) enter(SeatState::held);
      if (ending() || (plan.team != nullptr && one_has_left())) {
        if (voted) withdraw_vote(voted);
        post_verdict(Verdict::end, 0);
        return;
      }
      if (command_of(command_) == SeatCommand::drain) {
        // Everything was published before the command: a whole pass after it that finds nothing is the end.
        if (looked_draining) {
          if (voted) withdraw_vote(voted);
          post_verdict(Verdict::end, 0);
          return;
        }
        looked_draining = true;
        continue;
      }
      if (!wait) {
        // What was handed out of a bulk inbox is published with the next batch, which a writer without room never
        // sends.
        if (plan.inbox.kind == RingKind::bulk) publish_taken();
        post_verdict(ending() ? Verdict::end : Verdict::nothing, 0);
        return;
      }
      // Writers that wait for room see all of it. Not at once: a release waits for everything that is under way over
      // the bus, and the next message may be there sooner. Small rings fill while one message is answered.
      if (passes == (plan.inbox.capacity < 16 ? 0u : idle_passes_before_credit)) publish_taken();
      back_off(passes);
      if (grid_.park_after_ns != 0) consider_parking(passes, idle_since, voted);
    }
  }

  // Event mode. Blocks that are idle for long vote; the block that completes the vote closes it, and all leave. A block
  // that finds work withdraws its vote first, unless it is closed: then the work waits for the next launch. The votes
  // are one word of device memory: the count, or `closed`.
  static constexpr std::uint64_t votes_closed = ~std::uint64_t{0};
  CGL_HD_GENERIC CGL_HD void consider_parking(std::uint32_t passes, std::uint64_t& idle_since, bool& voted) {
    if (passes % passes_per_look != 0) return;
    const std::uint64_t now = Machine::time_ns();
    if (idle_since == 0) idle_since = now;
    if (now - idle_since < grid_.park_after_ns && !voted) return;
    vote_to_park(voted);
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void vote_to_park(bool& voted) {
    for (;;) {
      const std::uint64_t votes = Machine::load_acquire(grid_.votes);
      if (votes == votes_closed) {
        parking_ = true;
        return;
      }
      if (voted) return;
      const std::uint64_t next = votes + 1 == grid_.seat_count ? votes_closed : votes + 1;
      if (Machine::compare_exchange(grid_.votes, votes, next)) voted = true;
    }
  }
  // A message was taken: it is ours unless the vote was closed meanwhile; then it stays in the ring.
  CGL_HD_GENERIC CGL_HD bool claim(SeatInput& input, bool& voted) {
    if (!voted || withdraw_vote(voted)) return true;
    input.step_back();
    return false;
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION bool withdraw_vote(bool& voted) {
    for (;;) {
      const std::uint64_t votes = Machine::load_acquire(grid_.votes);
      if (votes == votes_closed) {
        parking_ = true;
        return false;
      }
      if (Machine::compare_exchange(grid_.votes, votes, votes - 1)) {
        voted = false;
        return true;
      }
    }
  }

  // Waits until the reader of a fast ring whose writer stands at `position` has given credit, and posts it.
  CGL_HD_GENERIC CGL_HD void wait_for_credit(const SeatRing& ring, std::uint64_t position) {
    std::uint32_t passes = 0;
    for (;;) {
      const std::uint64_t credit = Machine::load_acquire(&ring.reader->position);
      if (position - credit < ring.capacity) {
        if (Machine::is_first()) shared().credit[round_] = credit;
        post_verdict(Verdict::room, 0);
        return;
      }
      if (ending() || Machine::load_acquire(&ring.reader->closed) != 0) {
        post_verdict(Verdict::end, 0);
        return;
      }
      look_around();
      back_off(passes);
    }
  }

  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION Verdict next_after_body(bool failed) {
    std::uint32_t passes = 0;
    for (;;) {
      look();
      if (leave_ != LeaveReason::none) return Verdict::leave;
      const SeatCommand command = command_of(command_);
      if (command == SeatCommand::vacate) return Verdict::vacate;
      const bool restarts = command == SeatCommand::restart || command == SeatCommand::restart_held;
      if (failed && restarts && command_ != restarted_by_) {  // each command restarts once
        restarted_by_ = command_;
        return Verdict::restart;
      }
      back_off(passes);
    }
  }

  // ---- all lanes again ----

  // taken: in[in_buffer_][in_at_] is a message. closed: the actor is to end.
  CGL_HD_GENERIC CGL_HD GetStatus stage_input(bool wait) {
    return in_at_ != in_count_ ? GetStatus::taken : refill(wait);
  }
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION GetStatus refill(bool wait) {
    has_message_ = false;
    working_on_ = 0;
    flush();
    if (Machine::in_mailbox()) {
      const std::uint64_t now = Machine::cycles();
      if (busy_since_ != 0) busy_cycles_ += now - busy_since_;
      busy_since_ = 0;
    }
    round_ ^= 1u;
    if (Machine::in_mailbox()) {
      // A small bulk inbox was handed out as a whole: its writer waits for room, and would do so until we nap.
      const SeatRing& inbox = shared().plan.inbox;
      if (inbox.kind == RingKind::bulk && 2 * (input_.end - input_.published) >= inbox.capacity) {
        publish(inbox, input_, input_.end);
      }
      wait_for_input(wait);
      const bool has_posted = Machine::is_first();  // and may read it without a barrier
      if (Machine::any(has_posted && shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::message))) {
        take_over();
      }
    }
    Machine::block_sync();
    const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
    // Without a message nothing is at the context's hand: the wait may have gone on to another run of the ring.
    eager_ = Eager::none;
    if (verdict == Verdict::end) return GetStatus::closed;
    if (verdict == Verdict::nothing) return GetStatus::empty;
    if (verdict == Verdict::message) eager_ = static_cast<Eager>(shared().eager[round_]);
    eager_left_ = shared().left[round_];
    in_buffer_ = round_;
    in_at_ = 0;
    in_count_ = shared().count[round_];
    if (verdict == Verdict::batch) {
      const SeatRing& inbox = shared().plan.inbox;
      Machine::copy_in(shared().in[in_buffer_], static_cast<const Message*>(inbox.slots), staged_position(), in_count_,
                       inbox.capacity);
      Machine::block_sync();
    }
    if (Machine::in_mailbox()) {
      if (verdict == Verdict::batch) {
        // The slots of the batch before this one were handed out; those of this one are copied but still counted as
        // waiting, so that nothing is lost when the actor ends in between.
        const SeatRing& inbox = shared().plan.inbox;
        if (input_.end - input_.published >= credit_interval(inbox)) publish(inbox, input_, input_.end);
        input_.end += in_count_;
      }
      busy_since_ = Machine::cycles();
    }
    return GetStatus::taken;
  }
  // The inbox position is the mailbox's; the others learn it through shared memory.
  CGL_HD_GENERIC CGL_HD std::uint64_t staged_position() {
    if (Machine::is_first()) shared().batch_position = input_.position();
    Machine::block_sync();
    return shared().batch_position;
  }

  // What bodies sent to a bulk outbox (or by answer_batch) goes out, one release a piece.
  CGL_HD_GENERIC CGL_HD CGL_OWN_FUNCTION void flush() {
    if (out_count_ == 0) return;
    const SeatRing& outbox = shared().plan.outbox;
    if (outbox.kind != RingKind::bulk) {
      flush_fast();
      return;
    }
    std::uint32_t done = 0;
    while (done < out_count_) {
      round_ ^= 1u;
      if (Machine::in_mailbox()) wait_for_room(out_count_ - done);
      Machine::block_sync();  // also: what the body wrote to out[] is there
      const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
      const std::uint32_t count = shared().count[round_];
      if (verdict == Verdict::end) {
        refused_ += out_count_ - done;
        sent_ -= out_count_ - done;
        break;
      }
      Machine::copy_out(static_cast<Message*>(outbox.slots), shared().batch_position, shared().out + done, count,
                        outbox.capacity);
      Machine::block_sync();
      if (Machine::in_mailbox()) {
        Machine::store_release(&outbox.writer->position, output_.end + count);
      }
      output_.end += count;
      done += count;
    }
    out_count_ = 0;
  }
  CGL_HD_GENERIC CGL_HD void wait_for_room(std::uint32_t wanted) {
    const SeatRing& outbox = shared().plan.outbox;
    std::uint32_t passes = 0;
    for (;;) {
      std::uint64_t room = outbox.capacity - (output_.end - output_.credit);
      if (room < wanted) {
        output_.credit = Machine::load_acquire(&outbox.reader->position);
        room = outbox.capacity - (output_.end - output_.credit);
      }
      if (room != 0) {
        if (Machine::is_first()) shared().batch_position = output_.end;
        post_verdict(Verdict::room, static_cast<std::uint32_t>(room < wanted ? room : wanted));
        return;
      }
      if (ending() || Machine::load_acquire(&outbox.reader->closed) != 0) {
        post_verdict(Verdict::end, 0);
        return;
      }
      look_around();
      back_off(passes);
    }
  }
  // answer_batch towards a fast ring: one message after the other.
  CGL_HD_GENERIC CGL_HD void flush_fast() {
    Machine::block_sync();
    const std::uint32_t count = out_count_;
    out_count_ = 0;
    if (Machine::in_mailbox()) {
      // As in hand_over(), once for all: the barrier above has shown us what the lanes wrote to their buffers.
      bool names_buffers = false;
      for (std::uint32_t i = 0; i < count; ++i) names_buffers = names_buffers || shared().out[i].has(mark_handle);
      if (names_buffers) Machine::fence();
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!put<false>(shared().plan.outbox, output_, shared().out[i])) --sent_;
    }
    Machine::block_sync();
  }
  const GridPlan grid_;
  Seat* const seat_;
  SeatShared* const shared_;
  const std::uint32_t block_bytes_;

  // The same in all lanes.
  std::uint32_t round_ = 0;
  std::uint32_t in_buffer_ = 0;
  std::uint32_t in_at_ = 0;
  std::uint32_t in_count_ = 0;
  std::uint32_t out_count_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t emitted_ = 0;
  std::uint64_t working_on_ = 0;
  Eager eager_ = Eager::none;             // other than none: nothing is staged and nothing waits to be sent off
  std::uint32_t eager_left_ = 0;          // messages that the context may take of that ring
  std::uint32_t port_at_hand_ = no_port;  // with one reader; the one that was written last
  bool has_message_ = false;
  bool has_reply_ = false;             // a reply buffer is in hand
  ReplySlot reply_;                    // it
  std::uint64_t team_start_ = 0;       // starts of the body, of several seats
  std::uint64_t broadcast_count_ = 0;  // calls whose outcome the first seat has broadcast, since that start
  std::uint64_t barriers_ = 0;         // calls of sync_seats, likewise
  SeatOutput output_;
  SeatOutput edges_out_[largest_edge_count];

  // The mailbox's.
  std::uint64_t reply_position_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t overtaken_ = 0;
  std::uint64_t command_ = 0;
  std::uint64_t restarted_by_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t host_beat_ = 0;
  std::uint64_t host_seen_ns_ = 0;
  std::uint64_t started_ns_ = 0;
  std::uint64_t drain_from_ = 0;
  std::uint64_t beats_ = 0;
  std::uint64_t beat_cycles_ = 0;
  std::uint64_t looked_cycles_ = 0;
  std::uint64_t beat_ns_ = 0;
  std::uint64_t busy_cycles_ = 0;
  std::uint64_t busy_since_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t starts_ = 0;
  std::uint32_t passes_since_look_ = 0;
  std::int32_t staged_from_edge_ = -1;
  bool from_edge_ = false;
  bool eager_allowed_ = false;
  bool parking_ = false;
  SeatState state_ = SeatState::none;
  LeaveReason leave_ = LeaveReason::none;
  SeatInput input_;
  SeatInput edges_in_[largest_edge_count];
};

}  // namespace cingulum::ring
