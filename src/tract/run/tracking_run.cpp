#include "tract/run/tracking_run.hpp"

namespace cingulum {

Result<TrackingStatistics> run_tracking(Tracker& tracker, const Seeds& seeds, const ImageGeometry& geometry,
                                        const TrackingRunOptions& options, TractogramWriter& writer,
                                        Progress* progress) {
  Tracker* const alone[] = {&tracker};
  return run_tracking(alone, seeds, geometry, options, writer, progress);
}

Result<TrackingStatistics> run_tracking(std::span<Tracker* const> trackers, const Seeds& seeds,
                                        const ImageGeometry& geometry, const TrackingRunOptions& options,
                                        TractogramWriter& writer, Progress* progress) {
  return catch_out_of_memory([&]() -> Result<TrackingStatistics> {
    CGL_TRY_ASSIGN(const auto batches, TrackingBatches::start(trackers, seeds, geometry, options, progress));
    while (true) {
      CGL_TRY_ASSIGN(const TractogramBatch* batch, batches->next());
      if (batch == nullptr) return batches->statistics();
      CGL_TRY(writer.append(*batch));
    }
  });
}

}  // namespace cingulum
