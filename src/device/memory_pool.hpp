// Pools that keep memory instead of freeing it. Freeing blocks while a persistent kernel runs, and allocating costs
// tens of microseconds: whoever works in rounds takes memory here. Blocks are kept by size class and handed out again;
// trimming gives unused blocks back, but never while someone holds the pool still (a persistent kernel is running).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum {

struct PoolStatistics {
  std::uint64_t used_bytes = 0;  // handed out, counted in whole blocks
  std::uint64_t kept_bytes = 0;  // free, kept for later
  std::uint64_t peak_bytes = 0;  // largest used + kept so far
  std::uint64_t used_blocks = 0;
  std::uint64_t kept_blocks = 0;
  std::uint64_t requests = 0;
  std::uint64_t reused = 0;  // requests served without allocating
  std::optional<std::uint64_t> limit_bytes;

  [[nodiscard]] double utilisation() const {
    const std::uint64_t total = used_bytes + kept_bytes;
    return total == 0 ? 0.0 : static_cast<double>(used_bytes) / static_cast<double>(total);
  }
};

// The block sizes of device pools: eight steps in each power of two, so that at most an eighth is wasted.
[[nodiscard]] std::uint64_t device_block_bytes(std::uint64_t bytes);
// The block sizes of pinned pools: powers of two from 64 bytes.
[[nodiscard]] std::uint64_t pinned_block_bytes(std::uint64_t bytes);

template <class Block>
class PoolCore;  // what a pool shares with its blocks on loan

// A block on loan; goes back to its pool when destroyed. The pool may go first: the block then is freed on its return.
template <class Block>
class PooledBlock {
 public:
  PooledBlock(std::shared_ptr<PoolCore<Block>> core, Block block, std::uint64_t class_bytes);
  PooledBlock(PooledBlock&& other) noexcept;
  PooledBlock& operator=(PooledBlock&& other) noexcept;
  ~PooledBlock();

  [[nodiscard]] const Block& operator*() const { return block_; }
  [[nodiscard]] const Block* operator->() const { return &block_; }

 private:
  void give_back() noexcept;

  std::shared_ptr<PoolCore<Block>> core_;
  Block block_;
  std::uint64_t class_bytes_ = 0;
};

// While one lives, its pool neither allocates nor trims: what was reserved before is all there is.
class PoolHold {
 public:
  explicit PoolHold(std::shared_ptr<void> hold) : hold_(std::move(hold)) {}

 private:
  std::shared_ptr<void> hold_;
};

// Device memory: blocks are whole buffers (as large as asked for, or up to an eighth larger).
using DeviceBlock = std::shared_ptr<Buffer>;

// All members: any thread
class DevicePool {
 public:
  explicit DevicePool(Device& device, std::optional<std::uint64_t> limit_bytes = std::nullopt);
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool();

  [[nodiscard]] Result<PooledBlock<DeviceBlock>> acquire(std::uint64_t bytes);
  // Allocates `count` blocks for requests of `bytes` ahead of time.
  [[nodiscard]] Status reserve(std::uint64_t bytes, std::uint64_t count);
  // Frees unused blocks until at most `keep_bytes` are kept; returns what was freed. Refused while the pool is held.
  [[nodiscard]] Result<std::uint64_t> trim(std::uint64_t keep_bytes = 0);
  void set_limit(std::optional<std::uint64_t> bytes);
  [[nodiscard]] PoolHold hold();
  [[nodiscard]] PoolStatistics statistics() const;

 private:
  [[nodiscard]] Result<std::vector<DeviceBlock>> make_block(std::uint64_t class_bytes);

  Device& device_;
  std::shared_ptr<PoolCore<DeviceBlock>> core_;
};

// Pinned (or mapped) host memory in slabs: small blocks are cut from arenas of 2 MiB, each for one size class; requests
// above 64 KiB get an arena of their own.
struct PinnedBlock {
  std::shared_ptr<HostMemory> arena;
  std::span<std::byte> bytes;
  void* device_pointer = nullptr;  // for mapped memory
};

// All members: any thread
class PinnedPool {
 public:
  explicit PinnedPool(Device& device, HostMemoryKind kind = HostMemoryKind::pinned,
                      std::optional<std::uint64_t> limit_bytes = std::nullopt);
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  ~PinnedPool();

  [[nodiscard]] Result<PooledBlock<PinnedBlock>> acquire(std::uint64_t bytes);
  [[nodiscard]] Status reserve(std::uint64_t bytes, std::uint64_t count);
  // Frees arenas all of whose blocks are back.
  [[nodiscard]] Result<std::uint64_t> trim();
  void set_limit(std::optional<std::uint64_t> bytes);
  [[nodiscard]] PoolHold hold();
  [[nodiscard]] PoolStatistics statistics() const;

 private:
  [[nodiscard]] Result<std::vector<PinnedBlock>> make_arena(std::uint64_t class_bytes);

  Device& device_;
  HostMemoryKind kind_;
  std::shared_ptr<PoolCore<PinnedBlock>> core_;
};

}  // namespace cingulum
