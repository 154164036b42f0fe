// The memory that regions pass through on their way to a device and back: slabs of pinned host memory with device
// memory of the same size beside them, the queue of their copies, and the kernels of boxes. Kept from region to region
// by a DeviceReader or DeviceWriter, so that a small region allocates nothing. Not for devices whose memory is the
// host's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/memory_pool.hpp"
#include "zarr/direct/box_kernels.hpp"

namespace cingulum::zarr {

// The start of a chunk or a table in a slab: what vector loads, bindings and cuFile ask for.
constexpr std::uint64_t slab_alignment = 256;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

struct Slab {
  PooledBlock<PinnedBlock> host;
  PooledBlock<DeviceBlock> device;
  // The last upload from `host`, and the last use of `device`: both are waited for before they are written again.
  std::unique_ptr<Event> uploaded;
  std::unique_ptr<Event> consumed;

  [[nodiscard]] std::span<std::byte> host_bytes() const { return host->bytes; }
  [[nodiscard]] Buffer& device_buffer() const { return **device; }
};

// one caller at a time
class Staging {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Staging>> create(Device& device);
  ~Staging();  // waits for what still uses the slabs
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] BoxKernels& kernels() const { return *kernels_; }
  // Copies between slabs' two sides; its events order them with the caller's queue.
  [[nodiscard]] Queue& copies() const { return *copies_; }

  // At least `count` slabs of at least `bytes` each. Slabs that are too small go.
  [[nodiscard]] Result<std::span<const std::unique_ptr<Slab>>> slabs(std::uint64_t bytes, std::size_t count);
  // The bytes of all slabs that are kept.
  [[nodiscard]] std::uint64_t ring_bytes() const;

 private:
  explicit Staging(Device& device);
  [[nodiscard]] Status release_slabs();

  Device& device_;
  std::unique_ptr<BoxKernels> kernels_;
  std::unique_ptr<Queue> copies_;
  PinnedPool pinned_;
  DevicePool memory_;
  std::uint64_t slab_bytes_ = 0;
  std::vector<std::unique_ptr<Slab>> slabs_;
};

}  // namespace cingulum::zarr
