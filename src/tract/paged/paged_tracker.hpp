// The tracker of a device whose kernels address memory by pointers: cuts a range into pieces that fit, sends the seeds,
// finds initial directions, tracks all halves through pages (kernel/paged_half.hpp), adds pages and goes on when they
// run out, and brings the points back in the order of the seeds. A field that the device cannot hold is tracked in
// bricks (field_bricks.hpp); what cannot be tracked at all is refused by prepare(). Several threads may track at once,
// each with a queue and memory of its own, so that copies, kernels and the host's work overlap. The kernels are the
// backend's (PagedKernels); tests run the same driver with kernels on the host.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

class PagedKernels {
 public:
  virtual ~PagedKernels() = default;
  // Called once per plan, before any launch. Keeps the input. `in_bricks`: track() looks at work.brick
  // (kernel/brick_half.hpp).
  [[nodiscard]] virtual Status configure(const TrackingInput& input, bool in_bricks) = 0;
  // Frees what configure() took of the device.
  virtual void give_up_memory() {}
  // Kernels for another plan on the same field, which share what was made of the field; not configured yet.
  [[nodiscard]] virtual std::unique_ptr<PagedKernels> for_another_plan() const = 0;
  // All return once the work is queued. `caller`, below the number of callers, tells apart what runs at the same time.
  [[nodiscard]] virtual Status find_directions(Queue& queue, std::uint32_t caller, const kernel::PagedWork& work) = 0;
  [[nodiscard]] virtual Status track(Queue& queue, std::uint32_t caller, const kernel::PagedWork& work) = 0;
  [[nodiscard]] virtual Status compact(Queue& queue, const kernel::PagedWork& work) = 0;
};

struct PagedTrackerOptions {
  TrackerHints hints = {};
  std::uint64_t most_piece_seeds = std::uint64_t{1} << 20;  // tracked in one go; at most 2^27
  std::uint64_t first_pages = 0;                            // 0: a guess from the number of streamlines
  std::uint64_t part_points = std::uint64_t{3} << 19;       // brought back in one go, 18 MiB
};

// The device outlives the tracker.
[[nodiscard]] std::unique_ptr<Tracker> make_paged_tracker(Device& device, std::unique_ptr<PagedKernels> kernels,
                                                          const PagedTrackerOptions& options);

}  // namespace cingulum
