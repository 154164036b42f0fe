// Requests and streamlines as the bytes of buffers (tracking_messages.hpp), on the host: what is written there, and
// what is read back, checked. Used by the tracking actors.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "examples/tracking_actors/tracking_actors.hpp"
#include "examples/tracking_actors/tracking_messages.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

// Fails where directions are not one per seed, or seeds are none or too many.
[[nodiscard]] Status check_question(const TrackingQuestion& question);
[[nodiscard]] std::uint64_t bytes_of_request(const TrackingQuestion& question);
void write_request(const TrackingQuestion& question, std::span<std::byte> bytes);
// The head of a request whose seeds are all there.
[[nodiscard]] Result<TrackingRequestHead> read_request_head(std::span<const std::byte> bytes);

[[nodiscard]] std::uint64_t bytes_of_part(const StreamlineBatch& batch);
void write_part(const StreamlineBatch& batch, std::span<std::byte> bytes);
// Appends the streamlines of a buffer to `batch`; of the seeds' counts those of the last buffer count. Answers the
// head.
[[nodiscard]] Result<TrackedPartHead> read_part(std::span<const std::byte> bytes, StreamlineBatch& batch);

}  // namespace cingulum
