// An actor as a CPU thread. Runtime::launch makes it; ring/actor/actor.hpp says what it answers to.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "ring/actor/actor.hpp"
#include "ring/cpu/cpu_context.hpp"

namespace cingulum::ring {

using CpuBody = std::function<int(CpuContext&)>;

class CpuActor final : public Actor {
 public:
  CpuActor(std::string name, std::uint16_t number, CpuBody body, const ActorOptions& options, RuntimeServices services);
  ~CpuActor() override;

  PutStatus put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                const std::atomic<bool>* stop) override;
  void wake_writers() override;
  void queue_unread_outputs() override;

 private:
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

  Status start_thread();
  static void run(const std::shared_ptr<CpuActorCore>& core, const std::weak_ptr<Actor>& weak_actor, int turn);
  std::uint64_t discard_inbox(std::atomic<std::uint64_t>& counter);
  // While draining: an outbox that is full and that nobody reads just now goes to saved_outputs_.
  void save_outputs();
  // Streams take all that is left, whatever their windows.
  void let_answers_overflow();
  void cut_wires();
  // The handle goes: nobody reads what is left.
  void drop_outputs();
  void wake_targets();

  const std::shared_ptr<CpuActorCore> core_;  // shared with the thread, which may outlive an actor that gave it up
  std::thread thread_;
  std::mutex receive_mutex_;  // the output has one reader at a time; guards what follows
  std::deque<Message> saved_outputs_;
};

}  // namespace cingulum::ring
