// A field on a WebGPU device and what the plans tracked on it share: its records in bindings, whole or brick by brick,
// the tables and compiled kernels of each getter, workspaces for those who track at the same time, and spare memory for
// pages on the host. Shared by the WebGPU trackers of one field, of which the last one to go frees it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "tract/field/brick_schedule.hpp"
#include "tract/field/field_bricks.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/run/kept_by_getter.hpp"
#include "tract/webgpu/page_store.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum {

// What one call of track() uses.
struct WebgpuWorkspace {
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Buffer> work;
  std::unique_ptr<Buffer> pages;
  CancelToken cancel;
};

// The tables of a getter, on the host and, with the numbers of records per voxel behind them, on the device.
struct WebgpuTables {
  static constexpr std::uint32_t first_budget = 64;

  explicit WebgpuTables(DeviceTables made) : tables(std::move(made)) {}

  DeviceTables tables;
  std::unique_ptr<Buffer> buffer;
  mutable std::atomic<std::uint32_t> budget{first_budget};  // getter calls of a dispatch, as the last ones suggest
};

class WebgpuField {
 public:
  explicit WebgpuField(Device& device) : device_(device) {}

  // Called once, first: uploads all records, or allocates memory for those of a brick. `reach`: the planes for which
  // the bricks were cut.
  [[nodiscard]] Status bring(const Field& field, FieldBricks bricks, FieldPieces pieces, std::uint64_t records_at_once,
                             std::uint32_t reach);

  [[nodiscard]] const Field& field() const { return *field_; }
  [[nodiscard]] const FieldBricks& bricks() const { return bricks_; }
  [[nodiscard]] const FieldPieces& pieces() const { return pieces_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Buffer>>& records() const { return records_; }

  // The tables of a plan; `made` is used where they were made before. Refuses a plan that reads beyond the bricks. any
  // thread
  [[nodiscard]] Result<std::shared_ptr<const WebgpuTables>> tables_for(const TrackingPlan& plan,
                                                                       const DeviceTables* made);
  // The kernel of a text, compiled unless it was before. any thread
  [[nodiscard]] Result<std::shared_ptr<Kernel>> kernel_for(const KernelSource& source);

  // Callers hold it while they track a range in bricks, since a brick is replaced for all callers.
  [[nodiscard]] std::mutex& brick_mutex() { return brick_mutex_; }
  [[nodiscard]] std::uint32_t resident_brick() const { return resident_brick_.which(); }
  [[nodiscard]] Status load_brick(Queue& queue, const WebgpuTables& tables, std::uint32_t which);

  // A workspace of `work_bytes`, there from the beginning, so that a run which has begun does not fail for want of
  // memory. The first one has `pages` pages, or fewer where the device has not more.
  [[nodiscard]] Status have_workspace(std::uint64_t work_bytes, std::uint32_t pages);
  // Waits for another caller's workspace where there is no memory for one more; gives one with less work memory than
  // `work_bytes` where that is short, but no less than `least_bytes`. any thread
  [[nodiscard]] Result<std::unique_ptr<WebgpuWorkspace>> take_workspace(std::uint64_t work_bytes,
                                                                        std::uint64_t least_bytes);
  void give_back(std::unique_ptr<WebgpuWorkspace> workspace);
  [[nodiscard]] std::uint32_t pages() const { return pages_; }

  [[nodiscard]] PageBlock take_block();
  void keep_blocks(std::vector<PageBlock>& blocks);

  [[nodiscard]] static std::uint64_t page_memory(std::uint32_t pages);
  // With so few pages a run still goes on, though it waits for the host more often.
  static constexpr std::uint32_t fewest_pages = 256;

 private:
  [[nodiscard]] Status upload_records(Queue& queue, BrickRecords records) const;
  [[nodiscard]] Result<std::unique_ptr<WebgpuWorkspace>> make_workspace(std::uint64_t work_bytes);
  [[nodiscard]] std::unique_ptr<WebgpuWorkspace> wait_for_workspace(std::unique_lock<std::mutex>& lock);

  Device& device_;
  const Field* field_ = nullptr;
  FieldPieces pieces_;
  std::vector<std::unique_ptr<Buffer>> records_;
  FieldBricks bricks_;  // empty: the whole field is on the device
  std::uint32_t reach_ = 0;
  std::mutex brick_mutex_;
  ResidentBrick resident_brick_;
  const WebgpuTables* brick_tables_ = nullptr;  // whose numbers of records are the resident brick's
  KeptByGetter<WebgpuTables> tables_;
  std::uint32_t pages_ = 0;  // of each workspace
  std::mutex kernel_mutex_;
  std::map<std::string, std::shared_ptr<Kernel>, std::less<>> kernels_;  // by text; guarded by kernel_mutex_
  std::mutex mutex_;                                                     // guards what follows
  std::condition_variable workspace_is_free_;
  std::vector<std::unique_ptr<WebgpuWorkspace>> workspaces_;  // those that no thread uses
  std::vector<PageBlock> spare_blocks_;                       // at most most_spare_blocks
};

}  // namespace cingulum
