// The seam between a run and the device that tracks: a Tracker takes ranges of seeds and gives back their streamlines.
// One implementation per backend (cpu/, cuda/, webgpu/), all with the same bits; make_tracker (device_choice.hpp) makes
// the one of a device. Called by the run's driver, which shares the seeds among trackers, orders, selects and writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "tract/field/field.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// The streamlines of consecutive seeds, ordered by seed, then initial direction. Points are voxel coordinates in
// float32; from the end of the half that starts against the initial direction, through the seed, to the end of the
// other half.
struct StreamlineBatch {
  SeedRange seeds;
  std::vector<std::uint64_t> offsets = {0};  // streamlines + 1, in points
  MappedVector<float> points;                // x y z
  std::vector<std::uint64_t> seed_index;     // per streamline
  std::vector<std::uint32_t> seed_point;     // per streamline: which of its points is the seed
  std::vector<std::uint8_t> end_reason;      // per streamline: 2, start and end (EndReason)
  std::uint64_t steps = 0;                   // direction getter calls
  std::uint64_t seeds_outside = 0;           // seeds where the stopping map or the image forbids to start
  std::uint64_t seeds_without_direction = 0;

  [[nodiscard]] std::size_t streamline_count() const { return offsets.size() - 1; }
};

// Initial directions given by the user: unit vectors in image axes, one per seed, by global seed index.
struct GivenDirections {
  std::vector<numerics::Vec3> directions;
};

// How a backend likes its work. Advice: the result does not depend on it.
struct TrackerHints {
  std::uint32_t callers = 1;  // threads that may call track() at the same time, so that copies and kernels overlap
  std::uint64_t first_range = 2048;  // seeds of its first range; later ones follow from how long a range takes
};

// What every tracker refuses: directions that are not one per seed; a range before prepare (no seeds yet), beyond the
// seeds, or beyond 2^32, the most that the counters of random numbers tell apart.
[[nodiscard]] Status check_given_directions(const GivenDirections* directions, const Seeds& seeds);
[[nodiscard]] Status check_seed_range(SeedRange range, const Seeds* seeds);

class Tracker {
 public:
  virtual ~Tracker() = default;
  // The device's id: "cpu", "cuda:0".
  [[nodiscard]] virtual std::string name() const { return "cpu"; }
  [[nodiscard]] virtual TrackerHints hints() const { return {}; }
  // Whether this backend can run it; the failure says why not. any thread
  [[nodiscard]] virtual Status supports(const TrackingPlan& plan, const Field& field) const = 0;
  // Keeps references: plan, field and seeds outlive the tracker. one caller at a time, and no track() meanwhile
  [[nodiscard]] virtual Status prepare(const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                                       const GivenDirections* directions) = 0;
  // A tracker of another plan and other seeds on the field that this one was prepared with, prepared itself. It shares
  // the field on the device and, where the getter was prepared before, tables and kernels; so it costs a fraction of
  // prepare(), and its bits are those of one that was prepared alone. Both may track at the same time, and either may
  // go first. Keeps references, as prepare() does. any thread, but none that prepares this one
  [[nodiscard]] virtual Result<std::unique_ptr<Tracker>> beside(const TrackingPlan& plan, const Seeds& seeds,
                                                                const GivenDirections* directions);
  // Tracks a range and replaces the content of `batch`. The result depends on plan, field and seeds alone. Fails with
  // kind interrupted soon after `cancel` was cancelled; the tracker can go on to another range then. Of calls at the
  // same time hints().callers run side by side, each with a batch of its own, and further ones wait. any thread
  [[nodiscard]] virtual Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel = {}) = 0;
  // Time that the tracking kernels of a device took since prepare, as the device measures it; 0 where none does.
  [[nodiscard]] virtual double kernel_seconds() const { return 0; }
};

[[nodiscard]] std::unique_ptr<Tracker> make_cpu_tracker(ThreadPool& pool);

}  // namespace cingulum
