// An actor on a seat of a resident grid, as the runtime holds it: the host's ends of its rings, the commands of its
// life cycle, what comes out of it. ResidentGrid::launch makes it; ring/actor/actor.hpp says what it answers to.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/resident/remote_actor.hpp"
#include "ring/resident/resident_grid.hpp"

namespace cingulum::ring {

class ResidentActor final : public RemoteActor {
 public:
  ResidentActor(std::string name, std::uint16_t number, std::shared_ptr<ResidentGrid> grid, std::uint32_t body,
                std::span<const std::byte> arguments, RingKind kind, const ActorOptions& options,
                RuntimeServices services);
  ~ResidentActor() override;

  PutStatus put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                const std::atomic<bool>* stop) override;
  bool send_at_once(const Message& message) override;
  void request_abandoned(std::uint64_t correlation) override { grid_->abandon_request(correlation); }
  void queue_unread_outputs() override { save_outputs(); }
  [[nodiscard]] const std::shared_ptr<ResidentGrid>& grid() const { return grid_; }

 private:
  friend class ResidentGrid;

  Status do_launch() override;
  Status do_activate() override;
  void do_gate(bool open, Nanoseconds patience) override;
  Result<TerminationReport> do_terminate(const Termination& how) override;
  GetStatus do_receive(Message& message, std::uint64_t deadline_ns) override;
  std::uint32_t do_send_batch(std::span<const Message> messages) override;
  std::uint32_t do_receive_batch(std::span<Message> messages) override;
  Status do_wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) override;
  std::vector<std::shared_ptr<MessageSink>> do_targets() const override;
  Idleness do_idleness() const override;
  void do_telemetry(ActorTelemetry& telemetry) const override;
  ActorCounters do_counters() const override;
  Status do_restart() override;
  void do_give_up() override;

  void spin_for_answer(ReplyTable& replies, std::uint64_t correlation, std::uint64_t deadline_ns) override;
  void see_to_answers() override;
  // Carries answers to the threads that wait for them and other outputs to the queue. True: something came.
  bool carry_answers();
  // Called with output_mutex_ held. `own`: the request of the calling thread.
  bool carry_while_locked(std::uint64_t own);

  // Called by the grid's service thread: sees what the seat says and carries answers. True: something came.
  bool serve();
  void grid_is_gone(const Error& why);
  // Event mode: messages in the inbox of a seat that is parked.
  [[nodiscard]] bool has_work_waiting();

  PutStatus try_put(const Message& message);
  // Where the next message of the inbox goes; input_mutex_ held.
  [[nodiscard]] std::uint64_t written_position() const {
    return kind_ == RingKind::fast ? fast_in_.position() : bulk_in_.position();
  }
  // The same, and wakes the grid's service thread.
  PutStatus put_at_once(const Message& message);
  void write_plan();
  [[nodiscard]] Result<bool> command_restart(SeatCommand how);
  // Waits until the seat has seen the command to begin again: its state is that of the failure before, and the next
  // command would take the place of this one.
  void wait_for_restart(std::uint64_t deadline_ns) const;
  // Reports the failure of a seat that is failed: it is kept and counted, once.
  void report_failure();
  // The body ends, restarted as often as it fails while it drains. False: it did not.
  [[nodiscard]] Result<bool> end_body(const Termination& how, std::uint64_t& drained);
  // Called with output_mutex_ held: the next message for receive; answers to requests go to the threads that wait.
  bool take_output(Message& message);
  bool take_from_ring(Message& message);
  void answer(const Message& reply, std::uint64_t own = 0);
  // False: its stream has no room.
  bool settle(const Message& reply, std::uint64_t own);
  // Answers that found no room in their streams go on, as far as there is some now.
  void give_held();
  // Whether more may be taken from the ring: what nobody reads stays there, so that the actor feels it.
  [[nodiscard]] bool may_hold_more() const { return held_.size() < options().outbox_capacity || leaving_; }
  // Everything that is in the outbox goes to the queue, however long it gets.
  void save_outputs();
  void close_inbox();
  // The body has ended: outputs saved, seat and edges given back. Answers how many messages were never taken: from the
  // inbox, and from edges that this actor is the last to leave.
  std::uint64_t leave_seat();
  [[nodiscard]] SeatState seat_state() const;
  // For an actor with several seats: gives the command to run to all but the first.
  [[nodiscard]] Status run_others();
  void stop_others();
  // False: one of them does not answer.
  [[nodiscard]] bool vacate_others();
  [[nodiscard]] ActorCounters counters_of_seat() const;  // seat_mutex_ held

  const std::shared_ptr<ResidentGrid> grid_;
  const std::uint32_t body_;

  std::mutex life_mutex_;  // one change of the seat's life at a time: users and the service thread both make them
  mutable std::mutex seat_mutex_;  // guards the seat against being given back while it is looked at
  std::optional<std::uint32_t> seat_;
  std::vector<std::uint32_t> other_seats_;
  Team* team_ = nullptr;                     // as the grid sees it; null: one seat
  std::vector<std::uint64_t> beats_before_;  // of all seats, the first before the others, when they were activated
  std::atomic<bool> activated_{false};
  std::atomic<std::uint64_t> failures_seen_{0};       // of SeatDeviceLine::failures
  std::atomic<std::uint64_t> failures_reported_{0};   // of those: body_failed has returned
  std::uint64_t restarted_from_ = ~std::uint64_t{0};  // likewise: at the last command to restart; life_mutex_ held
  std::atomic<bool> end_expected_{false};
  std::atomic<bool> gone_{false};

  mutable std::mutex input_mutex_;  // many threads send, the ring has one writer
  bool inbox_closed_ = true;
  FastWriter<Message> fast_in_;
  BulkWriter<Message> bulk_in_;
  std::atomic<std::uint64_t> overtaken_{0};

  std::atomic<std::uint32_t> spinning_requesters_{0};  // threads inside spin_for_answer
  // The last answer was carried by another thread, as it is when another actor answers what this one was asked.
  std::atomic<bool> others_answer_{false};
  // output_mutex_ held: the ring has one reader.
  bool outbox_open_ = false;
  FastReader<Message> fast_out_;
  BulkReader<Message> bulk_out_;
  std::uint64_t taken_outputs_ = 0;

  ActorCounters last_counters_;  // of a seat that was given back

  struct Edge {
    std::uint32_t index;
    std::uint32_t port;
  };
  mutable std::mutex receivers_mutex_;
  std::vector<std::weak_ptr<MessageSink>> receivers_;  // guarded by it
  std::vector<Edge> edges_out_;
  std::vector<std::uint32_t> edges_in_;
};

}  // namespace cingulum::ring
