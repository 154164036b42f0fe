// The interface between the domains and the GPUs: memory and order. A Device allocates, a Queue copies and launches in
// order, an Event marks a place in that order. Every copy is explicit, every failure is a Result, and no GPU header is
// included here. What is computed is the business of kernels (kernel.hpp) and of each domain's own backend folder:
// there is no portable kernel language.
//
// Lifetimes: a Device outlives its buffers, queues, events and kernels. Memory given to an asynchronous operation stays
// valid until the operation is done (an Event waited for, or the Queue synchronised).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/description.hpp"
#include "device/kernel.hpp"
#include "device/memory_budget.hpp"

namespace cingulum {

class Device;

// Memory on a device. Freed by the destructor.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // The address on the device; null where buffers have none (WebGPU).
  [[nodiscard]] virtual void* device_pointer() const = 0;

 protected:
  Buffer(Device& device, std::uint64_t bytes) : device_(device), bytes_(bytes) {}

 private:
  Device& device_;
  std::uint64_t bytes_;
};

enum class HostMemoryKind {
  pageable,
  pinned,  // page-locked: copies run at full speed and asynchronously
  mapped,  // pinned, and addressable by kernels
};

[[nodiscard]] std::string_view host_memory_kind_name(HostMemoryKind kind);

// Host memory that a device's copies like. Freed by the destructor.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] HostMemoryKind kind() const { return kind_; }
  // The address by which kernels see mapped memory; null for the other kinds.
  [[nodiscard]] virtual void* device_pointer() const { return nullptr; }

 protected:
  HostMemory(const Device& device, std::span<std::byte> bytes, HostMemoryKind kind)
      : device_(device), bytes_(bytes), kind_(kind) {}

 private:
  const Device& device_;
  std::span<std::byte> bytes_;
  HostMemoryKind kind_;
};

// A place in a queue's order.
class Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] virtual Result<bool> done() = 0;
  // Blocks until everything before this place is done; downloads before it have then arrived in host memory.
  [[nodiscard]] virtual Status wait() = 0;
  // Time between two events of one device, both done; measured on the device where capabilities.device_timestamps.
  [[nodiscard]] virtual Result<double> milliseconds_since(const Event& earlier) const = 0;

 protected:
  Event() = default;
};

// All members: one caller at a time
class Queue {
 public:
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  [[nodiscard]] Device& device() const { return device_; }

  // All of these return once the work is queued. Offsets and sizes are bytes; any value within the buffer is accepted
  // (on WebGPU those that are not multiples of 4 cost a round trip to the host).
  [[nodiscard]] Status upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Status download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset);
  // Within one device; copy_between() goes from device to device.
  [[nodiscard]] Status copy(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                            std::uint64_t bytes);
  [[nodiscard]] Status fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value);
  // Arguments are checked against the kernel's parameters before anything is queued.
  [[nodiscard]] Status launch(Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments);

  [[nodiscard]] Result<std::unique_ptr<Event>> record();
  // Work queued after this waits for the event, which may belong to another queue of the same device.
  [[nodiscard]] virtual Status wait_for(Event& event) = 0;
  [[nodiscard]] virtual Status synchronise() = 0;

 protected:
  explicit Queue(Device& device) : device_(device) {}

  // What the backends do. Ranges and arguments are valid, sizes are not zero; std::bad_alloc may be thrown and becomes
  // an error above.
  [[nodiscard]] virtual Result<std::unique_ptr<Event>> do_record() = 0;
  [[nodiscard]] virtual Status do_upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual Status do_download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset) = 0;
  [[nodiscard]] virtual Status do_copy(Buffer& to, std::uint64_t to_offset, const Buffer& from,
                                       std::uint64_t from_offset, std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Status do_fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value) = 0;
  [[nodiscard]] virtual Status do_launch(Kernel& kernel, const LaunchShape& shape,
                                         std::span<const KernelArgument> arguments) = 0;
  // Copies from this queue's device to a buffer of a peer, for which can_copy_directly_to() holds.
  [[nodiscard]] virtual Status do_copy_to_peer(Buffer& to, std::uint64_t to_offset, const Buffer& from,
                                               std::uint64_t from_offset, std::uint64_t bytes);

 private:
  friend Status copy_between(Queue& to_queue, Buffer& to, std::uint64_t to_offset, Queue& from_queue,
                             const Buffer& from, std::uint64_t from_offset, std::uint64_t bytes);

  Device& device_;
};

// All members: any thread
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DeviceDescription& description() const { return description_; }
  [[nodiscard]] const DeviceCapabilities& capabilities() const { return description_.capabilities; }
  [[nodiscard]] const std::string& id() const { return description_.id; }

  // Memory of at least one byte. A refusal says what is needed, what there is and the way out.
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes);
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> allocate_host(std::uint64_t bytes, HostMemoryKind kind);
  // Mapped host memory of this device as a buffer, so that kernels take it as an argument. `memory` outlives the
  // buffer.
  [[nodiscard]] Result<std::unique_ptr<Buffer>> buffer_over(HostMemory& memory);
  [[nodiscard]] Result<MemoryState> memory() const;
  // Whether freeing memory would wait now: a persistent kernel runs (blocking_calls.hpp).
  [[nodiscard]] virtual bool freeing_waits() const { return false; }
  // The account of what this Device has handed out, with its limit and the tests' failure injection.
  [[nodiscard]] MemoryBudget& budget() { return budget_; }

  [[nodiscard]] Result<std::unique_ptr<Queue>> create_queue();
  // Compiles source (CUDA C++ on CUDA, WGSL on WebGPU) or wraps a registered native function (CPU).
  [[nodiscard]] Result<std::unique_ptr<Kernel>> compile(const KernelSource& source);
  [[nodiscard]] virtual DeviceReading read_sensors() = 0;
  // Whether memory can go to `other` without passing through the host.
  [[nodiscard]] virtual bool can_copy_directly_to(const Device& other) const;

 protected:
  explicit Device(DeviceDescription description) : description_(std::move(description)) {}
  [[nodiscard]] DeviceDescription& mutable_description() { return description_; }

  // What the backends do; std::bad_alloc may be thrown and becomes an error above.
  [[nodiscard]] virtual Result<std::unique_ptr<Queue>> do_create_queue() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Kernel>> do_compile(const KernelSource& source) = 0;
  [[nodiscard]] virtual KernelLanguage kernel_language() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t bytes,
                                                                             HostMemoryKind kind) = 0;
  struct DriverMemory {
    std::uint64_t total_bytes = 0;
    std::optional<std::uint64_t> free_bytes;
  };
  [[nodiscard]] virtual Result<DriverMemory> driver_memory() const = 0;

 private:
  DeviceDescription description_;
  MemoryBudget budget_;
};

// Copies from one device to another: directly where they are peers, else through host memory in bounded pieces.
// Returns when the copy is done.
[[nodiscard]] Status copy_between(Queue& to_queue, Buffer& to, std::uint64_t to_offset, Queue& from_queue,
                                  const Buffer& from, std::uint64_t from_offset, std::uint64_t bytes);

// Uploads and downloads of typed host memory.
template <class T>
[[nodiscard]] Status upload(Queue& queue, Buffer& to, std::span<const T> from, std::uint64_t offset_bytes = 0) {
  return queue.upload(to, offset_bytes, std::as_bytes(from));
}
template <class T>
[[nodiscard]] Status download(Queue& queue, std::span<T> to, const Buffer& from, std::uint64_t offset_bytes = 0) {
  return queue.download(std::as_writable_bytes(to), from, offset_bytes);
}

}  // namespace cingulum
