// The runtime: actors by name, from launch to shutdown, and the host's side of talking to them. Everything may be
// called from any thread. Actors are CPU threads by launch(); other backends make their own Actor and hand it to
// adopt().
//   auto runtime = Runtime::create().value();
//   runtime->launch("echo", Echo{});  runtime->activate("echo");
//   Result<Message> answer = runtime->request("echo", make_message(Ping{1}), 1s);
// Handles (shared_ptr<Actor>) that launch gives outlive the registration: what an actor left in its output can be read
// through its handle after terminate.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ring/actor/actor.hpp"
#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_table.hpp"
#include "ring/actor/reply_table.hpp"
#include "ring/cpu/cpu_actor.hpp"

namespace cingulum::ring {

class Topic;

struct RuntimeOptions {
  std::uint32_t max_requests = 4096;  // in flight at a time
  std::uint32_t max_buffers = 4096;
  WaitStrategy waiting;  // of those who wait for answers
  Nanoseconds monitor_interval = std::chrono::milliseconds(5);
  Schedule* schedule = nullptr;  // tests: one thread at a time, virtual time (ring/queue/waiting.hpp); no monitor then
};

// An answer on its way. Dropping it gives up on the answer.
class PendingReply {
 public:
  // `restored`: the correlation that the requester's message had, and the answer will have.
  PendingReply(std::shared_ptr<ReplyTable> table, ActorHandle actor, std::uint64_t correlation, std::uint64_t restored)
      : table_(std::move(table)), actor_(std::move(actor)), correlation_(correlation), restored_(restored) {}
  PendingReply(PendingReply&& other) noexcept = default;
  PendingReply& operator=(PendingReply&&) = delete;
  ~PendingReply() {
    if (table_ != nullptr && table_->abandon(correlation_)) actor_->request_abandoned(correlation_);
  }
  [[nodiscard]] bool is_done() const { return table_ != nullptr && table_->is_done(correlation_); }
  // Once.
  [[nodiscard]] Result<Message> wait(Nanoseconds timeout = no_time_limit);
  // The same for carriers: an answer that reports a failure (mark_failed) is an answer, and marks are as they were
  // sent.
  [[nodiscard]] Result<Message> wait_as_sent(Nanoseconds timeout);
  // The correlation that the requester's message had.
  [[nodiscard]] std::uint64_t restored_correlation() const { return restored_; }

 private:
  std::shared_ptr<ReplyTable> table_;
  ActorHandle actor_;
  std::uint64_t correlation_;
  std::uint64_t restored_;
};

struct StreamOptions {
  std::uint32_t window = 16;                 // answers that may wait to be read; then the actor waits
  Nanoseconds timeout = no_time_limit;       // of waiting for room in the actor's inbox
  Nanoseconds time_to_live = no_time_limit;  // of the request, as in SendOptions
};

// The answers to one request, in the order in which they were sent, read by one thread. Dropping it gives up on those
// that were not read.
class ReplyStream {
 public:
  // `restored`: as in PendingReply.
  ReplyStream(std::shared_ptr<ReplyTable> table, ActorHandle actor, std::uint64_t correlation, std::uint64_t restored)
      : table_(std::move(table)), actor_(std::move(actor)), correlation_(correlation), restored_(restored) {}
  ReplyStream(ReplyStream&& other) noexcept = default;
  ReplyStream& operator=(ReplyStream&&) = delete;
  ~ReplyStream() { cancel(); }

  // The next answer; none after the last one. mark_more says whether others follow. ErrorKind::timed_out leaves the
  // stream open: ask again, or give up. Another error (the actor's failure, an answer with mark_failed) is its end.
  [[nodiscard]] Result<std::optional<Message>> next(Nanoseconds timeout = no_time_limit);
  // The same for carriers, as in PendingReply.
  [[nodiscard]] Result<std::optional<Message>> next_as_sent(Nanoseconds timeout);
  [[nodiscard]] std::uint64_t restored_correlation() const { return restored_; }
  // Whether next would return at once.
  [[nodiscard]] bool is_ready() const { return table_ != nullptr && table_->is_done(correlation_); }
  // What was not read is dropped, and the actor learns that nobody waits: its sends are answered with `closed`, or its
  // is_wanted with false.
  void cancel();

 private:
  std::shared_ptr<ReplyTable> table_;  // null: nothing comes any more
  ActorHandle actor_;
  std::uint64_t correlation_;
  std::uint64_t restored_;
};

struct ShutdownReport {
  TerminationReport messages;       // of all actors
  std::vector<std::string> errors;  // actors that did not end well
  std::vector<std::string> cycles;  // of wires, by the names of their actors: none of them is first
};

class Runtime {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options = {});
  ~Runtime();  // shutdown by discarding
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Creates and launches a CPU actor. ErrorKind::already_exists when the name is in use.
  template <class Body>
  [[nodiscard]] Result<ActorHandle> launch(std::string name, Body body, const ActorOptions& options = {}) {
    return launch_cpu(std::move(name), as_cpu_body(body), options);
  }
  // An actor of another backend, made with next_number() and services(), in any state.
  [[nodiscard]] Result<ActorHandle> adopt(ActorHandle actor);
  [[nodiscard]] std::uint16_t next_number();
  [[nodiscard]] RuntimeServices services();

  // Bodies by name, for programs that choose at run time; the last registration wins.
  template <class Body>
  void register_body(std::string kind, Body body) {
    register_cpu_body(std::move(kind), as_cpu_body(body));
  }
  // ErrorKind::not_found names the registered ones.
  [[nodiscard]] Result<ActorHandle> launch_registered(std::string name, std::string_view kind,
                                                      const ActorOptions& options = {});

  // By name; ErrorKind::not_found names the actors there are.
  [[nodiscard]] Result<ActorHandle> find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] Status activate(std::string_view name);
  [[nodiscard]] Status deactivate(std::string_view name);
  [[nodiscard]] Status reactivate(std::string_view name);
  [[nodiscard]] Result<TerminationReport> terminate(std::string_view name,
                                                    const Termination& how = {});  // and forgets it
  // All, the time shared among them, each before those that it is wired to. Actors in a cycle of wires are waited for
  // until they are at rest, then drained one after the other. Nothing can be launched afterwards. A second call does
  // nothing.
  ShutdownReport shutdown(const Termination& how = {});

  [[nodiscard]] Status send(std::string_view name, const Message& message, const SendOptions& options = {});
  [[nodiscard]] Result<Message> receive(std::string_view name, Nanoseconds timeout = no_time_limit);
  // Sends with a correlation of its own and waits for the answer that carries it; many may be in flight. The answer's
  // correlation is the one that `message` had. An answer with mark_failed, and the actor's failure, are errors.
  [[nodiscard]] Result<Message> request(std::string_view name, const Message& message,
                                        Nanoseconds timeout = no_time_limit);
  [[nodiscard]] Result<Message> request(Actor& actor, const Message& message, Nanoseconds timeout = no_time_limit);
  [[nodiscard]] Result<PendingReply> request_later(Actor& actor, const Message& message,
                                                   const SendOptions& options = {});
  // The same for who first looks for the answer himself, for as long as `look` (less where a backend says so): it is
  // there sooner than by way of the backend's service thread, and may be done when this returns.
  [[nodiscard]] Result<PendingReply> request_watched(Actor& actor, const Message& message, Nanoseconds look,
                                                     const SendOptions& options = {});
  // A request that is answered several times: by make_part, and at last by make_reply.
  [[nodiscard]] Result<ReplyStream> request_stream(Actor& actor, const Message& message,
                                                   const StreamOptions& options = {});
  [[nodiscard]] Result<ReplyStream> request_stream(std::string_view name, const Message& message,
                                                   const StreamOptions& options = {});

  // The output of each goes to the next; the last one's is read by receive.
  [[nodiscard]] Status pipeline(const std::vector<std::string>& names);
  // What `from` emits through `port` goes to all of `to`.
  [[nodiscard]] Status fan_out(std::string_view from, std::uint32_t port, const std::vector<std::string>& to);
  // Topics exist from their first mention. publish answers how many subscribers took the message.
  [[nodiscard]] Status subscribe(std::string_view topic, std::string_view actor);
  [[nodiscard]] Status unsubscribe(std::string_view topic, std::string_view actor);
  [[nodiscard]] Result<std::uint32_t> publish(std::string_view topic, const Message& message);
  [[nodiscard]] Status wire_to_topic(std::string_view from, std::uint32_t port, std::string_view topic);

  [[nodiscard]] BufferTable& buffers() noexcept { return *buffers_; }
  [[nodiscard]] RuntimeTelemetry telemetry() const;
  [[nodiscard]] Result<ActorTelemetry> telemetry(std::string_view name) const;
  // Supervises all actors once: stalls and restarts. The monitor's thread does it; under a Schedule tests do.
  void tick();

 private:
  explicit Runtime(const RuntimeOptions& options);
  template <class Body>
  [[nodiscard]] static CpuBody as_cpu_body(const Body& body) {
    return [body](CpuContext& context) {
      if constexpr (block_bytes_of<Body>() != 0) context.provide_block(block_bytes_of<Body>());
      return run_body(body, context);
    };
  }
  [[nodiscard]] Result<ActorHandle> launch_cpu(std::string name, CpuBody body, const ActorOptions& options);
  void register_cpu_body(std::string kind, CpuBody body);
  [[nodiscard]] std::shared_ptr<Topic> topic_of(std::string_view name);
  void forget(const ActorHandle& actor);
  // Waits until no message goes round among these any more; false at the deadline.
  [[nodiscard]] bool wait_until_idle(const std::vector<ActorHandle>& actors, std::uint64_t deadline_ns) const;
  // A request on its way.
  struct Asked {
    std::uint64_t correlation = 0;
    std::uint64_t since_ns = 0;  // of the call; 0: it took no time
  };
  // `window`: 0 for one answer.
  [[nodiscard]] Result<Asked> ask(Actor& actor, const Message& message, const SendOptions& options,
                                  std::uint32_t window);
  void monitor();
  [[nodiscard]] std::uint64_t next_due_ns() const;
  [[nodiscard]] std::uint64_t now_ns() const;

  const RuntimeOptions options_;
  const std::shared_ptr<ReplyTable> replies_;
  const std::shared_ptr<BufferTable> buffers_;
  const std::uint64_t started_ns_;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::map<std::string, ActorHandle, std::less<>> actors_;
  std::map<std::string, CpuBody, std::less<>> bodies_;
  std::map<std::string, std::shared_ptr<Topic>, std::less<>> topics_;
  std::uint16_t last_number_ = 0;
  bool ended_ = false;
  std::uint64_t last_tick_ns_ = 0;  // of tick() only
  const std::shared_ptr<Doorbell> monitor_bell_;
  std::atomic<bool> monitor_stop_{false};
  std::thread monitor_;
};

// launch and activate now, terminate (discarding) at the end of the scope, whatever way it is left.
class ScopedActor {
 public:
  template <class Body>
  [[nodiscard]] static Result<ScopedActor> start(Runtime& runtime, std::string name, Body body,
                                                 const ActorOptions& options = {}) {
    CGL_TRY_ASSIGN(ActorHandle actor, runtime.launch(name, std::move(body), options));
    ScopedActor scope(runtime, std::move(actor));
    CGL_TRY(scope->activate());
    return scope;
  }
  ScopedActor(ScopedActor&& other) noexcept : runtime_(other.runtime_), actor_(std::move(other.actor_)) {}
  ScopedActor& operator=(ScopedActor&&) = delete;
  ~ScopedActor();
  [[nodiscard]] Actor* operator->() const noexcept { return actor_.get(); }
  [[nodiscard]] Actor& operator*() const noexcept { return *actor_; }

 private:
  ScopedActor(Runtime& runtime, ActorHandle actor) : runtime_(&runtime), actor_(std::move(actor)) {}
  Runtime* runtime_;
  ActorHandle actor_;
};

}  // namespace cingulum::ring
