// An actor as the runtime holds it, whatever it runs on: name, state machine, failure, queues towards the host. The
// public calls check the state (ring/actor/life_cycle.hpp) and are safe from any thread; a backend (ring/cpu,
// ring/cuda) derives from Actor and fills in the protected ones, which are called in legal states only, one life-cycle
// operation at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ring/actor/actor_options.hpp"
#include "ring/actor/life_cycle.hpp"
#include "ring/queue/message.hpp"
#include "ring/telemetry/telemetry.hpp"

namespace cingulum::ring {

class Actor;
class ReplyTable;
class BufferTable;

// Where messages can be put: an actor's inbox, a topic. Any thread.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // Waits for room under policy block until `deadline_ns` (steady clock), or until `stop` becomes true when it is
  // given. `expires_ns`: when its time to live ends (no_deadline: never).
  virtual PutStatus put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                        const std::atomic<bool>* stop) = 0;
  // Wakes the threads that wait in put, so that they look at their `stop` again.
  virtual void wake_writers() {}
  // The actors that get what is put here.
  virtual void add_receivers(std::vector<const Actor*>& receivers) const = 0;
};

struct Failure {
  int code = 0;
  std::string message;
  std::uint64_t time_ns = 0;  // steady clock
};

// What an actor may use of its runtime.
struct RuntimeServices {
  std::shared_ptr<ReplyTable> replies;
  std::shared_ptr<BufferTable> buffers;
  Schedule* schedule = nullptr;       // null: threads run freely
  std::shared_ptr<Doorbell> monitor;  // rung when something is due before the monitor would look by itself
};

// A look at the line of counters that somebody else writes.
[[nodiscard]] ActorCounters read_counters(const ActorCounters& line);

class Actor : public MessageSink, public std::enable_shared_from_this<Actor> {
 public:
  Actor(std::string name, std::uint16_t number, ActorOptions options, RuntimeServices services);
  ~Actor() override;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // As in Message::source(). Numbers of actors that have gone are given again.
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
  // A number that no other actor has as long as the process lives.
  [[nodiscard]] std::uint64_t identity() const noexcept { return identity_; }
  [[nodiscard]] const ActorOptions& options() const noexcept { return options_; }
  [[nodiscard]] ActorState state() const noexcept { return state_.load(std::memory_order_acquire); }
  // The last failure of the body, also when a restart followed.
  [[nodiscard]] std::optional<Failure> failure() const;

  [[nodiscard]] Status launch();
  [[nodiscard]] Status activate();
  // Delivery stops: returns when the actor stands at its gate, or after `patience` while its body still works on a
  // message that it had (it then stops at its next receive). Queued messages are kept.
  [[nodiscard]] Status deactivate(Nanoseconds patience = std::chrono::milliseconds(100));
  [[nodiscard]] Status reactivate();
  // A body that does not return in time is an error; the actor is then `failed` and its thread is left to itself.
  [[nodiscard]] Result<TerminationReport> terminate(const Termination& how);

  // ErrorKind::invalid_state, full, timed_out, closed (failed or terminated meanwhile, with the failure's text).
  [[nodiscard]] Status send(const Message& message, const SendOptions& options = {});
  // Called by Runtime::request: as send, but the message already carries a request's mark and correlation, and both
  // times are moments instead of durations.
  [[nodiscard]] Status send_request(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns);
  // The same without waiting. False when there is no room at once, or when the backend would have to ask its device to
  // know; nothing was done or counted then.
  [[nodiscard]] virtual bool send_at_once(const Message& /*message*/) { return false; }
  // Called by the thread that waits for the answer to a request, before it sleeps: where answers must be polled for,
  // the thread polls for a while. Returns when the answer is there or the while is over; afterwards the backend's
  // service thread polls.
  virtual void spin_for_answer(ReplyTable& /*replies*/, std::uint64_t /*correlation*/, std::uint64_t /*deadline_ns*/) {}
  // Called where the answer is asked for later: the backend's service thread polls for it from now on.
  virtual void see_to_answers() {}
  // Called where nobody waits any more for the answers to a request that was made of this actor, so that a body that
  // asks (is_wanted) can leave the work.
  virtual void request_abandoned(std::uint64_t /*correlation*/) {}
  // As send without waiting, and without the text of an error, for loops that handle the answers themselves. Answers
  // `closed` unless the actor is active or deactivated.
  PutStatus try_send(const Message& message);
  // Many messages in one call, without waiting. Sending answers for how many of `messages`, from the first on, there
  // was room; receiving, how many came. Both answer 0 unless the actor is active or deactivated.
  [[nodiscard]] std::uint32_t send_batch(std::span<const Message> messages);
  [[nodiscard]] std::uint32_t receive_batch(std::span<Message> messages);
  // The next message of the output. Several host threads may call it; each message goes to one.
  [[nodiscard]] Result<Message> receive(Nanoseconds timeout = no_time_limit);

  // Messages that this actor emits through `port` go to `targets`; replaces what was wired. Port 0 also takes what it
  // sends. Allowed while created, launched or deactivated. A backend refuses what it cannot reach.
  [[nodiscard]] Status wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets);

  // Called again and again while the whole runtime drains: what the actor has sent is taken off its hands, though
  // nobody reads it, so that those who send to it can end. It stays readable.
  virtual void queue_unread_outputs() = 0;
  // The actors that its wires lead to.
  [[nodiscard]] std::vector<const Actor*> receivers() const;
  void add_receivers(std::vector<const Actor*>& receivers) const override { receivers.push_back(this); }

  [[nodiscard]] ActorTelemetry telemetry() const;

  // Whether the actor has nothing to do, for drains of wires that go round (Runtime::shutdown).
  struct Idleness {
    bool is_idle = true;               // waits for messages, and none is in its inbox
    std::uint64_t looks = 0;           // grows while it waits, where its wires cannot be seen from here
    std::uint64_t looks_to_prove = 0;  // so many without a message, and none lay in its wires
  };
  [[nodiscard]] Idleness idleness() const;

  // Called by the runtime's monitor every few milliseconds, for stalls, restarts that are due, whatever a backend does
  // at leisure. `host_was_away`: the monitor itself was stopped since the last call, so silence of the actor means
  // nothing.
  void supervise(std::uint64_t now_ns, bool host_was_away);
  // The moment at which supervise must have been called again.
  [[nodiscard]] std::uint64_t next_due_ns() const;

 protected:
  [[nodiscard]] virtual Status do_launch() = 0;
  [[nodiscard]] virtual Status do_activate() = 0;
  virtual void do_gate(bool open, Nanoseconds patience) = 0;
  // Called in state terminating, or failed with nothing running any more.
  [[nodiscard]] virtual Result<TerminationReport> do_terminate(const Termination& how) = 0;
  virtual GetStatus do_receive(Message& message, std::uint64_t deadline_ns) = 0;
  // Unless a backend overrides them, messages go one after the other.
  virtual std::uint32_t do_send_batch(std::span<const Message> messages);
  virtual std::uint32_t do_receive_batch(std::span<Message> messages);
  [[nodiscard]] virtual Status do_wire(std::uint32_t port, std::vector<std::shared_ptr<MessageSink>> targets) = 0;
  [[nodiscard]] virtual std::vector<std::shared_ptr<MessageSink>> do_targets() const = 0;
  // Fills in what the backend knows; name, state, failures, stalls and restarts are filled in already.
  virtual void do_telemetry(ActorTelemetry& telemetry) const = 0;
  // The counters that the body's side writes; stalls are seen by them.
  [[nodiscard]] virtual ActorCounters do_counters() const = 0;
  [[nodiscard]] virtual Idleness do_idleness() const { return {}; }
  // Starts the body again in place: same queues, same messages. Called after a failure when the policy allows it.
  [[nodiscard]] virtual Status do_restart() = 0;
  // A restart that may keep a thread waiting for long is made by one of its own, not by the monitor's.
  [[nodiscard]] virtual bool restarts_slowly() const { return false; }
  // The failure is final: close the queues, count what is in them as dead letters.
  virtual void do_give_up() = 0;
  // Further work of a backend that is not urgent; called by supervise.
  virtual void do_supervise(std::uint64_t /*now_ns*/) {}

  // Called by the backend, from any thread, when a body has ended with a failure. Keeps and counts it, fails the
  // request `correlation` (0: none) that it was working on, then restarts, opens the circuit or gives up, as the policy
  // says.
  void body_failed(int code, std::string message, std::uint64_t correlation);
  // Called by the backend while it drains (do_terminate), when the body has failed: whether it is to be started again,
  // so that what is queued reaches it.
  [[nodiscard]] bool restarts_to_drain();
  // Called by the backend when a body returned 0 though nobody told it to stop. Its inbox is closed, the rest is
  // discarded.
  void body_ended();

  [[nodiscard]] const RuntimeServices& services() const noexcept { return services_; }
  [[nodiscard]] std::uint64_t now_ns() const;

 private:
  [[nodiscard]] Error refusal(PutStatus status) const;
  [[nodiscard]] Error ended_error() const;
  [[nodiscard]] bool move_state(ActorState from, ActorState to);
  void restart();  // operation_mutex_ held
  void restart_in_own_thread(std::uint64_t now);

  const std::string name_;
  const std::uint16_t number_;
  const std::uint64_t identity_;
  const ActorOptions options_;
  const RuntimeServices services_;
  std::atomic<ActorState> state_{ActorState::created};
  std::mutex operation_mutex_;  // one life-cycle operation at a time
  std::thread restart_thread_;  // the monitor's alone; see restarts_slowly()
  std::atomic<bool> is_restarting_{false};

  mutable std::mutex failure_mutex_;  // guards what follows
  bool is_draining_ = false;
  std::optional<Failure> failure_;
  std::uint64_t failures_ = 0;
  std::uint64_t restarts_ = 0;
  std::vector<std::uint64_t> recent_failures_ns_;
  std::uint64_t restart_due_ns_ = no_deadline;
  bool circuit_open_ = false;
  ActorState resume_state_ = ActorState::active;  // where the circuit was opened
  bool stalled_ = false;
  std::uint64_t stalls_ = 0;
  std::uint64_t seen_heartbeat_ = 0;
  std::uint64_t heartbeat_since_ns_ = 0;
  std::uint64_t launched_ns_ = 0;
};

using ActorHandle = std::shared_ptr<Actor>;

}  // namespace cingulum::ring
