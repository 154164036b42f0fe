// A field on a device and what the plans tracked on it share: its records, whole or brick by brick, the tables of each
// getter, and lanes of working memory for those who track at the same time. Shared by the paged trackers of one field
// (paged_tracker.hpp), of which the last one to go frees it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/working_memory.hpp"
#include "tract/field/brick_schedule.hpp"
#include "tract/field/field_bricks.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/paged/paged_memory.hpp"
#include "tract/paged/paged_tracker.hpp"
#include "tract/run/kept_by_getter.hpp"

namespace cingulum {

// The tables of a getter, on the host and on the device.
struct TablesOnDevice {
  explicit TablesOnDevice(DeviceTables made) : tables(std::move(made)) {}

  DeviceTables tables;
  GrowingBuffer words;
};

class PagedField {
 public:
  PagedField(Device& device, const PagedTrackerOptions& options)
      : device_(device), options_(options), memory_(WorkingMemory::of(device)) {}

  // Called once, first: uploads the whole field, or allocates memory for a brick. `reach`: the planes for which the
  // bricks were cut.
  [[nodiscard]] Status bring(const Field& field, FieldBricks bricks, std::uint32_t reach);

  [[nodiscard]] const Field& field() const { return *field_; }
  [[nodiscard]] const FieldBricks& bricks() const { return bricks_; }
  // What a plan reads, with pointers into the device's memory; keeps its getter's tables through `tables`, which are
  // `made` where they were made before. Refuses a plan that reads beyond the bricks. any thread
  [[nodiscard]] Result<TrackingInput> input_for(const TrackingPlan& plan, const DeviceTables* made,
                                                std::shared_ptr<const TablesOnDevice>& tables);
  // The callers that may track at the same time; one where there are bricks, since a brick is replaced for all.
  [[nodiscard]] std::uint32_t callers() const { return bricks_.empty() ? std::max(options_.hints.callers, 1u) : 1u; }

  // A lane that can track a seed of the plan whatever comes; may wait for those who track. any thread
  [[nodiscard]] Status have_reserve_for(const TrackingPlan& plan);
  // Waits while as many callers work as may, or until one is free where there is no memory for another. any thread
  [[nodiscard]] Result<std::unique_ptr<Caller>> take_caller();
  void give_back(std::unique_ptr<Caller> caller);
  // Gives up the caller's memory and waits for the reserve.
  [[nodiscard]] std::unique_ptr<Caller> swap_for_reserve(std::unique_ptr<Caller> caller);

  // Brings a brick unless it is there, and says in `work` how far it goes. Called by the only caller.
  [[nodiscard]] Status load_brick(Caller& caller, std::uint32_t which, kernel::PagedWork& work);

 private:
  [[nodiscard]] Result<std::unique_ptr<Caller>> make_caller(std::uint32_t number);
  [[nodiscard]] std::unique_ptr<Caller> wait_for_reserve(std::unique_lock<std::mutex>& lock);

  Device& device_;
  const PagedTrackerOptions options_;
  const std::shared_ptr<WorkingMemory> memory_;
  GrowingBuffer record_of_voxel_, records_;
  const Field* field_ = nullptr;
  FieldBricks bricks_;  // empty: the whole field is on the device
  std::uint32_t reach_ = 0;
  ResidentBrick resident_brick_;
  KeptByGetter<TablesOnDevice> tables_;
  std::mutex reserve_mutex_;  // one at a time makes the reserve larger
  std::optional<LaneSizes> reserve_sizes_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable caller_is_free_;
  std::vector<std::unique_ptr<Caller>> idle_callers_;  // those that no thread uses
  std::vector<std::uint32_t> free_numbers_;            // of callers that are not made
};

}  // namespace cingulum
