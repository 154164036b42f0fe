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
//
// Here are the state of a seat and what is short. The rest is defined by subject, and ring/resident/seat_loop.hpp
// brings all of it together: seat_calls.hpp, seat_input.hpp, seat_output.hpp, seat_team.hpp, seat_host.hpp,
// seat_life.hpp.
#pragma once

#include "ring/resident/seat_rings.hpp"
#include "ring/resident/seat_shared.hpp"

// A function of its own on the device: one copy serves all bodies of a program, which would each carry theirs else.
#if defined(__CUDACC__)
#define CGL_OWN_FUNCTION __noinline__
#else
#define CGL_OWN_FUNCTION
#endif

namespace cingulum::ring {

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
  CGL_HD CGL_OWN_FUNCTION bool peek(Message& message);
  // The reply buffer in hand, or the next that is free; null: none, or told to stop.
  CGL_HD CGL_OWN_FUNCTION ReplySpace reply_buffer();
  // All lanes of all seats of the actor; false: one has left the body, or the actor is to end.
  CGL_HD CGL_OWN_FUNCTION bool sync_seats();
  // Each waiting message (at most seat_batch), one per lane, is changed by `answer(Message&)` and sent. The way of
  // streams: no barrier per message. False as in receive.
  template <class Answer>
  CGL_HD bool answer_batch(Answer&& answer);
  // Sends to the requester, to the actors wired to port 0, or to the host's output, in this order.
  CGL_HD CGL_OWN_FUNCTION PutStatus send(const Message& message);
  // Sends to every actor wired to `port`.
  CGL_HD CGL_OWN_FUNCTION PutStatus emit(std::uint32_t port, const Message& message);

  // For bodies that work long between two messages: true when they are to end without draining.
  CGL_HD CGL_OWN_FUNCTION bool should_stop();
  // False: nobody waits any more for answers to this request. Of several seats the first looks for all: one that saw
  // it a moment later would go on alone.
  CGL_HD CGL_OWN_FUNCTION bool is_wanted(const Message& request);
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
  CGL_HD CGL_OWN_FUNCTION void* buffer(BufferHandle handle);

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
  CGL_HD Verdict wait_for_actor();
  // occupy: its plan lies in shared memory.
  CGL_HD CGL_OWN_FUNCTION Verdict wait_for_plan();
  // The body returned `code`. Answers what is next: restart (run it again), vacate (the seat is free again) or leave.
  CGL_HD CGL_OWN_FUNCTION Verdict body_returned(int code);
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
  template <bool on_device>
  CGL_HD bool put(const SeatRing& ring, SeatOutput& output, const Message& message);
  CGL_HD CGL_OWN_FUNCTION bool find_room(const SeatRing& ring, SeatOutput& output);
  CGL_HD_GENERIC CGL_HD void hand_out(Message& message, const Message& from) {
    Machine::load_message(message, from);
    ++received_;
    has_message_ = true;
    working_on_ = message.has(mark_request) ? message.header.correlation : 0;
  }

  // Once per actor on this seat (and again after parking): positions go on where the rings' lines say.
  CGL_HD CGL_OWN_FUNCTION void seat_actor();
  CGL_HD void find_input(const SeatRing& ring, SeatInput& input);
  CGL_HD void find_output(const SeatRing& ring, std::uint32_t index);

  // A message of the inbox or, in another seat than the first, the one that the first was given.
  CGL_HD GetStatus take(Message& message, bool wait);
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
  CGL_HD void start_team();
  // By the others: restart when the body is to run, vacate or leave.
  CGL_HD CGL_OWN_FUNCTION Verdict wait_for_start();
  // Called on the first seat: what its call answered is the others' answer, too.
  CGL_HD CGL_OWN_FUNCTION void broadcast(GetStatus status, const Message& message);
  // Called on the other seats: waits for the first seat's broadcast and answers what it holds.
  CGL_HD CGL_OWN_FUNCTION GetStatus receive_broadcast(Message& message);
  // The body has returned here. By the first seat: waits until it has everywhere, and answers for all.
  CGL_HD CGL_OWN_FUNCTION int leave_team(int code);

  // ---- the mailbox: lanes of the first warp only, from here to the end of the section ----

  [[nodiscard]] CGL_HD static std::uint32_t mailbox_lanes() { return Machine::lanes() < 32 ? Machine::lanes() : 32; }
  // Whether this word of all of the actor's seats, from the first or from the second on, is `value` at least.
  CGL_HD bool all_reached(std::uint64_t TeamLine::*word, std::uint64_t value, std::uint32_t from = 0);
  CGL_HD bool one_has_left();
  CGL_HD CGL_OWN_FUNCTION void wait_for_all_seats();
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint64_t address_of(BufferHandle handle) const {
    if (handle.slot >= grid_.buffer_count || (handle.generation & 1u) == 0 || handle.table != grid_.buffer_table) {
      return 0;
    }
    const BufferEntry* const entry = grid_.buffers + handle.slot;
    return Machine::load_word(&entry->generation) == handle.generation ? Machine::load_word(&entry->address) : 0;
  }
  CGL_HD CGL_OWN_FUNCTION void wait_for_broadcast();

  // For peek: true when the next message, still in its ring, was copied to the staging buffer.
  CGL_HD CGL_OWN_FUNCTION bool look_ahead();
  CGL_HD_GENERIC CGL_HD void acquire_peeked(const SeatInput& input) {
    if (shared().in[round_][0].has(mark_handle)) Machine::acquire_slot(input.next);
  }
  CGL_HD CGL_OWN_FUNCTION void wait_for_reply_buffer();

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

  CGL_HD CGL_OWN_FUNCTION void apply_host_words(const typename Machine::HostWords& words);
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
  CGL_HD void back_off(std::uint32_t& passes, std::uint32_t longest_ns);

  CGL_HD void beat(std::uint64_t now);
  CGL_HD CGL_OWN_FUNCTION void count_now();

  template <bool on_device = false>
  CGL_HD void publish(const SeatRing& ring, SeatInput& input, std::uint64_t position);
  // Stores what was delivered, not what lies staged: a successor finds the rest in the ring. Positions of writers are
  // published by the release of what the caller stores next.
  CGL_HD CGL_OWN_FUNCTION void store_positions();
  CGL_HD CGL_OWN_FUNCTION void publish_taken();

  // A run of slots is over, all of it handed out: the writer gets its credit, and the next run begins.
  template <bool on_device>
  CGL_HD CGL_OWN_FUNCTION void begin_run(const SeatRing& ring, SeatInput& input);
  // One look into a fast ring. True: the message lies in the staging buffer.
  template <bool on_device>
  CGL_HD bool take_fast(const SeatRing& ring, SeatInput& input, bool with_look);

  // Whether a ring that has just spoken may be waited for alone: what answers in microseconds is spoken to again at
  // once. With several inputs none may keep the others waiting.
  [[nodiscard]] CGL_HD Eager eager_about(const SeatRing& ring, Eager from);
  // Nothing is delivered now: held, or ending.
  [[nodiscard]] CGL_HD bool gated() const {
    const SeatCommand command = command_of(command_);
    return ending() ||
           !(command == SeatCommand::run || command == SeatCommand::drain || command == SeatCommand::restart);
  }

  // Waits for input and posts the verdict. The messages lie in in[round_], or `count` may be copied from the bulk
  // inbox.
  CGL_HD CGL_OWN_FUNCTION void wait_for_input(bool wait);

  // Event mode. Blocks that are idle for long vote; the block that completes the vote closes it, and all leave. A block
  // that finds work withdraws its vote first, unless it is closed: then the work waits for the next launch. The votes
  // are one word of device memory: the count, or `closed`.
  static constexpr std::uint64_t votes_closed = ~std::uint64_t{0};
  CGL_HD void consider_parking(std::uint32_t passes, std::uint64_t& idle_since, bool& voted);
  CGL_HD CGL_OWN_FUNCTION void vote_to_park(bool& voted);
  // A message was taken: it is ours unless the vote was closed meanwhile; then it stays in the ring.
  CGL_HD_GENERIC CGL_HD bool claim(SeatInput& input, bool& voted) {
    if (!voted || withdraw_vote(voted)) return true;
    input.step_back();
    return false;
  }
  CGL_HD CGL_OWN_FUNCTION bool withdraw_vote(bool& voted);

  // Waits until the reader of a fast ring whose writer stands at `position` has given credit, and posts it.
  CGL_HD void wait_for_credit(const SeatRing& ring, std::uint64_t position);

  CGL_HD CGL_OWN_FUNCTION Verdict next_after_body(bool failed);

  // ---- all lanes again ----

  // taken: in[in_buffer_][in_at_] is a message. closed: the actor is to end.
  CGL_HD_GENERIC CGL_HD GetStatus stage_input(bool wait) {
    return in_at_ != in_count_ ? GetStatus::taken : refill(wait);
  }
  CGL_HD CGL_OWN_FUNCTION GetStatus refill(bool wait);
  // The inbox position is the mailbox's; the others learn it through shared memory.
  CGL_HD_GENERIC CGL_HD std::uint64_t staged_position() {
    if (Machine::is_first()) shared().batch_position = input_.position();
    Machine::block_sync();
    return shared().batch_position;
  }

  // What bodies sent to a bulk outbox (or by answer_batch) goes out, one release a piece.
  CGL_HD CGL_OWN_FUNCTION void flush();
  CGL_HD void wait_for_room(std::uint32_t wanted);
  // answer_batch towards a fast ring: one message after the other.
  CGL_HD void flush_fast();

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
