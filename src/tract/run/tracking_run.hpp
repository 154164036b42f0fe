// A run of tractography from seeds to a file: pulls the batches of tracking_batches.hpp and hands them to a writer
// while the next are tracked. Called by `cingulum track` and Python; knows no device and no format.
#pragma once

#include <span>

#include "tract/run/tracking_batches.hpp"

namespace cingulum {

// The trackers are prepared and share the seeds (seed_sharing.hpp). Writes to `writer` and leaves committing it to the
// caller. any thread, with trackers and a writer of its own
[[nodiscard]] Result<TrackingStatistics> run_tracking(std::span<Tracker* const> trackers, const Seeds& seeds,
                                                      const ImageGeometry& geometry, const TrackingRunOptions& options,
                                                      TractogramWriter& writer, Progress* progress);
// The same with one tracker.
[[nodiscard]] Result<TrackingStatistics> run_tracking(Tracker& tracker, const Seeds& seeds,
                                                      const ImageGeometry& geometry, const TrackingRunOptions& options,
                                                      TractogramWriter& writer, Progress* progress);

}  // namespace cingulum
