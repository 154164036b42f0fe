#include "ring/child/child_service.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <thread>

#include "ring/child/child_protocol.hpp"
#include "ring/resident/resident_grid.hpp"

namespace cingulum::ring {
namespace {

class GridWork final : public ChildWork {
 public:
  explicit GridWork(std::shared_ptr<ResidentGrid> grid) : grid_(std::move(grid)) {}
  Result<ActorHandle> launch(Runtime& runtime, const std::string& name, const std::string& body,
                             std::span<const std::byte> arguments, RingKind kind,
                             const ActorOptions& options) override {
    return grid_->launch(runtime, name, body, arguments, kind, options);
  }
  std::optional<Error> lost() override { return grid_->lost(); }

 private:
  std::shared_ptr<ResidentGrid> grid_;
};

class Service {
 public:
  Service(ChildMemory& memory, Result<std::unique_ptr<ChildWork>> work, std::unique_ptr<Runtime> runtime)
      : memory_(memory),
        work_(std::move(work)),
        runtime_(std::move(runtime)),
        in_({memory.to_child, &memory.to_child_writer, &memory.to_child_reader, child_ring_capacity}),
        out_({memory.from_child, &memory.from_child_writer, &memory.from_child_reader, child_ring_capacity}) {}

  int run() {
    LookAgain again(WaitStrategy{WaitMode::spin_then_park, 200});
    for (std::uint64_t round = 0;; ++round) {
      if (HostAtomics::load_relaxed(memory_.child_beat.position) != round) {
        HostAtomics::store_relaxed(memory_.child_beat.position, round);
      }
      const bool took = take_messages();
      const bool moved = give_outputs() || took;
      if (work_ && *work_) {
        if (const auto lost = (*work_)->lost()) {
          std::strncpy(memory_.lost_text, lost->marked_message().c_str(), sizeof memory_.lost_text - 1);
          event(0, 0, {ChildEvent::lost, 0, {}}, lost->marked_message());
          return child_lost_device;
        }
      }
      pollfd waiting{control_descriptor, POLLIN, 0};
      if (::poll(&waiting, 1, 0) > 0) {
        ChildRequest request;
        const ssize_t got = ::recv(control_descriptor, &request, sizeof request, 0);
        if (got <= 0) return child_lost_parent;
        if (got != static_cast<ssize_t>(sizeof request)) continue;
        const ChildReply reply = apply_request(request);
        if (::send(control_descriptor, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return child_lost_parent;
        if (request.command == ChildCommand::leave) return child_left;
      } else if (!moved) {
        again.pause();
        continue;
      }
      again.reset();
    }
  }

 private:
  // An actor that was told to terminate, by a thread of its own: a drain may take long, and others go on meanwhile.
  struct Ending {
    ~Ending() {
      if (thread.joinable()) thread.join();
    }
    Result<TerminationReport> report = TerminationReport{};
    std::atomic<bool> is_done{false};
    std::thread thread;
  };
  struct HostedActor {
    ActorHandle actor;
    std::uint32_t generation = 0;
    std::deque<Message> waiting;    // for room in the actor's inbox; bounded by the parent's credit
    std::list<PendingReply> asked;  // requests of the parent that the actor has not answered
    std::list<ReplyStream> streams;
    std::uint64_t outbox_capacity = 0;
    std::uint64_t outputs_given = 0;
    std::uint64_t parts_given = 0;
    bool end_reported = false;          // the parent has the event of its end
    std::optional<Termination> to_end;  // it was told to terminate; `ending` when nothing waits for room any more
    std::uint64_t end_by_ns = no_deadline;
    std::uint64_t received_before_end = 0;
    std::shared_ptr<Ending> ending;
  };

  static ChildReply refusal(const Error& error) {
    ChildReply reply;
    reply.error_kind = static_cast<std::uint32_t>(error.kind());
    std::strncpy(reply.text, error.marked_message().c_str(), sizeof reply.text - 1);
    return reply;
  }
  static ChildReply answer(const Status& status) {
    if (!status) return refusal(status.error());
    ChildReply reply;
    reply.ok = 1;
    return reply;
  }

  ChildReply apply_request(const ChildRequest& request) {
    if (request.command == ChildCommand::leave) return answer({});
    if (request.actor >= child_actor_count || request.argument_bytes > body_capacity) {
      return refusal(Error(ErrorKind::corrupt, "a command of the parent is damaged"));
    }
    HostedActor& hosted = hosted_[request.actor];
    const auto timeout = Nanoseconds(static_cast<std::int64_t>(request.timeout_ns));
    if (request.command == ChildCommand::launch) return launch(hosted, request);
    if (hosted.actor == nullptr) return refusal(Error(ErrorKind::not_found, "no such actor in the child"));
    switch (request.command) {
      case ChildCommand::activate: return answer(hosted.actor->activate());
      case ChildCommand::deactivate: return answer(hosted.actor->deactivate(timeout));
      case ChildCommand::reactivate: return answer(hosted.actor->reactivate());
      default: break;
    }
    if (!hosted.to_end) {
      hosted.to_end = request.drain != 0 ? Termination::drain(timeout) : Termination::discard(timeout);
      hosted.end_by_ns = deadline_from_now(timeout);
      hosted.received_before_end = hosted.actor->telemetry().received;
      // What waits for room would wait at the gate.
      if (request.drain != 0 && hosted.actor->state() == ActorState::deactivated) {
        static_cast<void>(hosted.actor->reactivate());
      }
    }
    // What the parent sent before is in the ring.
    static_cast<void>(take_messages());
    return answer({});
  }

  // A drained actor closes its inbox: first it gets what was sent to it before.
  void begin_ending(HostedActor& hosted) {
    if (!hosted.to_end || hosted.ending != nullptr) return;
    Termination how = *hosted.to_end;
    const std::uint64_t now = steady_now_ns();
    if (how.mode == Termination::Mode::drain && !hosted.waiting.empty() && now < hosted.end_by_ns) return;
    if (hosted.end_by_ns != no_deadline) {
      how.timeout = Nanoseconds(hosted.end_by_ns > now ? static_cast<std::int64_t>(hosted.end_by_ns - now) : 0);
    }
    hosted.ending = std::make_shared<Ending>();
    Ending& ending = *hosted.ending;
    ending.thread = std::thread([this, &ending, how, name = hosted.actor->name()] {
      ending.report = runtime_->terminate(name, how);
      ending.is_done.store(true, std::memory_order_release);
    });
  }

  // True: the actor has ended, the parent has all that it sent and knows it.
  bool has_left(HostedActor& hosted, std::uint32_t index) {
    ChildEnded ended;
    const Result<TerminationReport>& report = hosted.ending->report;
    ended.ok = report ? 1 : 0;
    if (report) {
      ended.drained = report->drained;
      if (hosted.to_end->mode == Termination::Mode::drain) {
        // What was let through before the inbox closed is drained as well.
        ended.drained = hosted.actor->telemetry().received - hosted.received_before_end;
      }
    } else {
      ended.error_kind = static_cast<std::uint32_t>(report.error().kind());
      std::strncpy(ended.text, report.error().message().c_str(), sizeof ended.text - 1);
    }
    Message message = make_message(ended);
    message.header.flags |= mark_control;
    return out_.try_put({message, index, hosted.generation, 0}) == PutStatus::stored;
  }

  ChildReply launch(HostedActor& hosted, const ChildRequest& request) {
    if (!work_) return refusal(work_.error());
    if (hosted.actor != nullptr && hosted.ending == nullptr) {
      static_cast<void>(hosted.actor->terminate(Termination::discard()));
      static_cast<void>(runtime_->terminate(hosted.actor->name()));
    }
    hosted = HostedActor{};
    ActorOptions options;
    options.inbox_capacity = request.inbox_capacity;
    options.outbox_capacity = request.outbox_capacity;
    options.stall_limit = Nanoseconds(static_cast<std::int64_t>(request.stall_limit_ns));
    const std::string body(request.body, strnlen(request.body, sizeof request.body));
    auto actor =
        (*work_)->launch(*runtime_, fmt::format("{}.{}", request.actor, request.generation), body,
                         std::as_bytes(std::span(request.arguments, request.argument_bytes)), request.kind, options);
    if (!actor) return refusal(actor.error());
    hosted.actor = *actor;
    hosted.generation = request.generation;
    hosted.outbox_capacity = request.outbox_capacity;
    count(request.actor);  // the counts of the actor before are not this one's
    return answer({});
  }

  bool take_messages() {
    bool moved = false;
    ChildSlot slot;
    while (in_.try_get(slot) == GetStatus::taken) {
      moved = true;
      if (slot.actor >= child_actor_count) continue;
      HostedActor& hosted = hosted_[slot.actor];
      if (hosted.actor == nullptr || hosted.generation != slot.generation) continue;
      if (slot.message.has(mark_control) && holds<ChildCancel>(slot.message)) {
        cancel(hosted, payload<ChildCancel>(slot.message).correlation);
      } else {
        hosted.waiting.push_back(slot.message);
      }
    }
    for (HostedActor& hosted : hosted_) {
      while (!hosted.waiting.empty() && hand_over(hosted, hosted.waiting.front())) {
        hosted.waiting.pop_front();
        moved = true;
      }
      begin_ending(hosted);
    }
    return moved;
  }

  // False: no room now. Requests are asked again here, so that the answer finds its way back.
  bool hand_over(HostedActor& hosted, Message message) {
    if (!message.has(mark_request)) return hosted.actor->try_send(message) != PutStatus::full;
    const bool is_stream = message.has(mark_stream);
    message.header.flags &= ~static_cast<std::uint32_t>(mark_request | mark_stream);
    std::optional<Error> refused;
    if (is_stream) {
      auto stream = runtime_->request_stream(*hosted.actor, message, {.timeout = Nanoseconds::zero()});
      if (stream) {
        hosted.streams.push_back(std::move(*stream));
      } else {
        refused = std::move(stream.error());
      }
    } else {
      auto pending = runtime_->request_later(*hosted.actor, message, {.timeout = Nanoseconds::zero()});
      if (pending) {
        hosted.asked.push_back(std::move(*pending));
      } else {
        refused = std::move(pending.error());
      }
    }
    // An actor that has ended is reported by its event.
    return !refused || (refused->kind() != ErrorKind::full && refused->kind() != ErrorKind::timed_out);
  }

  // A request that is still waiting for room is not known here yet: it will be answered in vain.
  static void cancel(HostedActor& hosted, std::uint64_t correlation) {
    const auto is_it = [&](const auto& each) { return each.restored_correlation() == correlation; };
    hosted.asked.remove_if(is_it);
    hosted.streams.remove_if(is_it);
  }

  bool give_answers(HostedActor& hosted, std::uint32_t index, bool is_over) {
    bool moved = false;
    for (auto pending = hosted.asked.begin(); pending != hosted.asked.end() && out_.room(1) != 0;) {
      if (!pending->is_done()) {
        ++pending;
        continue;
      }
      auto reply = pending->wait_as_sent(Nanoseconds::zero());
      pending = hosted.asked.erase(pending);
      if (!reply) continue;  // the actor failed; its event reports that to the parent
      count(index);
      moved = out_.try_put({*reply, index, hosted.generation, 0}) == PutStatus::stored || moved;
    }
    const std::uint64_t settled = is_over ? unlimited_credit : HostAtomics::load_acquire(memory_.credit[index].parts);
    for (auto stream = hosted.streams.begin(); stream != hosted.streams.end();) {
      bool is_read = false;
      while (!is_read && stream->is_ready() && out_.room(1) != 0 && hosted.parts_given < settled + child_part_window) {
        auto part = stream->next_as_sent(Nanoseconds::zero());
        is_read = !part || !*part;
        if (is_read) break;
        (*part)->header.flags |= mark_stream;
        count(index);
        moved = out_.try_put({**part, index, hosted.generation, 0}) == PutStatus::stored || moved;
        ++hosted.parts_given;
      }
      stream = is_read ? hosted.streams.erase(stream) : std::next(stream);
    }
    return moved;
  }

  // True: an actor that has ended has no answer left to be given.
  static bool has_no_answers(const HostedActor& hosted) {
    return std::none_of(hosted.asked.begin(), hosted.asked.end(), [](const auto& each) { return each.is_done(); }) &&
           std::none_of(hosted.streams.begin(), hosted.streams.end(), [](const auto& each) { return each.is_ready(); });
  }

  bool give_outputs() {
    bool moved = false;
    for (std::uint32_t i = 0; i < child_actor_count; ++i) {
      HostedActor& hosted = hosted_[i];
      if (hosted.actor == nullptr) continue;
      // Looked at first: what an actor sent before its end goes before the report of its end.
      const ActorState state = hosted.actor->state();
      const bool has_ended = hosted.ending != nullptr && hosted.ending->is_done.load(std::memory_order_acquire);
      bool gave = false;
      // What nobody reads stays in the actor's outbox, so that the actor feels it.
      // The outputs of one that has ended go out before the report of its end.
      const bool is_over = state == ActorState::failed || state == ActorState::terminated;
      const std::uint64_t credit = is_over ? unlimited_credit : HostAtomics::load_acquire(memory_.credit[i].outputs);
      const std::uint64_t most = credit + hosted.outbox_capacity;
      bool is_empty = false;
      while (out_.room(1) != 0 && hosted.outputs_given < most) {
        auto got = hosted.actor->receive(Nanoseconds::zero());
        is_empty = !got;
        if (is_empty) break;
        count(i);
        if (out_.try_put({*got, i, hosted.generation, 0}) != PutStatus::stored) break;
        ++hosted.outputs_given;
        gave = true;
      }
      gave = give_answers(hosted, i, is_over) || gave;
      moved = moved || gave;
      count(i);
      if (hosted.to_end) {
        // Its end is reported by ChildEnded, behind the last of its outputs.
        if (has_ended && is_empty && has_no_answers(hosted) && has_left(hosted, i)) {
          hosted = HostedActor{};
          moved = true;
        }
        continue;
      }
      if (!hosted.end_reported && is_over && is_empty && has_no_answers(hosted)) {
        hosted.end_reported = true;
        const auto failure = hosted.actor->failure();
        ChildEvent ended{
            state == ActorState::failed ? ChildEvent::failed : ChildEvent::ended, failure ? failure->code : 0, {}};
        event(i, hosted.generation, ended, failure ? failure->message : "");
        moved = true;
      }
    }
    return moved;
  }

  void event(std::uint32_t actor, std::uint32_t generation, ChildEvent what, const std::string& text) {
    std::strncpy(what.text, text.c_str(), sizeof what.text - 1);
    Message message = make_message(what);
    message.header.flags |= mark_control;
    const std::uint64_t deadline = deadline_from_now(std::chrono::seconds(1));
    while (out_.try_put({message, actor, generation, 0}) == PutStatus::full && steady_now_ns() < deadline) {
      HostAtomics::pause();
    }
  }

  // Also before anything is given: whose answer the parent has, it knows to have been received.
  void count(std::uint32_t index) {
    const ActorTelemetry telemetry = hosted_[index].actor->telemetry();
    ActorCounters& line = memory_.counters[index];
    HostAtomics::store_relaxed(line.received, telemetry.received);
    HostAtomics::store_relaxed(line.sent, telemetry.sent);
    HostAtomics::store_relaxed(line.emitted, telemetry.emitted);
    HostAtomics::store_relaxed(line.refused, telemetry.refused);
    // The parent's supervision sees what ours has found.
    HostAtomics::store_relaxed(line.in_body, std::uint64_t{telemetry.stalled ? 1u : 0u});
    if (!telemetry.stalled) HostAtomics::store_relaxed(line.heartbeat, line.heartbeat + 1);
  }

  ChildMemory& memory_;
  Result<std::unique_ptr<ChildWork>> work_;
  std::unique_ptr<Runtime> runtime_;
  BulkReader<ChildSlot> in_;
  BulkWriter<ChildSlot> out_;
  HostedActor hosted_[child_actor_count];  // the threads that end actors use the runtime: gone before it
};

}  // namespace

std::unique_ptr<ChildWork> child_work_of(std::shared_ptr<ResidentGrid> grid) {
  return std::make_unique<GridWork>(std::move(grid));
}

int serve_parent(const std::function<Result<std::unique_ptr<ChildWork>>()>& open) {
  // Whatever the child is at (opening a device, draining an actor, in a body that does not return), it ends with its
  // parent.
  std::thread([] {
    pollfd parent{control_descriptor, POLLRDHUP, 0};
    while (::poll(&parent, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(child_lost_parent);
  }).detach();
  void* const memory = ::mmap(nullptr, sizeof(ChildMemory), PROT_READ | PROT_WRITE, MAP_SHARED, memory_descriptor, 0);
  if (memory == MAP_FAILED) return child_lost_parent;
  auto runtime = Runtime::create();
  if (!runtime) return child_lost_parent;
  const auto service = std::make_unique<Service>(*static_cast<ChildMemory*>(memory), open(), std::move(*runtime));
  const int code = service->run();
  // A lost device cannot be tidied up, and its driver may hang in trying.
  if (code != child_left) ::_exit(code);
  return code;
}

}  // namespace cingulum::ring
