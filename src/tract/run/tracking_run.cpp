#include "tract/run/tracking_run.hpp"

#include <future>
#include <utility>

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
    TrackingRunOptions own = options;
    own.late_positions = writer.makes_positions();
    CGL_TRY_ASSIGN(const auto batches, TrackingBatches::start(trackers, seeds, geometry, own, progress));
    // With overlap a batch is written while the next one is finished. For small batches a thread costs more than it
    // saves.
    constexpr std::size_t least_points_beside = std::size_t{1} << 16U;
    std::future<Status> writing;
    while (true) {
      auto next = batches->next();
      if (writing.valid()) CGL_TRY(writing.get());
      CGL_TRY_ASSIGN(const TractogramBatch* const batch, std::move(next));
      if (batch == nullptr) return batches->statistics();
      if (options.overlap && batch->point_count() >= least_points_beside) {
        writing =
            std::async(std::launch::async | std::launch::deferred, [&writer, batch] { return writer.append(*batch); });
      } else {
        CGL_TRY(writer.append(*batch));
      }
    }
  });
}

}  // namespace cingulum
