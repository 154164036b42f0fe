#include "tract/session/tracking_session.hpp"

#include <algorithm>
#include <chrono>

#include "device/working_memory.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/field/memory_need.hpp"
#include "tract/run/device_choice.hpp"
#include "tract/session/batch_pace.hpp"

namespace cingulum {
namespace {

class NoSeedsYet final : public Seeds {
 public:
  [[nodiscard]] std::uint64_t count() const override { return 0; }
  void fill(std::uint64_t, std::span<numerics::Vec3>) const override {}
};

}  // namespace

struct TrackingSession::State {
  std::shared_ptr<const Field> field;
  TrackingSessionOptions options;
  // Requests come and go: what one gives back the next one takes.
  std::shared_ptr<void> keeps_memory;
  NoSeedsYet no_seeds;
  std::unique_ptr<Tracker> tracker;  // of the first plan; those of requests share its field
  BatchPace pace;
  std::atomic<std::uint64_t> requests{0}, answered{0}, cancelled{0}, failed{0}, batches{0}, seeds{0}, streamlines{0},
      points{0};
};

TrackingSession::TrackingSession(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
TrackingSession::~TrackingSession() = default;

Result<std::shared_ptr<TrackingSession>> TrackingSession::open(Device& device, ThreadPool& pool,
                                                               std::shared_ptr<const Field> field,
                                                               const TrackingPlan& first,
                                                               const TrackingSessionOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::shared_ptr<TrackingSession>> {
    auto state = std::make_shared<State>();
    state->field = std::move(field);
    state->options = options;
    CGL_TRY_ASSIGN(state->tracker, make_tracker(device, pool));
    CGL_TRY(state->tracker->supports(first, *state->field));
    if (device.description().backend == Backend::cpu) CGL_TRY(check_host_memory(device, *state->field));
    CGL_TRY(state->tracker->prepare(first, *state->field, state->no_seeds, nullptr));
    state->keeps_memory = WorkingMemory::of(device)->keep_all();
    return std::shared_ptr<TrackingSession>(new TrackingSession(std::move(state)));
  });
}

Result<std::unique_ptr<TrackingAnswer>> TrackingSession::ask(TrackingRequest request) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TrackingAnswer>> {
    CGL_TRY(request.cancel.check());
    if (request.seeds == nullptr) return fail(ErrorKind::invalid_argument, "a request without seeds");
    // A NaN passes no comparison.
    if (!(request.plan.stop_threshold >= state_->options.lowest_stop_threshold)) {
      return fail_argument("stop_threshold", "the field was prepared for {} {} and higher; {} is lower",
                           argument_name("stop_threshold"), state_->options.lowest_stop_threshold,
                           request.plan.stop_threshold);
    }
    CGL_TRY_ASSIGN(auto tracker, state_->tracker->beside(request.plan, *request.seeds, request.directions.get()));
    ++state_->requests;
    return std::unique_ptr<TrackingAnswer>(new TrackingAnswer(state_, std::move(request), std::move(tracker)));
  });
}

const Field& TrackingSession::field() const {
  return *state_->field;
}

std::string TrackingSession::name() const {
  return state_->tracker->name();
}

TrackingSessionCounts TrackingSession::counts() const {
  return {.requests = state_->requests,
          .answered = state_->answered,
          .cancelled = state_->cancelled,
          .failed = state_->failed,
          .batches = state_->batches,
          .seeds = state_->seeds,
          .streamlines = state_->streamlines,
          .points = state_->points};
}

TrackingAnswer::TrackingAnswer(std::shared_ptr<TrackingSession::State> session, TrackingRequest request,
                               std::unique_ptr<Tracker> tracker) noexcept
    : session_(std::move(session)), request_(std::move(request)), tracker_(std::move(tracker)) {}

TrackingAnswer::~TrackingAnswer() {
  if (!has_ended_) ++session_->cancelled;
}

Result<const StreamlineBatch*> TrackingAnswer::next() {
  if (failure_) return tl::make_unexpected(*failure_);
  if (done_ == request_.seeds->count()) {
    if (!has_ended_) ++session_->answered;
    has_ended_ = true;
    return nullptr;
  }
  const TrackingSessionOptions& options = session_->options;
  const std::uint64_t count =
      session_->pace.seeds_of_batch(request_.plan.getter, request_.seeds->count() - done_,
                                    done_ == 0 ? options.first_batch_seconds : options.batch_seconds);
  const auto begin = std::chrono::steady_clock::now();
  Status outcome = tracker_->track({done_, count}, batch_, request_.cancel);
  if (!outcome) {
    ++(outcome.error().kind() == ErrorKind::interrupted ? session_->cancelled : session_->failed);
    has_ended_ = true;
    failure_ = outcome.error();
    return tl::make_unexpected(std::move(outcome.error()));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  session_->pace.note(request_.plan.getter, count, seconds);
  done_ += count;
  ++session_->batches;
  session_->seeds += count;
  session_->streamlines += batch_.streamline_count();
  session_->points += batch_.offsets.back();
  return &batch_;
}

Tracker& TrackingAnswer::tracker() {
  return *tracker_;
}

}  // namespace cingulum
