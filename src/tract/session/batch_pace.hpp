// How many seeds make a batch of an answer: so many that it takes about a given time, by what earlier batches of the
// same getter took. The streamlines do not depend on it. Used by a TrackingSession, and by a page that tracks itself.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tract/kernel/plan.hpp"

namespace cingulum {

// any thread
class BatchPace {
 public:
  // A batch has at least so many seeds: fewer leave most of a device idle.
  static constexpr std::uint64_t fewest_seeds = 16;
  // Seeds of the first batch of a getter, whose pace is not yet known.
  static constexpr std::uint64_t first_seeds = 64;

  [[nodiscard]] std::uint64_t seeds_of_batch(std::uint32_t getter, std::uint64_t left, double seconds) const {
    const double pace = seconds_per_seed_[getter];
    if (!(pace > 0)) return std::min(left, first_seeds);
    const double seeds = std::max(seconds / pace, static_cast<double>(fewest_seeds));
    // What is hardly a batch of its own goes with this one.
    if (seeds + static_cast<double>(fewest_seeds) > static_cast<double>(left)) return left;
    return static_cast<std::uint64_t>(seeds);
  }

  void note(std::uint32_t getter, std::uint64_t seeds, double seconds) {
    std::atomic<double>& pace = seconds_per_seed_[getter];
    const double before = pace, now = seconds / static_cast<double>(seeds);
    pace = before > 0 ? before + newest_share * (now - before) : now;
  }

 private:
  // A part of the newest pace in the one that is kept: one slow batch is forgotten within a few.
  static constexpr double newest_share = 0.5;
  static constexpr std::size_t getter_count = static_cast<std::size_t>(Getter::tensor) + 1;
  std::array<std::atomic<double>, getter_count> seconds_per_seed_ = {};  // 0: nothing is known
};

}  // namespace cingulum
