// An actor that runs in a child process, as the runtime of the program holds it. ChildHost::launch makes it.
#pragma once

#include <deque>

#include "ring/child/child_host.hpp"
#include "ring/resident/remote_actor.hpp"

namespace cingulum::ring {

class ChildActor final : public RemoteActor {
 public:
  ChildActor(std::string name, std::uint16_t number, std::shared_ptr<ChildHost> host, std::string body,
             std::span<const std::byte> arguments, RingKind kind, const ActorOptions& options,
             RuntimeServices services);
  ~ChildActor() override;

  PutStatus put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                const std::atomic<bool>* stop) override;
  void see_to_answers() override;
  void request_abandoned(std::uint64_t correlation) override;
  void queue_unread_outputs() override;

 private:
  friend class ChildHost;

  Status do_launch() override;
  Status do_activate() override;
  void do_gate(bool open, Nanoseconds patience) override;
  Result<TerminationReport> do_terminate(const Termination& how) override;
  GetStatus do_receive(Message& message, std::uint64_t deadline_ns) override;
  Status do_wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) override;
  std::vector<std::shared_ptr<MessageSink>> do_targets() const override { return {}; }
  bool restarts_slowly() const override { return true; }
  void do_telemetry(ActorTelemetry& telemetry) const override;
  ActorCounters do_counters() const override;
  Status do_restart() override;
  void do_give_up() override;
  void do_supervise(std::uint64_t now_ns) override;

  // Does not wait; `full` also while the actor is started again.
  PutStatus try_put(const Message& message);
  // No message goes to this launch any more. Answers how many it had taken and never handled.
  std::uint64_t stop_taking(std::uint64_t received);
  // Waits until the child reports that the actor has ended.
  [[nodiscard]] Result<ChildEnded> wait_for_end(std::uint64_t deadline_ns);

  // Called by the host's carrier thread with what came from the child.
  void take(const ChildSlot& slot);
  // `received`: what the actors of the child had taken, by their places.
  void child_ended(const std::string& how, std::span<const std::uint64_t> received);

  [[nodiscard]] Status launch_in_child();
  [[nodiscard]] ChildRequest request(ChildCommand command) const;
  [[nodiscard]] Status ask(ChildCommand command, Nanoseconds timeout = Nanoseconds::zero());
  [[nodiscard]] std::uint64_t received_in_child() const;

  const std::shared_ptr<ChildHost> host_;
  const std::string body_;
  std::atomic<std::int32_t> index_in_child_{-1};
  std::atomic<bool> closed_{true};
  std::atomic<bool> ended_{false};
  // Held while a message is put: it goes to the launch that counts it, or waits for the next.
  mutable std::mutex input_mutex_;
  bool takes_messages_ = false;  // the child has the actor; otherwise senders wait, as they wait for room
  std::atomic<std::uint32_t> generation_{0};
  std::uint64_t accepted_ = 0;  // since this launch in a child

  // output_mutex_ held: answers that found no room in their streams go on, and the child learns what it may send.
  void give_held();
  void publish_credit();

  // output_mutex_ guards what follows, beside what it guards in RemoteActor.
  std::uint64_t outputs_read_ = 0;  // of this launch in a child
  std::uint64_t parts_settled_ = 0;
  std::uint64_t old_outputs_ = 0;  // of queue_: from a launch before
  std::optional<ChildEnded> end_;
  std::deque<std::uint64_t> unsent_cancels_;  // requests that nobody waits for, for which the ring had no room
};

}  // namespace cingulum::ring
