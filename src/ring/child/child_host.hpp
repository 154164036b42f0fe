// A device's runtime in a process of its own. When a body destroys the device's context (or never returns), only that
// process is lost: the host reports it, starts another, and actors whose restart policy allows it run there again. The
// program itself never touches the device. Round trips take a few microseconds more than within one process.
//   auto host = ChildHost::start({.command = {"/path/to/program", "ring-child"}});
//   host->launch(runtime, "echo", "echo", Echo{});
// The program's main calls serve_parent (ring/child/child_service.hpp) when it is started so.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ring/actor/runtime.hpp"
#include "ring/child/child_protocol.hpp"

namespace cingulum::ring {

class ChildActor;

struct ChildOptions {
  std::vector<std::string> command;                     // program and arguments; descriptors 3 and 4 are the protocol's
  Nanoseconds answer_limit = std::chrono::seconds(30);  // to a command; opening a device takes a while
  Nanoseconds silence_limit = std::chrono::seconds(5);  // a child whose own loop stands still is killed
  bool end_stalled = false;  // an actor that is stalled ends the child: the only cure for a body that never returns
};

class ChildHost : public std::enable_shared_from_this<ChildHost> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<ChildHost>> start(const ChildOptions& options);
  ~ChildHost();
  ChildHost(const ChildHost&) = delete;
  ChildHost& operator=(const ChildHost&) = delete;

  [[nodiscard]] Result<ActorHandle> launch(Runtime& runtime, std::string name, std::string_view body,
                                           std::span<const std::byte> arguments, RingKind kind,
                                           const ActorOptions& options = {});
  template <class Body>
  [[nodiscard]] Result<ActorHandle> launch(Runtime& runtime, std::string name, std::string_view body_name,
                                           const Body& body, RingKind kind = RingKind::fast,
                                           const ActorOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= body_capacity);
    return launch(runtime, std::move(name), body_name, std::as_bytes(std::span(&body, 1)), kind, options);
  }

  [[nodiscard]] pid_t process() const { return process_; }
  // How often a child was started.
  [[nodiscard]] std::uint64_t starts() const { return starts_; }
  [[nodiscard]] std::string last_end() const;

 private:
  friend class ChildActor;
  explicit ChildHost(const ChildOptions& options) : options_(options) {}

  [[nodiscard]] Status ensure_child();  // control_mutex_ held
  [[nodiscard]] Result<ChildReply> ask(ChildRequest request);
  [[nodiscard]] Result<ChildReply> ask_child(const ChildRequest& request);  // control_mutex_ held
  PutStatus put(const Message& message, std::uint32_t actor, std::uint32_t generation);
  void carry();  // the thread that reads what the child sends
  bool carry_messages();
  void child_ended(const std::string& how, std::span<const std::uint64_t> received);  // by each actor's index
  void end_child(int signal);
  void let_go(std::uint32_t actor);
  [[nodiscard]] ActorCounters counters(std::uint32_t actor) const;
  void give_credit(std::uint32_t actor, std::uint64_t outputs, std::uint64_t parts);

  const ChildOptions options_;
  ChildMemory* memory_ = nullptr;
  int memory_file_ = -1;

  mutable std::mutex control_mutex_;  // one command at a time; also guards the socket and starting
  int control_ = -1;
  std::atomic<pid_t> process_{-1};
  std::atomic<std::uint64_t> starts_{0};

  mutable std::mutex input_mutex_;
  BulkWriter<ChildSlot> to_child_;
  std::mutex output_mutex_;
  BulkReader<ChildSlot> from_child_;

  mutable std::mutex actors_mutex_;
  std::vector<std::weak_ptr<ChildActor>> actors_ = std::vector<std::weak_ptr<ChildActor>>(child_actor_count);
  std::vector<bool> taken_ = std::vector<bool>(child_actor_count, false);
  std::string last_end_;

  std::uint64_t seen_beat_ = 0;
  std::uint64_t beat_seen_ns_ = 0;
  std::uint64_t carried_ns_ = 0;
  std::atomic<bool> stop_{false};
  std::thread carrier_;
};

}  // namespace cingulum::ring
