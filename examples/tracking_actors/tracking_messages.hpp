// The messages to tracking actors and their answers (docs/ring.md): a request is a buffer with plan and seeds, named by
// a message; streamlines come back in buffers, each named by a message of its own. Host and device read and write the
// same bytes. Used by the actors beside it; others speak to them through tracking_actors.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "tract/kernel/plan.hpp"

namespace cingulum {

// A request's buffer: this, then x y z of each seed in voxels, then, with `has_directions`, x y z of each one's initial
// direction. Seed i of it is seed i of the run.
struct TrackingRequestHead {
  TrackingPlan plan;
  std::uint32_t seeds;
  std::uint32_t has_directions;
  std::uint32_t channel;  // of requests on one channel other than 0 the newest counts, and those before it end
  std::uint32_t unused;
};
static_assert(sizeof(TrackingRequestHead) % 8 == 0);

CGL_HD constexpr std::uint64_t tracking_request_bytes(std::uint64_t seeds, bool has_directions) {
  return sizeof(TrackingRequestHead) + seeds * 3u * sizeof(float) * (has_directions ? 2u : 1u);
}
CGL_HD inline const float* positions_of(const TrackingRequestHead* head) {
  return reinterpret_cast<const float*>(head + 1);
}
CGL_HD inline const float* directions_of(const TrackingRequestHead* head) {
  return positions_of(head) + 3u * static_cast<std::size_t>(head->seeds);
}

// A buffer of streamlines: this, then a TrackedLine for each, then x y z of all points in voxels. Streamlines are in
// the order of StreamlineBatch; those of [first_seed, first_seed + seeds) may come in several buffers, one after the
// other.
struct TrackedPartHead {
  std::uint32_t first_seed;
  std::uint32_t seeds;
  std::uint32_t lines;
  std::uint32_t points;
  std::uint32_t lines_in_all;  // of these seeds, before, in and after this buffer
  std::uint32_t seeds_outside;
  std::uint32_t seeds_without_direction;
  std::uint32_t unused;
  std::uint64_t steps;  // of the lines here
};
struct TrackedLine {
  std::uint32_t seed_index;
  std::uint32_t points;
  std::uint32_t seed_point;
  std::uint32_t reasons;  // start | end << 8
};
static_assert(sizeof(TrackedPartHead) == 40 && sizeof(TrackedLine) == 16);

CGL_HD constexpr std::uint64_t tracked_part_bytes(std::uint64_t lines, std::uint64_t points) {
  return sizeof(TrackedPartHead) + lines * sizeof(TrackedLine) + points * 3u * sizeof(float);
}
CGL_HD inline TrackedLine* lines_of(TrackedPartHead* head) {
  return reinterpret_cast<TrackedLine*>(head + 1);
}

// Sent to the actor on a host thread: answered by a TrackedPart for each batch and at last by a TrackingEnd.
struct TrackSeeds {
  static constexpr const char* message_name = "TrackSeeds";
  ring::BufferHandle request;
};
struct TrackedPart {
  static constexpr const char* message_name = "TrackedPart";
  ring::BufferHandle part;  // of whoever reads it, who releases it
};

enum class TrackingOutcome : std::uint32_t { done, cancelled, superseded, failed };

struct TrackingEnd {
  static constexpr const char* message_name = "TrackingEnd";
  ring::BufferHandle text;  // where it failed: why; released by whoever reads it
  TrackingOutcome outcome = TrackingOutcome::done;
  std::uint32_t error_kind = 0;  // ErrorKind
};

// Sent to a resident actor: it writes the lines from `first_line` on of a few seeds of a request into a buffer of the
// sender's, as many as fit; the sender asks again for the others.
struct TrackChunk {
  static constexpr const char* message_name = "TrackChunk";
  ring::BufferHandle request;
  ring::BufferHandle part;
  std::uint32_t first_seed = 0;
  std::uint32_t seeds = 0;
  std::uint32_t first_line = 0;
  std::uint32_t most_lines = 0;
};
static_assert(sizeof(TrackChunk) == ring::payload_capacity);

struct TrackedChunk {
  static constexpr const char* message_name = "TrackedChunk";
  ring::BufferHandle part;
};

}  // namespace cingulum
