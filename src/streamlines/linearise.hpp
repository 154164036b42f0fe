// Fewer points for the same line: points are dropped while the straight piece that replaces them stays within a
// tolerance of each of them. Called by `convert` and by the run of a tracker. It knows nothing of files.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

struct LinearisePlan {
  double tolerance_mm = 0.1;   // of every dropped point from the segment that replaces it
  double max_segment_mm = 10;  // no new segment is longer; segments that were longer before stay
};

// The first and the last point of a streamline are kept, and the per-point data of the points that are kept. From a
// kept point the segment is stretched, point by point, until it fails; the last good end is kept and the next segment
// begins there. Computed in float64; the result depends on the streamline alone. Points that are not finite are kept.
[[nodiscard]] Result<TractogramBatch> linearise(const TractogramBatch& batch, const TractogramLayout& layout,
                                                const LinearisePlan& plan);

// The same of one batch after the other: the threads of a pool share the streamlines, and memory is used again.
// one caller at a time
class Lineariser {
 public:
  Lineariser(LinearisePlan plan, ThreadPool* pool) : plan_(plan), pool_(pool) {}
  // Replaces what `result` held.
  [[nodiscard]] Status apply(const TractogramBatch& batch, const TractogramLayout& layout, TractogramBatch& result);

 private:
  const LinearisePlan plan_;
  ThreadPool* const pool_;           // may be null
  std::vector<std::uint32_t> kept_;  // for each streamline, from its first point on: which of its points are kept
};

}  // namespace cingulum
