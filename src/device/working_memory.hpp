// Memory of work that grows and shrinks, beside kernels that stay: what is given back is freed at once, unless freeing
// would wait for a persistent kernel (device/blocking_calls.hpp) or someone asked to keep it; then it is kept here and
// handed out again. So whoever works in rounds beside resident actors neither stalls nor fills the card. One for each
// device and process, as long as anyone holds it. Unlike a DevicePool (memory_pool.hpp) it rounds no size and keeps
// nothing where freeing is free, so that what a run takes of a device is what it asks for. Used by the trackers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum {

class WorkingMemory;

struct GiveBackWorkingMemory {
  std::shared_ptr<WorkingMemory> memory;
  void operator()(Buffer* buffer) const noexcept;
  void operator()(HostMemory* host) const noexcept;
};
// Goes back to its WorkingMemory at the end.
using WorkingBuffer = std::unique_ptr<Buffer, GiveBackWorkingMemory>;
using WorkingHostMemory = std::unique_ptr<HostMemory, GiveBackWorkingMemory>;

// All members: any thread
class WorkingMemory : public std::enable_shared_from_this<WorkingMemory> {
 public:
  // The working memory of a device, which outlives it.
  [[nodiscard]] static std::shared_ptr<WorkingMemory> of(Device& device);
  // Bytes of device memory that are kept on `device` and can be handed out again.
  [[nodiscard]] static std::uint64_t kept_on(const Device& device);
  ~WorkingMemory();
  WorkingMemory(const WorkingMemory&) = delete;
  WorkingMemory& operator=(const WorkingMemory&) = delete;

  // At least `bytes`; something kept, where its size is near. Its content is not defined.
  [[nodiscard]] Result<WorkingBuffer> take(std::uint64_t bytes);
  [[nodiscard]] Result<WorkingHostMemory> take_host(std::uint64_t bytes, HostMemoryKind kind);
  // While the token lives everything is kept, whether or not a persistent kernel runs.
  [[nodiscard]] std::shared_ptr<void> keep_all();
  [[nodiscard]] std::uint64_t kept_bytes() const;

 private:
  friend struct GiveBackWorkingMemory;
  explicit WorkingMemory(Device& device) : device_(device) {}
  void give_back(Buffer* buffer) noexcept;
  void give_back(HostMemory* host) noexcept;
  // Frees what is kept where nothing has to be kept any more.
  void free_what_may_go();
  [[nodiscard]] bool keeps() const { return holds_ > 0 || device_.freeing_waits(); }

  Device& device_;
  mutable std::mutex mutex_;  // guards what follows
  int holds_ = 0;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<HostMemory>> host_;
};

}  // namespace cingulum
