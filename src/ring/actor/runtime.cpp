#include "ring/actor/runtime.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "base/log.hpp"
#include "ring/actor/drain_order.hpp"
#include "ring/actor/topic.hpp"

namespace cingulum::ring {
namespace {

constexpr std::uint32_t max_slots = 1u << 20;

// The answer as its requester is to see it. `restored`: the correlation that the request had.
Result<Message> as_asked(Message reply, std::uint64_t restored) {
  reply.header.correlation = restored;
  reply.header.flags &= ~static_cast<std::uint32_t>(mark_request | mark_stream);
  if (reply.has(mark_failed)) {
    std::int32_t code = 0;
    if (reply.payload_bytes() >= sizeof(code)) std::memcpy(&code, reply.payload, sizeof(code));
    return fail(ErrorKind::device, "actor number {} answered with failure {}", reply.source(), code);
  }
  return reply;
}

Result<Message> take_answer(ReplyTable& table, Actor& actor, std::uint64_t correlation, std::uint64_t deadline_ns) {
  Result<Message> reply = table.wait(correlation, deadline_ns);
  if (!reply && reply.error().kind() == ErrorKind::timed_out) actor.request_abandoned(correlation);
  return reply;
}

// Requests of several runtimes may meet in one grid, which knows by the correlation those that nobody waits for.
std::uint64_t first_generation() {
  static std::atomic<std::uint64_t> runtimes{0};
  return runtimes.fetch_add(1, std::memory_order_relaxed) << 34;
}

// By their places among `actors`, which of them each is wired to.
std::vector<std::vector<std::size_t>> wires_among(const std::vector<ActorHandle>& actors) {
  std::vector<std::vector<std::size_t>> sends_to(actors.size());
  for (std::size_t i = 0; i < actors.size(); ++i) {
    for (const Actor* receiver : actors[i]->receivers()) {
      const auto found =
          std::find_if(actors.begin(), actors.end(), [&](const ActorHandle& actor) { return actor.get() == receiver; });
      if (found != actors.end()) sends_to[i].push_back(static_cast<std::size_t>(found - actors.begin()));
    }
  }
  return sends_to;
}

// While one actor is drained, those that it sends to must not wait for somebody who reads their outputs: as long as
// this lives, a thread takes them off their hands.
class UnreadOutputs {
 public:
  explicit UnreadOutputs(const std::vector<ActorHandle>& actors) {
    try {
      thread_ = std::thread([this, &actors] {
        while (!is_over_.load(std::memory_order_acquire)) {
          for (const ActorHandle& actor : actors) actor->queue_unread_outputs();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    } catch (const std::system_error& error) {
      log_warning("shutting down: no thread to take outputs that nobody reads: {}", error.what());
    }
  }
  ~UnreadOutputs() {
    is_over_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
  }
  UnreadOutputs(const UnreadOutputs&) = delete;
  UnreadOutputs& operator=(const UnreadOutputs&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace

Result<Message> PendingReply::wait(Nanoseconds timeout) {
  CGL_TRY_ASSIGN(const Message reply, wait_as_sent(timeout));
  return as_asked(reply, restored_);
}

Result<Message> PendingReply::wait_as_sent(Nanoseconds timeout) {
  if (table_ == nullptr) return fail(ErrorKind::invalid_state, "the answer was taken already");
  const std::shared_ptr<ReplyTable> table = std::move(table_);
  table_ = nullptr;
  CGL_TRY_ASSIGN(Message reply, take_answer(*table, *actor_, correlation_, table->deadline(timeout)));
  reply.header.correlation = restored_;
  return reply;
}

Result<std::optional<Message>> ReplyStream::next(Nanoseconds timeout) {
  CGL_TRY_ASSIGN(const std::optional<Message> sent, next_as_sent(timeout));
  if (!sent) return std::optional<Message>();
  Result<Message> answer = as_asked(*sent, restored_);
  if (answer) return std::optional<Message>(*answer);
  cancel();
  return tl::make_unexpected(std::move(answer.error()));
}

Result<std::optional<Message>> ReplyStream::next_as_sent(Nanoseconds timeout) {
  if (table_ == nullptr) return std::optional<Message>();
  const std::uint64_t deadline = table_->deadline(timeout);
  if (deadline != 0 && !table_->is_done(correlation_)) actor_->spin_for_answer(*table_, correlation_, deadline);
  Result<ReplyTable::Next> taken = table_->next(correlation_, deadline);
  if (!taken) {
    if (taken.error().kind() == ErrorKind::timed_out && table_->is_wanted(correlation_)) {
      taken = add_context(std::move(taken), "stream of actor '{}' within {} ms", actor_->name(),
                          static_cast<double>(timeout.count()) * 1e-6);
    } else {
      cancel();
    }
    return tl::make_unexpected(std::move(taken.error()));
  }
  if (!taken->answer) {
    cancel();
    return std::optional<Message>();
  }
  // The backend may hold answers for which there was no room.
  if (taken->made_room) actor_->see_to_answers();
  taken->answer->header.correlation = restored_;
  return taken->answer;
}

void ReplyStream::cancel() {
  if (table_ == nullptr) return;
  const std::shared_ptr<ReplyTable> table = std::move(table_);
  table_ = nullptr;
  if (table->abandon(correlation_)) actor_->request_abandoned(correlation_);
}

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  if (options.max_requests == 0 || options.max_requests > max_slots || options.max_buffers > max_slots) {
    return fail(ErrorKind::invalid_argument, "a runtime for {} requests and {} buffers: 1 to {} are possible",
                options.max_requests, options.max_buffers, max_slots);
  }
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<Runtime>> {
    std::unique_ptr<Runtime> runtime(new Runtime(options));
    if (options.schedule == nullptr) {
      try {
        runtime->monitor_ = std::thread([raw = runtime.get()] { raw->monitor(); });
      } catch (const std::system_error& error) {
        return fail(ErrorKind::unavailable, "starting a ring runtime: no thread for its monitor: {}", error.what());
      }
    }
    return runtime;
  });
}

Runtime::Runtime(const RuntimeOptions& options)
    : options_(options),
      replies_(
          std::make_shared<ReplyTable>(options.max_requests, options.waiting, options.schedule, first_generation())),
      buffers_(std::make_shared<BufferTable>(options.max_buffers)),
      started_ns_(options.schedule != nullptr ? options.schedule->now_ns() : steady_now_ns()),
      last_tick_ns_(started_ns_),
      monitor_bell_(std::make_shared<Doorbell>(WaitStrategy{WaitMode::spin_then_park, 1})) {}

Runtime::~Runtime() {
  shutdown(Termination::discard());
  monitor_stop_.store(true, std::memory_order_release);
  monitor_bell_->ring_always();
  if (monitor_.joinable()) monitor_.join();
}

std::uint64_t Runtime::now_ns() const {
  return options_.schedule != nullptr ? options_.schedule->now_ns() : steady_now_ns();
}

void Runtime::monitor() {
  while (!monitor_stop_.load(std::memory_order_acquire)) {
    const std::uint64_t look_ns = deadline_after(steady_now_ns(), options_.monitor_interval);
    // Rung when an actor has failed: its restart may be due before the next look.
    while (!monitor_stop_.load(std::memory_order_acquire) && steady_now_ns() < std::min(look_ns, next_due_ns())) {
      const std::uint64_t due = next_due_ns();
      (void)monitor_bell_->wait([&] { return monitor_stop_.load(std::memory_order_acquire) || next_due_ns() != due; },
                                std::min(look_ns, due));
    }
    tick();
  }
}

std::uint64_t Runtime::next_due_ns() const {
  const std::shared_lock lock(mutex_);
  std::uint64_t due = no_deadline;
  for (const auto& [unused, actor] : actors_) due = std::min(due, actor->next_due_ns());
  return due;
}

void Runtime::tick() {
  std::vector<ActorHandle> actors;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, actor] : actors_) actors.push_back(actor);
  }
  const std::uint64_t now = now_ns();
  for (const ActorHandle& actor : actors) {
    // A monitor that was itself away for half an actor's limit cannot tell whether the actor stood still.
    const auto limit = static_cast<std::uint64_t>(actor->options().stall_limit.count());
    actor->supervise(now, now - last_tick_ns_ > limit / 2);
  }
  last_tick_ns_ = now;
}

RuntimeServices Runtime::services() {
  RuntimeServices services;
  services.replies = replies_;
  services.buffers = buffers_;
  services.schedule = options_.schedule;
  if (options_.schedule == nullptr) services.monitor = monitor_bell_;
  return services;
}

std::uint16_t Runtime::next_number() {
  const std::unique_lock lock(mutex_);
  // Numbers go round: one that an actor has is not given to another. With every number taken none can be told apart.
  for (std::uint32_t tried = 0; tried < 0x10000u; ++tried) {
    ++last_number_;
    const bool is_taken = std::any_of(actors_.begin(), actors_.end(),
                                      [&](const auto& each) { return each.second->number() == last_number_; });
    if (last_number_ != 0 && !is_taken) break;
  }
  return last_number_;
}

Result<ActorHandle> Runtime::adopt(ActorHandle actor) {
  const std::unique_lock lock(mutex_);
  if (ended_) {
    return fail(ErrorKind::invalid_state, "launching actor '{}': the runtime was shut down", actor->name());
  }
  if (!actors_.emplace(actor->name(), actor).second) {
    return fail(ErrorKind::already_exists, "launching actor '{}': there is one of this name; terminate it first",
                actor->name());
  }
  return actor;
}

Result<ActorHandle> Runtime::launch_cpu(std::string name, CpuBody body, const ActorOptions& options) {
  CGL_TRY(check_options(name, options));
  return catch_out_of_memory([&]() -> Result<ActorHandle> {
    CGL_TRY_ASSIGN(ActorHandle actor,
                   adopt(std::make_shared<CpuActor>(name, next_number(), std::move(body), options, services())));
    CGL_TRY(actor->launch());
    return actor;
  });
}

void Runtime::register_cpu_body(std::string kind, CpuBody body) {
  const std::unique_lock lock(mutex_);
  bodies_.insert_or_assign(std::move(kind), std::move(body));
}

Result<ActorHandle> Runtime::launch_registered(std::string name, std::string_view kind, const ActorOptions& options) {
  CpuBody body;
  {
    const std::shared_lock lock(mutex_);
    const auto found = bodies_.find(kind);
    if (found == bodies_.end()) {
      std::vector<std::string_view> known;
      for (const auto& [registered, unused] : bodies_) known.push_back(registered);
      return fail(ErrorKind::not_found, "launching actor '{}': no body '{}' is registered (known: {})", name, kind,
                  known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }
    body = found->second;
  }
  return launch_cpu(std::move(name), std::move(body), options);
}

Result<ActorHandle> Runtime::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = actors_.find(name);
  if (found != actors_.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [actor, unused] : actors_) known.push_back(actor);
  return fail(ErrorKind::not_found, "there is no actor '{}' (known: {})", name,
              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::vector<std::string> Runtime::names() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, unused] : actors_) names.push_back(name);
  return names;
}

Status Runtime::activate(std::string_view name) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->activate();
}

Status Runtime::deactivate(std::string_view name) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->deactivate();
}

Status Runtime::reactivate(std::string_view name) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->reactivate();
}

Result<TerminationReport> Runtime::terminate(std::string_view name, const Termination& how) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  Result<TerminationReport> report = actor->terminate(how);
  forget(actor);
  return report;
}

void Runtime::forget(const ActorHandle& actor) {
  std::vector<std::shared_ptr<Topic>> topics;
  {
    const std::unique_lock lock(mutex_);
    const auto found = actors_.find(actor->name());
    if (found != actors_.end() && found->second == actor) actors_.erase(found);
    for (const auto& [unused, topic] : topics_) topics.push_back(topic);
  }
  for (const std::shared_ptr<Topic>& topic : topics) topic->unsubscribe(*actor);
}

ShutdownReport Runtime::shutdown(const Termination& how) {
  std::vector<ActorHandle> actors;
  {
    const std::unique_lock lock(mutex_);
    ended_ = true;
    for (const auto& [unused, actor] : actors_) actors.push_back(actor);
  }
  const std::vector<std::vector<std::size_t>> sends_to = wires_among(actors);
  ShutdownReport report;
  // Who is drained must not wait at the gate of the next. What is let through now is drained as well.
  std::vector<std::optional<std::uint64_t>> received_at_gate(actors.size());
  for (std::size_t i = 0; i < actors.size() && how.mode == Termination::Mode::drain; ++i) {
    if (actors[i]->state() != ActorState::deactivated) continue;
    received_at_gate[i] = actors[i]->telemetry().received;
    static_cast<void>(actors[i]->reactivate());
  }
  std::optional<UnreadOutputs> aside;
  if (how.mode == Termination::Mode::drain && options_.schedule == nullptr && !actors.empty()) aside.emplace(actors);
  const std::uint64_t deadline = deadline_after(now_ns(), how.timeout);
  std::size_t left = actors.size();
  // One that does not end must not take the time of all the others.
  const auto share_of = [&](std::size_t count) {
    if (how.timeout == no_time_limit) return no_time_limit;
    const std::uint64_t now = now_ns();
    return Nanoseconds(deadline > now ? static_cast<std::int64_t>((deadline - now) / left * count) : 0);
  };
  for (const DrainGroup& group : drain_order(sends_to)) {
    const std::vector<std::size_t>& first = sends_to[group.front()];
    if (group.size() > 1 || std::find(first.begin(), first.end(), group.front()) != first.end()) {
      std::vector<ActorHandle> cycle;
      std::vector<std::string_view> names;
      for (const std::size_t member : group) {
        cycle.push_back(actors[member]);
        names.push_back(actors[member]->name());
      }
      report.cycles.push_back(fmt::format("{}", fmt::join(names, ", ")));
      if (how.mode == Termination::Mode::drain) {
        // Half of their time: what still goes round then is drained as it comes.
        static_cast<void>(wait_until_idle(cycle, deadline_after(now_ns(), share_of(group.size()) / 2)));
      }
    }
    for (const std::size_t member : group) {
      const ActorHandle& actor = actors[member];
      Termination share = how;
      share.timeout = share_of(1);
      Result<TerminationReport> one = actor->terminate(share);
      if (one) {
        std::uint64_t drained = one->drained;
        if (const auto before = received_at_gate[member]) {
          const std::uint64_t received = actor->telemetry().received;
          drained = std::max(drained, received - std::min(received, *before));
        }
        report.messages.drained += drained;
        report.messages.dropped += one->dropped;
      } else {
        report.errors.push_back(one.error().message());
      }
      forget(actor);
      --left;
    }
  }
  return report;
}

bool Runtime::wait_until_idle(const std::vector<ActorHandle>& actors, std::uint64_t deadline_ns) const {
  // All are idle in two looks, and none has moved a message between them: then nothing was under way in between.
  struct Seen {
    std::uint64_t moves = 0;
    std::uint64_t looks = 0;
  };
  std::vector<Seen> first(actors.size());
  Doorbell clock(WaitStrategy{WaitMode::spin_then_park, 1}, options_.schedule);
  for (bool has_first = false;;) {
    bool is_quiet = true;   // so far: nobody has anything to do
    bool is_proven = true;  // and nobody's wires held a message
    for (std::size_t i = 0; i < actors.size(); ++i) {
      const Actor::Idleness idleness = actors[i]->idleness();
      // Behind it: what an actor took before it was idle is counted.
      const ActorTelemetry telemetry = actors[i]->telemetry();
      const std::uint64_t moves = telemetry.received + telemetry.sent + telemetry.emitted + telemetry.refused;
      if (!idleness.is_idle || moves != first[i].moves) {
        is_quiet = false;
        first[i] = {moves, idleness.looks};
      }
      is_proven = is_proven && idleness.looks - first[i].looks >= idleness.looks_to_prove;
    }
    if (is_quiet && has_first && is_proven) return true;
    if (!is_quiet || !has_first) {
      for (std::size_t i = 0; i < actors.size(); ++i) first[i].looks = actors[i]->idleness().looks;
    }
    has_first = is_quiet;
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    static_cast<void>(clock.wait([] { return false; }, std::min(deadline_ns, now + 1'000'000)));
  }
}

Status Runtime::send(std::string_view name, const Message& message, const SendOptions& options) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->send(message, options);
}

Result<Message> Runtime::receive(std::string_view name, Nanoseconds timeout) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->receive(timeout);
}

Result<Runtime::Asked> Runtime::ask(Actor& actor, const Message& message, const SendOptions& options,
                                    std::uint32_t window) {
  CGL_TRY(check_operation(actor.name(), actor.state(), Operation::request));
  CGL_TRY_ASSIGN(
      const std::uint64_t correlation,
      add_context(window == 0 ? replies_->open(actor.identity()) : replies_->open_stream(actor.identity(), window),
                  "request to actor '{}'", actor.name()));
  Message request = message;
  request.header.correlation = correlation;
  request.header.flags |= window == 0 ? mark_request : mark_request | mark_stream;
  // Without a look at the clock, which takes longer than all the rest, when nothing keeps it waiting.
  if (actor.send_at_once(request)) return Asked{correlation, 0};
  const std::uint64_t now = options.timeout == no_time_limit && options.time_to_live == no_time_limit ? 0 : now_ns();
  if (const Status sent =
          actor.send_request(request, deadline_after(now, options.timeout), deadline_after(now, options.time_to_live));
      !sent) {
    replies_->abandon(correlation);
    return tl::make_unexpected(sent.error());
  }
  return Asked{correlation, now};
}

Result<PendingReply> Runtime::request_later(Actor& actor, const Message& message, const SendOptions& options) {
  CGL_TRY_ASSIGN(const Asked asked, ask(actor, message, options, 0));
  actor.see_to_answers();
  return PendingReply(replies_, actor.shared_from_this(), asked.correlation, message.header.correlation);
}

Result<PendingReply> Runtime::request_watched(Actor& actor, const Message& message, Nanoseconds look,
                                              const SendOptions& options) {
  CGL_TRY_ASSIGN(const Asked asked, ask(actor, message, options, 0));
  actor.spin_for_answer(*replies_, asked.correlation, deadline_after(now_ns(), look));
  if (!replies_->is_done(asked.correlation)) actor.see_to_answers();
  return PendingReply(replies_, actor.shared_from_this(), asked.correlation, message.header.correlation);
}

Result<ReplyStream> Runtime::request_stream(Actor& actor, const Message& message, const StreamOptions& options) {
  if (options.window == 0) {
    return fail(ErrorKind::invalid_argument, "stream of actor '{}': a window of 0 takes no answer", actor.name());
  }
  CGL_TRY_ASSIGN(const Asked asked, ask(actor, message, {options.timeout, options.time_to_live}, options.window));
  actor.see_to_answers();
  return ReplyStream(replies_, actor.shared_from_this(), asked.correlation, message.header.correlation);
}

Result<ReplyStream> Runtime::request_stream(std::string_view name, const Message& message,
                                            const StreamOptions& options) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return request_stream(*actor, message, options);
}

Result<Message> Runtime::request(Actor& actor, const Message& message, Nanoseconds timeout) {
  CGL_TRY_ASSIGN(const Asked asked, ask(actor, message, {.timeout = timeout, .time_to_live = no_time_limit}, 0));
  std::uint64_t deadline = no_deadline;
  if (timeout != no_time_limit) deadline = deadline_after(asked.since_ns != 0 ? asked.since_ns : now_ns(), timeout);
  actor.spin_for_answer(*replies_, asked.correlation, deadline);
  Result<Message> answer = take_answer(*replies_, actor, asked.correlation, deadline);
  if (answer) return as_asked(*answer, message.header.correlation);
  if (answer.error().kind() == ErrorKind::timed_out) {
    return add_context(std::move(answer), "request to actor '{}' within {} ms", actor.name(),
                       static_cast<double>(timeout.count()) * 1e-6);
  }
  return answer;
}

Result<Message> Runtime::request(std::string_view name, const Message& message, Nanoseconds timeout) {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return request(*actor, message, timeout);
}

Status Runtime::pipeline(const std::vector<std::string>& names) {
  std::vector<ActorHandle> stages;
  for (const std::string& name : names) {
    CGL_TRY_ASSIGN(ActorHandle stage, find(name));
    stages.push_back(std::move(stage));
  }
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) CGL_TRY(stages[i]->wire(0, {stages[i + 1]}));
  return {};
}

Status Runtime::fan_out(std::string_view from, std::uint32_t port, const std::vector<std::string>& to) {
  CGL_TRY_ASSIGN(const ActorHandle source, find(from));
  std::vector<std::shared_ptr<MessageSink>> targets;
  for (const std::string& name : to) {
    CGL_TRY_ASSIGN(ActorHandle target, find(name));
    targets.push_back(std::move(target));
  }
  return source->wire(port, std::move(targets));
}

std::shared_ptr<Topic> Runtime::topic_of(std::string_view name) {
  const std::unique_lock lock(mutex_);
  std::shared_ptr<Topic>& topic = topics_[std::string(name)];
  if (!topic) topic = std::make_shared<Topic>();
  return topic;
}

Status Runtime::subscribe(std::string_view topic, std::string_view actor) {
  CGL_TRY_ASSIGN(const ActorHandle subscriber, find(actor));
  topic_of(topic)->subscribe(subscriber);
  return {};
}

Status Runtime::unsubscribe(std::string_view topic, std::string_view actor) {
  CGL_TRY_ASSIGN(const ActorHandle subscriber, find(actor));
  if (topic_of(topic)->unsubscribe(*subscriber)) return {};
  return fail(ErrorKind::not_found, "actor '{}' has not subscribed to topic '{}'", actor, topic);
}

Result<std::uint32_t> Runtime::publish(std::string_view topic, const Message& message) {
  std::uint32_t taken = 0;
  topic_of(topic)->publish(message, no_deadline, no_deadline, nullptr, &taken);
  return taken;
}

Status Runtime::wire_to_topic(std::string_view from, std::uint32_t port, std::string_view topic) {
  CGL_TRY_ASSIGN(const ActorHandle source, find(from));
  return source->wire(port, {topic_of(topic)});
}

Result<ActorTelemetry> Runtime::telemetry(std::string_view name) const {
  CGL_TRY_ASSIGN(const ActorHandle actor, find(name));
  return actor->telemetry();
}

RuntimeTelemetry Runtime::telemetry() const {
  std::vector<ActorHandle> actors;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [unused, actor] : actors_) actors.push_back(actor);
  }
  RuntimeTelemetry all;
  all.uptime_s = static_cast<double>(now_ns() - started_ns_) * 1e-9;
  for (const ActorHandle& actor : actors) {
    ActorTelemetry one = actor->telemetry();
    all.received += one.received;
    all.sent += one.sent;
    all.failures += one.failures;
    const LossCounters& loss = one.loss;
    all.lost +=
        loss.dropped_new + loss.dropped_oldest + loss.expired + loss.dead_letters + loss.discarded + loss.late_replies;
    all.actors.push_back(std::move(one));
  }
  return all;
}

ScopedActor::~ScopedActor() {
  if (!actor_) return;
  if (Result<TerminationReport> ended = runtime_->terminate(actor_->name(), Termination::discard()); !ended) {
    log_warning("{}", ended.error());
  }
}

}  // namespace cingulum::ring
