// A grid of seats that stays on a device, seen from the host: one launch whose blocks wait for actors, the memory they
// share with us, and a service thread that beats for the grid, sees when bodies fail or end, carries answers to those
// who wait for them, and launches again in event mode. Actors (ring/resident/resident_actor.hpp) take a seat when
// launched and give it back when terminated; nothing is allocated, freed or loaded meanwhile.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "base/result.hpp"
#include "ring/actor/buffer_table.hpp"
#include "ring/actor/reply_ring.hpp"
#include "ring/actor/runtime.hpp"
#include "ring/resident/look_again.hpp"
#include "ring/resident/resident_backend.hpp"

namespace cingulum::ring {

class ResidentActor;

struct GridOptions {
  enum class Mode { automatic, resident, event };

  std::uint32_t seats = 8;             // actors at a time
  std::uint32_t lanes = 128;           // threads of each actor's block, a multiple of 32, at most 256
  std::uint32_t most_processors = 0;   // SMs that may be taken; 0: any
  std::uint32_t ring_capacity = 4096;  // the largest inbox and outbox of an actor; a power of two
  std::uint32_t edges = 32;            // rings between actors
  std::uint32_t edge_capacity = 256;
  std::uint32_t buffers = 1024;                           // handles in use at a time
  std::uint64_t scratch_bytes = 1 << 20;                  // mapped memory for payloads
  std::uint32_t reply_buffers = 0;                        // of each seat, a power of two; 0: none
  std::uint64_t reply_buffer_bytes = 0;                   // of each of them, in mapped memory
  Nanoseconds lease = std::chrono::seconds(10);           // a host silent for longer is taken for dead: the grid ends
  Nanoseconds time_limit{0};                              // of each launch, whatever happens; 0: none
  Mode mode = Mode::automatic;                            // automatic: event mode where the driver ends long kernels
  Nanoseconds park_after = std::chrono::milliseconds(2);  // event mode: idle for so long, the grid ends
  std::uint32_t eager_polls = 64;       // looks at the ring that spoke last before anything else is looked at; 0: none
  std::uint32_t spin_polls = 64;        // looks before an idle block begins to nap
  std::uint32_t longest_nap_ns = 1000;  // 20000 saves power
};

[[nodiscard]] Status check_options(const GridOptions& options);

class ResidentGrid : public std::enable_shared_from_this<ResidentGrid> {
 public:
  // Allocates and starts. The grid must hold its seats all at once.
  [[nodiscard]] static Result<std::shared_ptr<ResidentGrid>> open(std::unique_ptr<ResidentBackend> backend,
                                                                  const GridOptions& options);
  ~ResidentGrid();
  ResidentGrid(const ResidentGrid&) = delete;
  ResidentGrid& operator=(const ResidentGrid&) = delete;

  // A new actor of `body`, one of the program's, launched and registered with the runtime. `arguments`: the body's own
  // members. `kind`: fast for answers in microseconds, bulk for streams.
  [[nodiscard]] Result<ActorHandle> launch(Runtime& runtime, std::string name, std::string_view body,
                                           std::span<const std::byte> arguments, RingKind kind,
                                           const ActorOptions& options = {});
  template <class Body>
  [[nodiscard]] Result<ActorHandle> launch(Runtime& runtime, std::string name, std::string_view body_name,
                                           const Body& body, RingKind kind = RingKind::fast,
                                           const ActorOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= body_capacity);
    CGL_TRY(check_body(name, body_name, {typeid(Body).name(), sizeof(Body)}));
    return launch(runtime, std::move(name), body_name, std::as_bytes(std::span(&body, 1)), kind, options);
  }

  // Tells every seat to leave and waits for the end of the kernel. Actors that still sit are stopped; terminate them
  // before. A second call does nothing.
  [[nodiscard]] Status close(Nanoseconds timeout = std::chrono::seconds(5));

  // Handles that bodies of this grid can look up.
  [[nodiscard]] BufferTable& buffers() { return *buffers_; }
  // A piece of GridOptions::scratch_bytes: memory that both sides see, for payloads. It lasts as long as the grid.
  [[nodiscard]] Result<MappedMemory> scratch(std::uint64_t bytes);
  [[nodiscard]] const GridOptions& options() const { return options_; }
  [[nodiscard]] ResidentBackend& backend() { return *backend_; }
  [[nodiscard]] bool in_event_mode() const { return event_mode_; }
  [[nodiscard]] std::uint64_t launches() const { return launches_; }
  // Why the device can no longer be used by this process, when that is so. Not the failure of a body: every actor of
  // the grid is gone, and only a new process can use the device again (ring/child).
  [[nodiscard]] std::optional<Error> lost() const;
  // Whether the kernel has ended, for whatever reason.
  [[nodiscard]] bool has_ended();
  [[nodiscard]] LeaveReason leave_reason() const;

  // Tests: the host falls silent though it lives.
  void stop_beat() { beating_ = false; }

 private:
  friend class ResidentActor;
  struct EdgeMemory {
    SeatRing ring;  // as the grid sees it
    std::uint32_t ends = 0;
    // Positions for which the grid was launched again.
    std::uint64_t woken_written = 0;
    std::uint64_t woken_read = 0;
  };

  ResidentGrid(std::unique_ptr<ResidentBackend> backend, const GridOptions& options);
  // ErrorKind::invalid_argument when the program knows another type by this name.
  [[nodiscard]] Status check_body(std::string_view name, std::string_view body, const BodyType& given) const;
  [[nodiscard]] Status allocate();
  [[nodiscard]] Status allocate_replies();
  [[nodiscard]] Status start_kernel();
  // Whether messages lie in a wire of a parked grid, and the grid was not launched again for them yet. Messages to an
  // actor that is deactivated stay there; the grid is not launched twice for the same ones.
  [[nodiscard]] bool wires_hold_work();
  // One round of the service thread; answers how long the thread may sleep.
  Nanoseconds serve();
  void serve_actors();

  // Called by actors: the seat's memory from the host's side, and rings of `kind` and `capacity`, emptied, in the
  // memory that the seat has for them.
  [[nodiscard]] Result<std::vector<std::uint32_t>> take_seats(ResidentActor& actor, std::uint32_t count);
  void give_seat(std::uint32_t seat);
  // Device memory by which so many seats of one actor speak to each other, cleared; as the grid sees it.
  [[nodiscard]] Result<Team*> take_team(std::uint32_t seats);
  void give_team(Team* team);
  [[nodiscard]] SeatReplies replies_of(std::uint32_t seat) const;
  [[nodiscard]] Seat& seat(std::uint32_t index) const { return seats_[index]; }
  struct SeatRings {
    SeatRing inbox;  // as the grid sees them
    SeatRing outbox;
    std::byte* inbox_slots = nullptr;  // as the host sees them
    std::byte* outbox_slots = nullptr;
  };
  [[nodiscard]] SeatRings make_rings(std::uint32_t seat, RingKind kind, std::uint32_t inbox_capacity,
                                     std::uint32_t outbox_capacity);
  [[nodiscard]] std::byte* state_of(std::uint32_t seat) const {
    return states_ + static_cast<std::uint64_t>(seat) * state_capacity;
  }
  [[nodiscard]] Result<std::uint32_t> take_edge();
  // Answers how many messages were left in the edge when this was its second end.
  std::uint64_t release_edge_end(std::uint32_t edge);
  [[nodiscard]] const SeatRing& edge_ring(std::uint32_t edge) const { return edges_[edge].ring; }
  [[nodiscard]] Status close_edge_reader(std::uint32_t edge);

  // Gives a command and waits until the seat has seen it and `arrived` holds for its state. False at the deadline.
  template <class Arrived>
  [[nodiscard]] Result<bool> command(std::uint32_t seat, SeatCommand what, std::uint64_t deadline_ns,
                                     Arrived&& arrived) {
    CGL_TRY_ASSIGN(const std::uint64_t word, give_command(seat, what));
    LookAgain again(WaitStrategy{});
    for (;;) {
      CGL_TRY_ASSIGN(const std::optional<SeatState> state, answer_to(seat, word));
      if (state && arrived(*state)) return true;
      if (again.spins_over() && steady_now_ns() >= deadline_ns) return false;
      again.pause();
    }
  }
  [[nodiscard]] Result<std::uint64_t> give_command(std::uint32_t seat, SeatCommand what);
  // The seat's state once it has acknowledged the command.
  [[nodiscard]] Result<std::optional<SeatState>> answer_to(std::uint32_t seat, std::uint64_t word);
  // Event mode: there is something to do.
  void wake();
  // Requests that are not answered yet, by whichever actor of the grid.
  void expect_reply() { open_requests_.fetch_add(1, std::memory_order_relaxed); }
  // Makes the service thread poll without sleeping for a while: a thread waits for an answer and does not poll itself.
  void call_service() {
    // A call that the service thread has not seen yet will be seen: waking it again would cost a system call.
    if (!service_call_->was_made.exchange(true, std::memory_order_acq_rel)) service_call_->bell.ring();
  }
  void reply_came() { open_requests_.fetch_sub(1, std::memory_order_relaxed); }
  // Nobody waits for this request any more. The bodies can see it, and its answers are read still.
  void abandon_request(std::uint64_t correlation);
  // Called with the last answer to a request that nobody waited for.
  void late_reply_came(std::uint64_t correlation);
  [[nodiscard]] bool expects_replies() const { return open_requests_.load(std::memory_order_relaxed) > 0; }
  void lose(const Error& error);
  void tell_actors(const Error& why);  // the grid is gone

  std::unique_ptr<ResidentBackend> backend_;
  const GridOptions options_;
  bool event_mode_ = false;

  Seat* seats_ = nullptr;  // mapped, as the host sees it
  MappedMemory seat_memory_;
  MappedMemory ring_memory_;
  MappedMemory buffer_memory_;
  MappedMemory scratch_memory_;
  MappedMemory abandoned_memory_;  // abandoned_request_count words
  MappedMemory reply_slot_memory_;
  MappedMemory reply_memory_;
  std::byte* states_ = nullptr;  // of the device
  std::uint64_t* votes_ = nullptr;
  std::byte* teams_ = nullptr;
  std::unique_ptr<BufferTable> buffers_;
  std::vector<std::shared_ptr<ReplyRing>> reply_rings_;  // by seat, whoever sits there

  std::mutex launch_mutex_;
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> ended_{false};  // in resident mode: for good
  std::atomic<bool> beating_{true};
  std::atomic<bool> is_lost_{false};
  std::atomic<std::int64_t> open_requests_{0};
  std::atomic<std::uint64_t> last_work_ns_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Error> lost_;
  std::vector<std::weak_ptr<ResidentActor>> sitting_;
  std::vector<bool> taken_;
  std::vector<EdgeMemory> edges_;
  std::vector<std::uint64_t> command_numbers_;
  struct TeamMemory {
    std::uint64_t begin;  // in teams_
    std::uint64_t end;
  };
  std::vector<TeamMemory> taken_teams_;
  std::deque<std::uint64_t> abandoned_;  // requests whose answers are still to come, as far as we know
  std::uint64_t scratch_used_ = 0;

  std::uint64_t last_beat_ns_ = 0;  // the service thread's own
  std::uint64_t last_query_ns_ = 0;
  std::uint64_t wires_seen_of_launch_ = 0;
  std::uint64_t beats_ = 0;
  std::atomic<bool> service_stop_{false};
  // Held by the service thread also while it holds no grid.
  struct ServiceCall {
    Doorbell bell{WaitStrategy{WaitMode::spin_then_park, 1}};
    std::atomic<bool> was_made{false};
  };
  const std::shared_ptr<ServiceCall> service_call_ = std::make_shared<ServiceCall>();
  std::thread service_;
};

}  // namespace cingulum::ring
