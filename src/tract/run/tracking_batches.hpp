// A run of tractography whose results are pulled: ranges of seeds go through one Tracker or several, their streamlines
// are cut, judged, mapped to the world and come out in batches, in the order of the seeds. Memory is that of the ranges
// being tracked and one batch. Called by run_tracking, which writes the batches to a file, and by whoever iterates over
// them; knows no device and no format.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"
#include "formats/tractogram.hpp"
#include "streamlines/lengths.hpp"
#include "tract/run/selection.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

// A streamline that was kept, and what was counted since the one before it: so a run that stops at any of them can be
// told from one that went on (run_part.hpp).
struct KeptStreamline {
  std::uint64_t seed = 0;
  std::uint64_t seeds_with_streamlines = 0;
  std::uint64_t streamlines = 0;  // judged, this one among them
  std::uint64_t too_short = 0;
  std::uint64_t too_long = 0;
  std::uint64_t too_few_points = 0;
  std::uint64_t too_many_points = 0;
  std::uint64_t refused_by_regions = 0;
  std::uint64_t points = 0;  // of this one, before linearisation
  EndReason start_reason = {};
  EndReason end_reason = {};
  double length_mm = 0;
};

struct TrackingRunOptions {
  SelectionRules selection = {};
  std::uint64_t select = 0;             // stop after this many kept streamlines; 0: keep all
  std::uint64_t max_seeds = 0;          // with select: seeds tried at most; 0: 1000 times select
  std::optional<SeedRange> range = {};  // of all seeds these alone: a part of the run
  bool keep_trail = false;              // statistics.trail is filled
  std::uint64_t chunk_seeds = 25000;    // tracked at a time, at most; the result does not depend on it
  bool fixed_chunks = false;            // always chunk_seeds; otherwise ranges grow until they take a good while
  bool save_seeds = false;              // per-streamline data of seed_fields()
  bool double_positions = false;        // give the writer float64, for a file of float64 or float16
  bool late_positions = false;          // batches make float32 positions when they are written; run_tracking's own
  double linearise_mm = 0;              // leave points out that lie within this of the line between others; 0: keep all
  double max_segment_mm = 10;           // no segment that linearisation makes is longer
  bool keep_partial = false;            // cancelling ends the run, and what is finished counts
  ThreadPool* pool = nullptr;           // shares the judging and mapping of streamlines
  bool overlap = true;                  // judge and write one range while others are tracked
  CancelToken cancel = {};              // ends the run with a failure of kind interrupted
};

// The fields of TRX that a run can add: seed_index, seed_point (world mm), end_reason (start, end; docs/tractography.md
// names the codes). `seeds` decides whether 32 bits suffice.
[[nodiscard]] std::vector<DataField> seed_fields(std::uint64_t seeds);

// The seeds that a run may try: all, or with select at most max_seeds.
[[nodiscard]] std::uint64_t seeds_of_run(const Seeds& seeds, const TrackingRunOptions& options);

struct TrackingStatistics {
  // The same for equal runs. With select everything after the last kept streamline is left out.
  std::uint64_t seeds = 0;                   // from the first to the last that counts
  std::uint64_t seeds_with_streamlines = 0;  // with at least one, kept or not
  std::uint64_t streamlines = 0;             // judged
  std::uint64_t kept = 0;
  std::uint64_t too_short = 0;
  std::uint64_t too_long = 0;
  std::uint64_t too_few_points = 0;
  std::uint64_t too_many_points = 0;
  std::uint64_t refused_by_regions = 0;
  std::uint64_t points = 0;                                      // of the kept, before linearisation
  std::uint64_t points_written = 0;                              //
  std::array<std::uint64_t, end_reason_count> end_reasons = {};  // of both ends of the kept
  LengthHistogram lengths;                                       // of the kept
  bool select_reached = true;                                    // or nothing was asked for
  bool interrupted = false;                                      // and keep_partial was set
  std::vector<KeptStreamline> trail = {};                        // with keep_trail: every streamline that was kept

  // What the device did; with select it may have gone beyond what counts.
  std::uint64_t steps = 0;
  std::uint64_t seeds_tracked = 0;
  std::uint64_t seeds_outside = 0;
  std::uint64_t seeds_without_direction = 0;
  double tracking_seconds = 0;  // during which at least one tracker was tracking
  // Seconds of the thread that takes the batches: waiting for one, finishing them, and the caller's own work.
  double waiting_seconds = 0;
  double finishing_seconds = 0;
  double writing_seconds = 0;
  std::vector<std::uint64_t> seeds_of_trackers = {};  // taken by each, in their order
};

class TrackingBatches {
 public:
  // The trackers are prepared and share the seeds (seed_sharing.hpp); they, the seeds, the options and the
  // progress outlive this. `progress` is told of a batch when the next one is asked for: by then the caller has done
  // its part.
  [[nodiscard]] static Result<std::unique_ptr<TrackingBatches>> start(std::span<Tracker* const> trackers,
                                                                      const Seeds& seeds, const ImageGeometry& geometry,
                                                                      const TrackingRunOptions& options,
                                                                      Progress* progress = nullptr);
  // Cancels what is being tracked, if any is, and waits for it. No thread is left.
  ~TrackingBatches();
  TrackingBatches(const TrackingBatches&) = delete;
  TrackingBatches& operator=(const TrackingBatches&) = delete;

  // The next streamlines that were kept, at least one; null after the last. Positions are world coordinates, float64
  // with double_positions; streamline_data has seed_fields() with save_seeds. The batch is valid until the next call
  // but one, so that it can be written by another thread while the next one is made. A failure of a tracker comes after
  // the batches before it, and then again. one caller at a time
  [[nodiscard]] Result<const TractogramBatch*> next();
  // Statistics of the batches so far; after the last batch, of the run. one caller at a time
  [[nodiscard]] const TrackingStatistics& statistics() const noexcept;

 private:
  struct State;
  explicit TrackingBatches(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace cingulum
