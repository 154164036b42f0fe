// Shares the seeds of one run among trackers: each takes the next range as soon as it is free, and the batches come out
// in the order of the seeds, whoever tracked them. Since all trackers compute the same bits, the result is as from one.
// Used by TrackingBatches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

struct SeedSharingOptions {
  std::uint64_t first = 0;      // seed
  std::uint64_t total = 0;      // seeds of the run: those from `first` to before this are tracked
  std::uint64_t chunk = 25000;  // of a range, at most
  bool fixed_chunks = false;    // always `chunk`; otherwise ranges grow until they take a good while
  bool overlap = true;          // track while the caller works on the last batch
  std::uint32_t held = 1;       // batches that the caller keeps at a time, with overlap
  CancelToken cancel = {};      // ends the run with a failure of kind interrupted
};

class SeedSharing {
 public:
  // The trackers are prepared. Starts their threads.
  [[nodiscard]] static Result<std::unique_ptr<SeedSharing>> start(std::span<Tracker* const> trackers,
                                                                  const SeedSharingOptions& options);
  // Takes no further ranges, cancels those that are being tracked, and waits for their threads.
  virtual ~SeedSharing() = default;
  SeedSharing(const SeedSharing&) = delete;
  SeedSharing& operator=(const SeedSharing&) = delete;

  // The next batch in order, null after the last. A failure of a tracker comes after the batches before it.
  // one caller at a time
  [[nodiscard]] virtual Result<std::unique_ptr<StreamlineBatch>> next() = 0;
  // Gives a batch back, so that another range can be tracked: without it the run would stand still.
  // one caller at a time
  virtual void give_back(std::unique_ptr<StreamlineBatch> batch) = 0;
  // Time during which at least one tracker was tracking. any thread
  [[nodiscard]] virtual double tracking_seconds() const = 0;
  // Seeds that each tracker took, in the order of the trackers. any thread
  [[nodiscard]] virtual std::vector<std::uint64_t> seeds_of_trackers() const = 0;

 protected:
  SeedSharing() = default;
};

}  // namespace cingulum
