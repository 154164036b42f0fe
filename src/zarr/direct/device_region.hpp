// Regions of arrays that end in the memory of a device, or come from it, in the order of a queue of the caller. On a
// device whose memory is the host's this is the host's reader and writer (zarr/array.hpp); elsewhere regions go through
// the slabs of a reader or writer, which a program keeps for as long as it has regions to move.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "zarr/array.hpp"
#include "zarr/direct/engine.hpp"

namespace cingulum::zarr {

// Slabs of the ring: fewer and smaller ones are taken where a region needs less, larger ones where a chunk needs more.
struct RingOptions {
  std::uint64_t slab_bytes = std::uint64_t{32} << 20;
  std::size_t slabs = 4;
};

// Where the elements of a region are on a device: the first one at `offset`, the others by strides in bytes (none: one
// behind the other, the last dimension fastest).
struct DevicePlace {
  Buffer& buffer;
  std::uint64_t offset = 0;
  std::span<const std::int64_t> strides = {};
};

struct DeviceReadOptions {
  Engine engine = Engine::automatic;
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  CancelToken cancel = {};
  bool complete = false;  // a chunk that is not stored is a failure
};

struct DeviceReadReport {
  ReadReport read;
  Engine engine = Engine::host;
  std::string reason;            // why this engine
  std::uint64_t ring_bytes = 0;  // host memory that the reader keeps
};

// one caller at a time
class DeviceReader {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DeviceReader>> create(Device& device, EngineSettings settings = {},
                                                                    RingOptions ring = {});
  ~DeviceReader();  // waits for what is queued
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;

  // Returns when all work is queued on `queue`, behind what was queued before: whoever reads the region on that queue
  // needs no further wait. All that may fail for the sake of stored bytes has been verified then. After a failure the
  // region holds some chunks and some bytes that were there before, never one chunk's bytes in another's place.
  [[nodiscard]] Result<DeviceReadReport> read(const Array& array, const Region& region, Queue& queue,
                                              const DevicePlace& to, const DeviceReadOptions& options = {});

 private:
  struct Parts;
  explicit DeviceReader(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

struct DeviceWriteOptions {
  ThreadPool* pool = nullptr;
  CancelToken cancel = {};
};

struct DeviceWriteReport {
  WriteReport write;
  std::uint64_t ring_bytes = 0;
};

// one caller at a time
class DeviceWriter {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DeviceWriter>> create(Device& device, RingOptions ring = {});
  ~DeviceWriter();
  DeviceWriter(const DeviceWriter&) = delete;
  DeviceWriter& operator=(const DeviceWriter&) = delete;

  // Writes what the region holds when the work queued on `queue` before is done; returns when all keys are written.
  // Otherwise as zarr::write_region.
  [[nodiscard]] Result<DeviceWriteReport> write(const Array& array, StoreOutput& output, const Region& region,
                                                Queue& queue, const DevicePlace& from,
                                                const DeviceWriteOptions& options = {});

 private:
  struct Parts;
  explicit DeviceWriter(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace cingulum::zarr
