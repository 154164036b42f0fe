// The tracking actor on a host thread: takes requests from its inbox, asks the
// session, and sends each batch as a part of the answer. Between two batches it
// looks for newer requests.
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "examples/tracking_actors/tracked_parts.hpp"
#include "examples/tracking_actors/tracking_actors.hpp"
#include "examples/tracking_actors/tracking_messages.hpp"

namespace cingulum {
namespace {

using ring::BufferHandle;
using ring::Message;

// Parts that may wait for a reader; then the actor waits.
constexpr std::uint32_t parts_in_window = 8;
// A batch that takes longer is reported as a stall.
constexpr ring::Nanoseconds longest_batch = std::chrono::seconds(60);

// What the actor and those who ask share.
struct TrackingActorState {
  TrackingActorState(ring::Runtime& its_runtime, std::shared_ptr<TrackingSession> its_session)
      : runtime(its_runtime), session(std::move(its_session)) {}

  ring::Runtime& runtime;
  const std::shared_ptr<TrackingSession> session;
  ring::ActorHandle actor;
  std::mutex mutex;
  std::map<std::uint64_t, CancelSource> open;  // by the handle of the request; guarded by mutex

  static std::uint64_t key_of(const BufferHandle& request) {
    return std::uint64_t{request.slot} << 32U | request.generation;
  }
  // The token of a request that was asked through TrackingActors; one that
  // nobody cancels for others.
  [[nodiscard]] CancelToken token_of(const BufferHandle& request) {
    const std::lock_guard lock(mutex);
    const auto found = open.find(key_of(request));
    return found == open.end() ? CancelSource().token() : found->second.token();
  }
};

class TrackingActorBody {
 public:
  explicit TrackingActorBody(std::shared_ptr<TrackingActorState> state) : state_(std::move(state)) {}

  template <class Context>
  int operator()(Context& context) {
    Message message;
    for (;;) {
      if (waiting_.empty()) {
        if (!context.receive(message)) return 0;
        admit(context, message);
      }
      admit_all(context);
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      answer(context, next);
    }
  }

 private:
  struct Waiting {
    Message message;
    std::uint32_t channel = 0;
  };

  void release(const BufferHandle& handle) { static_cast<void>(state_->runtime.buffers().release(handle)); }

  // What has come in the meantime. Of a channel only the newest stays.
  template <class Context>
  void admit_all(Context& context) {
    Message message;
    while (context.try_receive(message) == ring::GetStatus::taken) admit(context, message);
  }
  template <class Context>
  void admit(Context& context, const Message& message) {
    Waiting request{message, 0};
    if (ring::holds<TrackSeeds>(message)) {
      if (auto bytes = state_->runtime.buffers().get(ring::payload<TrackSeeds>(message).request)) {
        if (const auto head = read_request_head(*bytes)) request.channel = head->channel;
      }
    }
    if (request.channel != 0) {
      for (auto older = waiting_.begin(); older != waiting_.end();) {
        if (older->channel != request.channel) {
          ++older;
          continue;
        }
        end(context, older->message, TrackingOutcome::superseded);
        older = waiting_.erase(older);
      }
    }
    waiting_.push_back(std::move(request));
  }
  [[nodiscard]] bool is_superseded(const Waiting& request) const {
    if (request.channel == 0) return false;
    for (const Waiting& newer : waiting_) {
      if (newer.channel == request.channel) return true;
    }
    return false;
  }

  template <class Context>
  void end(Context& context, const Message& message, TrackingOutcome outcome) {
    context.send(ring::make_reply(message, TrackingEnd{{}, outcome, 0}));
  }
  template <class Context>
  void end(Context& context, const Message& message, const Error& error) {
    TrackingEnd ended{{}, TrackingOutcome::failed, static_cast<std::uint32_t>(error.kind())};
    const std::string& text = error.message();
    if (error.kind() == ErrorKind::interrupted) {
      ended.outcome = TrackingOutcome::cancelled;
    } else if (auto handle = state_->runtime.buffers().add(std::max<std::size_t>(text.size(), 1))) {
      ended.text = *handle;
      std::memcpy(state_->runtime.buffers().get(*handle)->data(), text.data(), text.size());
    }
    Message reply = ring::make_reply(message, ended);
    if (ended.text.generation != 0) reply.header.flags |= ring::mark_handle;
    if (context.send(reply) != ring::PutStatus::stored && ended.text.generation != 0) release(ended.text);
  }

  template <class Context>
  void answer(Context& context, const Waiting& asked) {
    if (context.should_stop()) return end(context, asked.message, TrackingOutcome::cancelled);
    const Status outcome = track(context, asked);
    if (!outcome) return end(context, asked.message, outcome.error());
    end(context, asked.message, is_superseded(asked) ? TrackingOutcome::superseded : TrackingOutcome::done);
  }

  template <class Context>
  Status track(Context& context, const Waiting& asked) {
    if (!ring::holds<TrackSeeds>(asked.message)) {
      return fail(ErrorKind::invalid_argument, "a tracking actor takes requests of type TrackSeeds");
    }
    const BufferHandle handle = ring::payload<TrackSeeds>(asked.message).request;
    CGL_TRY_ASSIGN(TrackingRequest request, read_request(handle));
    if (request.seeds == nullptr) return {};
    CGL_TRY_ASSIGN(const auto answer, state_->session->ask(std::move(request)));
    for (;;) {
      context.heartbeat();
      admit_all(context);
      if (is_superseded(asked)) return {};
      if (context.should_stop() || !context.is_wanted(asked.message)) {
        return fail(ErrorKind::interrupted, "nobody waits for these streamlines any more");
      }
      CGL_TRY_ASSIGN(const StreamlineBatch* const batch, answer->next());
      if (batch == nullptr) return {};
      CGL_TRY_ASSIGN(const BufferHandle part, state_->runtime.buffers().add(bytes_of_part(*batch)));
      CGL_TRY_ASSIGN(const std::span<std::byte> bytes, state_->runtime.buffers().get(part));
      write_part(*batch, bytes);
      Message message = ring::make_part(asked.message, TrackedPart{part});
      message.header.flags |= ring::mark_handle;
      if (context.send(message) != ring::PutStatus::stored) release(part);
    }
  }

  // A copy: the requester may give its buffer back at any time. No seeds: null.
  Result<TrackingRequest> read_request(const BufferHandle& handle) {
    ring::BufferTable& buffers = state_->runtime.buffers();
    CGL_TRY(buffers.retain(handle));
    Result<TrackingRequest> request = [&]() -> Result<TrackingRequest> {
      CGL_TRY_ASSIGN(const std::span<std::byte> bytes, buffers.get(handle));
      CGL_TRY_ASSIGN(const TrackingRequestHead head, read_request_head(bytes));
      TrackingRequest read;
      read.plan = head.plan;
      read.cancel = state_->token_of(handle);
      const auto vectors = [&](std::size_t first) {
        std::vector<numerics::Vec3> values(head.seeds);
        std::memcpy(values.data(), bytes.data() + sizeof head + first * sizeof(numerics::Vec3),
                    values.size() * sizeof(numerics::Vec3));
        return values;
      };
      if (head.seeds == 0) return read;
      CGL_TRY_ASSIGN(read.seeds, listed_seeds(vectors(0)));
      if (head.has_directions != 0u) {
        auto directions = std::make_shared<GivenDirections>();
        directions->directions = vectors(head.seeds);
        read.directions = std::move(directions);
      }
      return read;
    }();
    release(handle);
    return request;
  }

  std::shared_ptr<TrackingActorState> state_;
  std::deque<Waiting> waiting_;
};

class ActorStream final : public StreamlineStream {
 public:
  ActorStream(std::shared_ptr<TrackingActorState> state, const BufferHandle& request, CancelSource source,
              ring::ReplyStream answers)
      : state_(std::move(state)), request_(request), source_(std::move(source)), answers_(std::move(answers)) {}
  // Parts that were sent and not read are given back by reading them.
  ~ActorStream() override {
    source_.cancel();
    constexpr ring::Nanoseconds patience = std::chrono::seconds(10);
    while (!ended_)
      static_cast<void>(next(patience).map_error([&](Error error) {
        ended_ = true;
        return error;
      }));
    static_cast<void>(state_->runtime.buffers().release(request_));
    const std::lock_guard lock(state_->mutex);
    state_->open.erase(TrackingActorState::key_of(request_));
  }

  [[nodiscard]] Result<std::optional<StreamlineBatch>> next(ring::Nanoseconds timeout) override {
    return catch_out_of_memory([&]() -> Result<std::optional<StreamlineBatch>> {
      if (failure_) return tl::make_unexpected(*failure_);
      if (ended_) return std::optional<StreamlineBatch>();
      auto answer = answers_.next(timeout);
      if (!answer) {
        if (answer.error().kind() != ErrorKind::timed_out) finish(answer.error());
        return tl::make_unexpected(std::move(answer.error()));
      }
      if (answer->has_value() && ring::holds<TrackedPart>(**answer)) {
        return read(ring::payload<TrackedPart>(**answer).part);
      }
      ended_ = true;
      if (!answer->has_value()) return std::optional<StreamlineBatch>();
      const auto end = ring::payload<TrackingEnd>(**answer);
      if (end.outcome == TrackingOutcome::done) return std::optional<StreamlineBatch>();
      finish(error_of(end));
      return tl::make_unexpected(*failure_);
    });
  }
  void cancel() override { source_.cancel(); }

 private:
  void finish(const Error& error) {
    ended_ = true;
    failure_ = error;
  }

  [[nodiscard]] Result<std::optional<StreamlineBatch>> read(const BufferHandle& part) {
    ring::BufferTable& buffers = state_->runtime.buffers();
    StreamlineBatch batch;
    const Result<TrackedPartHead> head =
        buffers.get(part).and_then([&](std::span<std::byte> bytes) { return read_part(bytes, batch); });
    static_cast<void>(buffers.release(part));
    if (head) return std::optional<StreamlineBatch>(std::move(batch));
    finish(head.error());
    return tl::make_unexpected(head.error());
  }

  [[nodiscard]] Error error_of(const TrackingEnd& end) {
    if (end.outcome == TrackingOutcome::cancelled) return Error(ErrorKind::interrupted, "tracking was cancelled");
    if (end.outcome == TrackingOutcome::superseded) {
      return Error(ErrorKind::interrupted, "a newer request took this one's place");
    }
    ring::BufferTable& buffers = state_->runtime.buffers();
    std::string text = "tracking failed";
    if (const auto bytes = buffers.get(end.text)) {
      text.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      static_cast<void>(buffers.release(end.text));
    }
    return Error(static_cast<ErrorKind>(end.error_kind), std::move(text));
  }

  const std::shared_ptr<TrackingActorState> state_;
  const BufferHandle request_;
  CancelSource source_;
  ring::ReplyStream answers_;
  bool ended_ = false;
  std::optional<Error> failure_;
};

class OneTrackingActor final : public TrackingActors {
 public:
  OneTrackingActor(std::shared_ptr<TrackingActorState> state, std::string name)
      : state_(std::move(state)), name_(std::move(name)) {}
  ~OneTrackingActor() override {
    {
      const std::lock_guard lock(state_->mutex);
      for (auto& [request, source] : state_->open) source.cancel();
    }
    static_cast<void>(state_->runtime.terminate(name_, ring::Termination::discard()));
    state_->actor.reset();  // whose body has the state
  }

  [[nodiscard]] Result<std::unique_ptr<StreamlineStream>> ask(const TrackingQuestion& question) override {
    return catch_out_of_memory([&]() -> Result<std::unique_ptr<StreamlineStream>> {
      CGL_TRY(check_question(question));
      ring::BufferTable& buffers = state_->runtime.buffers();
      CGL_TRY_ASSIGN(const BufferHandle request, buffers.add(bytes_of_request(question)));
      CGL_TRY_ASSIGN(const std::span<std::byte> bytes, buffers.get(request));
      write_request(question, bytes);
      CancelSource source;
      {
        const std::lock_guard lock(state_->mutex);
        state_->open.emplace(TrackingActorState::key_of(request), source);
      }
      Message message = ring::make_message(TrackSeeds{request});
      message.header.flags |= ring::mark_handle;
      auto answers = state_->runtime.request_stream(*state_->actor, message, {.window = parts_in_window});
      if (answers) {
        return std::make_unique<ActorStream>(state_, request, std::move(source), std::move(*answers));
      }
      static_cast<void>(buffers.release(request));
      const std::lock_guard lock(state_->mutex);
      state_->open.erase(TrackingActorState::key_of(request));
      return tl::make_unexpected(std::move(answers.error()));
    });
  }

 private:
  std::shared_ptr<TrackingActorState> state_;
  const std::string name_;
};

}  // namespace

Result<std::unique_ptr<TrackingActors>> start_tracking_actor(ring::Runtime& runtime, std::string name,
                                                             std::shared_ptr<TrackingSession> session) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TrackingActors>> {
    auto state = std::make_shared<TrackingActorState>(runtime, std::move(session));
    ring::ActorOptions options;
    options.stall_limit = longest_batch;
    CGL_TRY_ASSIGN(state->actor, runtime.launch(name, TrackingActorBody(state), options));
    auto actors = std::make_unique<OneTrackingActor>(state, std::move(name));
    CGL_TRY(state->actor->activate());
    return actors;
  });
}

}  // namespace cingulum
