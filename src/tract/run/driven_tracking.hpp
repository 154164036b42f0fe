// What a tracker of WebGPU does on the host between its dispatches, for a device that somebody else drives: a page in a
// browser, which has WebGPU but not our Device (web/host). It says what to upload, with which text, how many workgroups
// and which numbers a dispatch has, and takes counters and pages back. The streamlines have the bits of every Tracker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

// What WebGPU promises of every adapter stands as the defaults.
struct DrivenAdapter {
  bool software = false;
  std::uint64_t largest_binding_bytes = std::uint64_t{128} << 20U;
  std::uint32_t storage_bindings = 8;
  std::uint32_t workgroup_bytes = 16384;
};

// Bindings in this order: the tables, the pieces of the field's records, the work, the pages, the uniform block of
// numbers. All in bytes.
struct DrivenLayout {
  std::uint32_t pieces = 1;
  std::uint32_t piece_bytes = 0;  // of records in each but the last
  std::uint32_t work_bytes = 0;
  std::uint32_t pages_bytes = 0;
  std::uint32_t seeds_at = 0;              // in the work
  std::uint32_t points_at = 0;             // in the pages, behind their entries
  std::uint32_t counter_bytes = 0;         // at the beginning of the work
  std::uint32_t dispatch_counters_at = 0;  // those that are set to zero before every dispatch
  std::uint32_t dispatch_counter_bytes = 0;
  std::uint32_t pages_counter_at = 0;  // set to zero after pages were taken
  std::uint32_t entry_bytes = 0;       // of a page
  std::uint32_t page_bytes = 0;        // of its points
};

// one caller at a time
class DrivenTracking {
 public:
  virtual ~DrivenTracking() = default;

  [[nodiscard]] virtual const DrivenLayout& layout() const = 0;

  // The plan of the ranges that follow. The tables of a getter are made once.
  [[nodiscard]] virtual Status use(const TrackingPlan& plan) = 0;
  // The tables of the plan's getter, and behind them the number of its record for each voxel.
  [[nodiscard]] virtual std::vector<std::uint32_t> tables() const = 0;
  [[nodiscard]] virtual const std::string& text() const = 0;

  // The most seeds of a range.
  static constexpr std::uint64_t most_seeds_of_range = std::uint64_t{1} << 16U;
  // What goes to seeds_at; everything before it is set to zero. Valid until the next call.
  [[nodiscard]] virtual Result<std::span<const std::byte>> begin(SeedRange range, const Seeds& seeds) = 0;
  // The uniform block of the next dispatch, and its workgroups.
  [[nodiscard]] virtual std::vector<std::uint32_t> launch_words() const = 0;
  [[nodiscard]] virtual std::uint32_t launch_workgroups() const = 0;
  // Called with the counters after a dispatch and the seconds that it took; returns how many pages are to be taken.
  [[nodiscard]] virtual std::uint32_t after_dispatch(std::span<const std::uint32_t> counters, double seconds) = 0;
  virtual void take_pages(std::span<const std::byte> entries, std::span<const std::byte> points) = 0;
  [[nodiscard]] virtual bool finished() const = 0;
  // The streamlines of the range.
  [[nodiscard]] virtual Status assemble(StreamlineBatch& batch) = 0;
};

// Fails where the field is beyond a limit of the adapter, and names it. The field outlives the result.
[[nodiscard]] Result<std::unique_ptr<DrivenTracking>> make_driven_tracking(const Field& field,
                                                                           const DrivenAdapter& adapter);

}  // namespace cingulum
