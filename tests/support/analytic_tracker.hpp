// A tracker whose streamlines are known exactly and a writer into memory, for tests of runs. The tracker fails, is
// interrupted or is slow where the test asks for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/interrupt.hpp"
#include "formats/tractogram.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::test {

inline constexpr double step_mm = 0.5;

inline ImageGeometry geometry() {
  ImageGeometry g;
  g.size = {50, 50, 50};
  g.voxel_to_world.rows = {1.9, 0.2, 0, -40, -0.2, 1.9, 0.1, 3, 0, -0.1, 2.2, 11};
  return g;
}

// Streamlines that are known exactly: seed i has i mod 3 of them, straight along x, with i mod 17 points on one side
// and (i div 3) mod 13 on the other.
class AnalyticTracker final : public Tracker {
 public:
  explicit AnalyticTracker(const Seeds& seeds) : seeds_(seeds) {}

  [[nodiscard]] Status supports(const TrackingPlan&, const Field&) const override { return {}; }
  [[nodiscard]] Status prepare(const TrackingPlan&, const Field&, const Seeds&, const GivenDirections*) override {
    return {};
  }
  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel = {}) override {
    batch = {};
    batch.seeds = range;
    ++calls;
    if (interrupt_at_call == calls) request_interrupt();
    // A range that takes long polls while it is tracked.
    const auto end =
        std::chrono::steady_clock::now() + (calls >= slow_from_call ? delay : std::chrono::milliseconds(0));
    while (!cancel.cancelled() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CGL_TRY(cancel.check());
    if (fail_at_call == calls) return fail(ErrorKind::device, "the device is gone");
    std::vector<numerics::Vec3> positions(static_cast<std::size_t>(range.count));
    seeds_.fill(range.first, positions);
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t seed = range.first + i;
      const numerics::Vec3 p = positions[static_cast<std::size_t>(i)];
      if (seed % 3 == 0) ++batch.seeds_outside;
      for (std::uint64_t direction = 0; direction < seed % 3; ++direction) {
        const auto before = static_cast<int>(seed % 17);
        const auto after = static_cast<int>(seed / 3 % 13);
        for (int n = -before; n <= after; ++n) {
          batch.points.insert(batch.points.end(),
                              {p.x + 0.25f * static_cast<float>(n), p.y + static_cast<float>(direction), p.z});
        }
        batch.offsets.push_back(batch.points.size() / 3);
        batch.seed_index.push_back(seed);
        batch.seed_point.push_back(static_cast<std::uint32_t>(before));
        batch.end_reason.push_back(static_cast<std::uint8_t>(EndReason::stop_map));
        batch.end_reason.push_back(static_cast<std::uint8_t>(EndReason::no_direction));
        batch.steps += static_cast<std::uint64_t>(before + after);
      }
    }
    return {};
  }

  std::atomic<int> calls = 0;
  std::chrono::milliseconds delay{0};  // of calls from slow_from_call on
  int slow_from_call = 1;
  int interrupt_at_call = 0;
  int fail_at_call = 0;

 private:
  const Seeds& seeds_;
};

// The positions of a batch, made where it makes them, streamline by streamline from the last to the first.
inline std::vector<float> positions_of(const TractogramBatch& batch) {
  if (!batch.make_positions) return batch.positions;
  std::vector<float> made(3 * batch.point_count());
  for (std::size_t i = batch.streamline_count(); i-- > 0;) {
    const auto first = 3 * static_cast<std::size_t>(batch.offsets[i]);
    const auto end = 3 * static_cast<std::size_t>(batch.offsets[i + 1]);
    batch.make_positions(i, i + 1, std::span(made).subspan(first, end - first));
  }
  return made;
}

class MemoryWriter final : public TractogramWriter {
 public:
  [[nodiscard]] bool makes_positions() const override { return makes; }
  [[nodiscard]] Status append(const TractogramBatch& batch) override {
    if (fail_append) return fail(ErrorKind::io, "the disk is full");
    const std::uint64_t base = offsets.back();
    for (std::size_t s = 1; s < batch.offsets.size(); ++s) offsets.push_back(base + batch.offsets[s]);
    if (batch.make_positions) {
      EXPECT_TRUE(makes && batch.positions.empty() && batch.positions64.empty());
      ++made_batches;
    }
    const std::vector<float> floats = positions_of(batch);
    positions.insert(positions.end(), floats.begin(), floats.end());
    positions64.insert(positions64.end(), batch.positions64.begin(), batch.positions64.end());
    if (data.size() < batch.streamline_data.size()) data.resize(batch.streamline_data.size());
    for (std::size_t f = 0; f < batch.streamline_data.size(); ++f) {
      data[f].insert(data[f].end(), batch.streamline_data[f].begin(), batch.streamline_data[f].end());
    }
    largest_batch = std::max(largest_batch, batch.point_count());
    return {};
  }
  [[nodiscard]] Status add_group(TractogramGroup) override { return {}; }
  [[nodiscard]] Status commit() override { return {}; }

  std::vector<std::uint64_t> offsets = {0};
  std::vector<float> positions;
  std::vector<double> positions64;
  std::vector<std::vector<std::byte>> data;
  std::size_t largest_batch = 0;
  std::size_t made_batches = 0;
  bool fail_append = false;
  bool makes = false;  // takes batches that make their positions
};

inline std::unique_ptr<Seeds> some_seeds(std::uint64_t count) {
  const std::vector<std::uint8_t> mask(50 * 50 * 50, 1);
  return random_seeds(geometry(), mask, count, numerics::philox_key(3)).value();
}

struct InterruptGuard {
  ~InterruptGuard() { clear_interrupt(); }
};

}  // namespace cingulum::test
