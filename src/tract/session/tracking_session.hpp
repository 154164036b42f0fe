// Keeps a field on a device and answers requests: plan and seeds come with each request, streamlines leave in batches,
// and one request can be cancelled without the others. Opening brings the field there once; after that another plan
// costs its numbers, and another getter its tables and kernels. The bits are those of a tracker that is prepared anew
// for every request, and so those of `cingulum track`. Made by whoever answers many small questions about one field:
// a viewer, Python, the actors of examples/tracking_actors.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "device/device.hpp"
#include "tract/field/field.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

struct TrackingSessionOptions {
  // The threshold that the field was prepared for: voxels which only lower ones reach are not stored in it
  // (dwi_preparation.hpp), so lower ones are refused. Any higher one gives the bytes of a field prepared for that one.
  float lowest_stop_threshold = -std::numeric_limits<float>::infinity();
  // The seeds of a batch are chosen so that it takes about this long, by what earlier batches of the getter took: the
  // first one short, so that something is there soon. The streamlines do not depend on it.
  double first_batch_seconds = 0.0005;
  double batch_seconds = 0.01;
};

// What is asked. Plan and seeds are the request's own; two requests share nothing but the field.
struct TrackingRequest {
  TrackingPlan plan{};
  std::shared_ptr<const Seeds> seeds;
  std::shared_ptr<const GivenDirections> directions = nullptr;  // one per seed; null: those that the field has there
  CancelToken cancel = {};                                      // of this request alone
};

struct TrackingSessionCounts {
  std::uint64_t requests = 0;
  std::uint64_t answered = 0;   // to the last seed
  std::uint64_t cancelled = 0;  // by their token, or given up before the end
  std::uint64_t failed = 0;
  std::uint64_t batches = 0;
  std::uint64_t seeds = 0;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
};

class TrackingAnswer;

class TrackingSession {
 public:
  // Brings the field to the device, with tables and kernels of the getter of `first`. A field that the device holds in
  // bricks only is cut for what `first` reads around a point: give the plan that reaches farthest. Device and pool
  // outlive the session.
  [[nodiscard]] static Result<std::shared_ptr<TrackingSession>> open(Device& device, ThreadPool& pool,
                                                                     std::shared_ptr<const Field> field,
                                                                     const TrackingPlan& first,
                                                                     const TrackingSessionOptions& options = {});
  ~TrackingSession();
  TrackingSession(const TrackingSession&) = delete;
  TrackingSession& operator=(const TrackingSession&) = delete;

  // Refuses what cannot be tracked; the answer then is pulled batch by batch. Several may be open at the same time;
  // they share the device, and none waits for another to end. any thread
  [[nodiscard]] Result<std::unique_ptr<TrackingAnswer>> ask(TrackingRequest request);

  [[nodiscard]] const Field& field() const;
  // The device's id.
  [[nodiscard]] std::string name() const;
  // any thread
  [[nodiscard]] TrackingSessionCounts counts() const;

 private:
  friend class TrackingAnswer;
  struct State;
  explicit TrackingSession(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

// The streamlines of one request. It may outlive its session, whose field stays until the last answer is gone.
class TrackingAnswer {
 public:
  ~TrackingAnswer();  // before the end: the request is given up
  TrackingAnswer(const TrackingAnswer&) = delete;
  TrackingAnswer& operator=(const TrackingAnswer&) = delete;

  // The streamlines of the next seeds, in their order; null after the last. Valid until the next call. Fails with kind
  // interrupted soon after the request's token was cancelled. A failure is final. one caller at a time
  [[nodiscard]] Result<const StreamlineBatch*> next();
  // A tracker that is prepared for the request, for what takes one: TrackingBatches and run_tracking judge, map and
  // write streamlines as a run does. Not while next() is called.
  [[nodiscard]] Tracker& tracker();

 private:
  friend class TrackingSession;
  TrackingAnswer(std::shared_ptr<TrackingSession::State> session, TrackingRequest request,
                 std::unique_ptr<Tracker> tracker) noexcept;

  std::shared_ptr<TrackingSession::State> session_;
  TrackingRequest request_;
  std::unique_ptr<Tracker> tracker_;
  StreamlineBatch batch_;
  std::uint64_t done_ = 0;  // seeds
  bool has_ended_ = false;
  std::optional<Error> failure_;
};

}  // namespace cingulum
