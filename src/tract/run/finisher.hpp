// Turns what a tracker returns into what is written: the streamlines of one batch after the other are cut, judged,
// counted, mapped to the world and thinned out, in the order of the seeds. The threads of the run's pool share all that
// takes long; each streamline goes straight to its place, which the sum over those before it gives. With late_positions
// that is the place in the file: whoever writes maps them there. Used by TrackingBatches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "formats/tractogram.hpp"
#include "streamlines/linearise.hpp"
#include "tract/run/selection.hpp"
#include "tract/run/tracking_batches.hpp"

namespace cingulum {

// one caller at a time
class Finisher {
 public:
  // Options and statistics outlive this. `wide_index`: seed_index takes 64 bits.
  Finisher(const ImageGeometry& geometry, const TrackingRunOptions& options, bool wide_index,
           TrackingStatistics& statistics);

  // Whether `select` streamlines were kept.
  [[nodiscard]] bool full() const { return options_.select > 0 && statistics_.kept >= options_.select; }
  // Whether what was kept points into the batch it was made of.
  [[nodiscard]] bool needs_batches() const { return late_; }
  // Adds to the statistics. What was kept of the batch before stays as it is, and may be written meanwhile.
  [[nodiscard]] Status finish(const StreamlineBatch& batch);
  // What was kept of the last batch.
  [[nodiscard]] const TractogramBatch& kept() const { return result_[last_]; }

 private:
  struct Judged {
    StreamlineCut cut;
    double length = 0;
    SelectionVerdict verdict = SelectionVerdict::kept;
  };

  template <class Body>
  void share(std::size_t count, const Body& body) const;
  // Judges a streamline by the length of its points in the world. These are computed again once the streamline has its
  // place: to store and to fetch them takes longer.
  [[nodiscard]] Judged judge_one(const StreamlineBatch& batch, std::size_t s) const;
  void count_all(const StreamlineBatch& batch, std::vector<std::uint64_t>& offsets);
  void count_one(const StreamlineBatch& batch, std::size_t s, std::vector<std::uint64_t>& offsets);
  void add_to_trail(std::uint64_t seed, const Judged& judged);
  void place_one(const StreamlineBatch& batch, std::size_t i, TractogramBatch& out) const;
  void add_seed_data(const StreamlineBatch& batch, std::size_t i, TractogramBatch& out) const;
  [[nodiscard]] TractogramBatch::MakePositions late_positions(const StreamlineBatch& batch) const;

  const ImageGeometry geometry_;
  const TrackingRunOptions& options_;
  const bool wide_index_;
  const bool late_;
  TrackingStatistics& statistics_;
  KeptStreamline on_trail_;  // counts up to the last streamline of the trail
  TractogramLayout layout_;  // of what is kept
  Lineariser lineariser_;
  std::vector<Judged> judged_;  // of the batch
  TractogramBatch placed_;      // before linearisation
  std::array<TractogramBatch, 2> result_;
  struct Kept {
    std::size_t number = 0;  // in the batch
    StreamlineCut cut;
  };
  std::array<std::vector<Kept>, 2> kept_;  // of the results
  std::size_t last_ = 0;                   // of the results
};

}  // namespace cingulum
