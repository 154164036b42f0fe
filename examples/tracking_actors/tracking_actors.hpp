// Actors (docs/ring.md) that own a field on a device and answer "streamlines from these seeds": plan and seeds go with
// each request, streamlines come back as a stream of buffers, with the bits of `cingulum track`. Two kinds: an actor on
// a host thread around a warm session, for every device (start_tracking_actor), and blocks of a kernel that stays on a
// GPU (start_resident_tracking). docs/design/ring.md says when which is faster, and why
// the product itself asks a TrackingSession and no actor.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "numerics/vec3.hpp"
#include "ring/actor/runtime.hpp"
#include "ring/resident/resident_backend.hpp"
#include "tract/field/field.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/tracker.hpp"
#include "tract/session/tracking_session.hpp"

namespace cingulum {

// The answer to one request, read by one thread. Dropping it gives up on what was not read.
class StreamlineStream {
 public:
  virtual ~StreamlineStream() = default;
  // The streamlines of the next seeds, in their order; none after the last. ErrorKind::interrupted after cancel(), and
  // when a newer request on the same channel took this one's place. ErrorKind::timed_out leaves the stream as it is.
  [[nodiscard]] virtual Result<std::optional<StreamlineBatch>> next(
      ring::Nanoseconds timeout = ring::no_time_limit) = 0;
  // Ends this request and no other. any thread
  virtual void cancel() = 0;
};

struct TrackingQuestion {
  TrackingPlan plan{};
  std::span<const numerics::Vec3> seeds = {};       // in voxels; copied
  std::span<const numerics::Vec3> directions = {};  // none, or one per seed; copied
  std::uint32_t channel = 0;  // of requests on one channel other than 0 the newest counts, and those before it end
};

// All members: any thread
class TrackingActors {
 public:
  virtual ~TrackingActors() = default;
  TrackingActors(const TrackingActors&) = delete;
  TrackingActors& operator=(const TrackingActors&) = delete;

  [[nodiscard]] virtual Result<std::unique_ptr<StreamlineStream>> ask(const TrackingQuestion& question) = 0;

 protected:
  TrackingActors() = default;
};

// An actor of this name on a thread of its own. Requests are answered one after the other, batch by batch; its state is
// that of any actor (`cingulum ring top`). The runtime outlives it; the session may be shared.
[[nodiscard]] Result<std::unique_ptr<TrackingActors>> start_tracking_actor(ring::Runtime& runtime, std::string name,
                                                                           std::shared_ptr<TrackingSession> session);

struct ResidentTrackingOptions {
  std::uint32_t actors = 32;  // blocks that stay; fewer where the device holds fewer
  std::uint32_t lanes = 256;  // threads of each
  std::uint32_t most_request_seeds = 1 << 14;
  std::uint32_t requests = 8;            // open at the same time; further ones are refused (ErrorKind::full)
  std::uint32_t most_chunk_seeds = 32;   // that an actor takes at a time, at most
  std::uint32_t most_pages = 4096;       // of 32 points, of each actor
  std::uint64_t part_bytes = 256 << 10;  // of a buffer of streamlines: two for each actor, and one for each request
  // The threshold that the field was prepared for; see TrackingSessionOptions.
  float lowest_stop_threshold = -std::numeric_limits<float>::infinity();
};

// The field on the device, whole, and a grid of actors that stay there until this goes. Getters are those that fit the
// field; `first` is any plan of one. `backend` runs ResidentTrackingBody under the name resident_tracking_body.
[[nodiscard]] Result<std::unique_ptr<TrackingActors>> start_resident_tracking(
    Device& device, std::unique_ptr<ring::ResidentBackend> backend, std::shared_ptr<const Field> field,
    const TrackingPlan& first, const ResidentTrackingOptions& options = {});
// The same on CUDA. ErrorKind::unavailable where it is not compiled in.
[[nodiscard]] Result<std::unique_ptr<TrackingActors>> start_cuda_tracking(Device& device,
                                                                          std::shared_ptr<const Field> field,
                                                                          const TrackingPlan& first,
                                                                          const ResidentTrackingOptions& options = {});
constexpr const char* resident_tracking_body = "track";

}  // namespace cingulum
