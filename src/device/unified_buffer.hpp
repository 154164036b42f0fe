// An array with a copy on the host and a copy on a device, whose agreement is tracked. Callers say what they are about
// to do (read or write, on the host or on the device) and get a view; copies are made when they are needed and only
// then. What is dirty follows from the access, so it cannot be forgotten, and accesses that would contradict each other
// are refused while a view is held. On a device that shares the host's memory there is one copy and nothing is ever
// copied.
//
//   state           host copy  device copy
//   uninitialised   none       none
//   host_only       valid      none
//   device_only     none       valid
//   synchronised    valid      valid
//   host_dirty      valid      old
//   device_dirty    old        valid
//
// Copies run on the queue given at creation; work on other queues must be ordered with events.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "device/device.hpp"

struct DLManagedTensor;  // dlpack/dlpack.h

namespace cingulum {

enum class BufferState { uninitialised, host_only, device_only, synchronised, host_dirty, device_dirty };

[[nodiscard]] std::string_view buffer_state_name(BufferState state);

class UnifiedBuffer;

// Holds an access open; while it lives, contradicting accesses are refused. Move-only.
class AccessGuard {
 public:
  enum class Side { host_read, host_write, device_read, device_write };
  AccessGuard(AccessGuard&& other) noexcept;
  AccessGuard& operator=(AccessGuard&&) = delete;
  AccessGuard(const AccessGuard&) = delete;
  AccessGuard& operator=(const AccessGuard&) = delete;
  ~AccessGuard();

 private:
  friend class UnifiedBuffer;
  struct Counts {
    int host_readers = 0, host_writers = 0, device_readers = 0, device_writers = 0;
  };
  AccessGuard(std::shared_ptr<Counts> counts, Side side);
  [[nodiscard]] static int& count_of(Counts& counts, Side side);

  std::shared_ptr<Counts> counts_;
  Side side_;
};

template <class T>
struct HostView {
  AccessGuard guard;
  std::span<T> elements;
};

struct DeviceView {
  AccessGuard guard;
  Buffer* buffer;
};

// All members: one caller at a time
class UnifiedBuffer {
 public:
  // Nothing is allocated yet. A shape with a zero or negative extent, or too large to count in bytes, is refused.
  [[nodiscard]] static Result<UnifiedBuffer> create(Queue& queue, ElementType type, std::vector<std::int64_t> shape,
                                                    HostMemoryKind host_kind = HostMemoryKind::pageable);
  // Takes over memory that someone else made. Host memory becomes the host copy (host_only), memory of this device the
  // device copy (device_only); nothing is copied. The tensor must be contiguous; its deleter runs when this buffer is
  // freed. On failure the tensor is left to the caller.
  [[nodiscard]] static Result<UnifiedBuffer> from_dlpack(Queue& queue, DLManagedTensor* tensor);

  UnifiedBuffer(UnifiedBuffer&&) noexcept;
  UnifiedBuffer& operator=(UnifiedBuffer&&) noexcept;
  ~UnifiedBuffer();

  [[nodiscard]] Device& device() const;
  [[nodiscard]] ElementType type() const;
  [[nodiscard]] std::span<const std::int64_t> shape() const;
  [[nodiscard]] std::uint64_t size() const;  // elements
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] BufferState state() const;
  [[nodiscard]] bool is_allocated() const { return state() != BufferState::uninitialised; }
  // How many copies were made so far, in each direction.
  [[nodiscard]] std::uint64_t uploads() const;
  [[nodiscard]] std::uint64_t downloads() const;

  // Allocates and zeroes the sides asked for; both: synchronised. Refused when already allocated.
  [[nodiscard]] Status allocate(bool host = true, bool device = true);
  // Frees everything; refused while a view is held.
  [[nodiscard]] Status free();

  // Views of valid data. Reading needs an allocated buffer; a host view's type must be the buffer's.
  template <class T>
  [[nodiscard]] Result<HostView<const T>> host_read() {
    CGL_TRY(check_type(element_type_of<T>()));
    CGL_TRY_ASSIGN(auto guard, open_host(AccessGuard::Side::host_read));
    return HostView<const T>{std::move(guard), {static_cast<const T*>(host_data()), static_cast<std::size_t>(size())}};
  }
  // Reads and writes: the data are brought to the host first. Leaves the buffer host_dirty.
  template <class T>
  [[nodiscard]] Result<HostView<T>> host_write() {
    CGL_TRY(check_type(element_type_of<T>()));
    CGL_TRY_ASSIGN(auto guard, open_host(AccessGuard::Side::host_write));
    return HostView<T>{std::move(guard), {static_cast<T*>(host_data()), static_cast<std::size_t>(size())}};
  }
  [[nodiscard]] Result<DeviceView> device_read();
  [[nodiscard]] Result<DeviceView> device_write();  // leaves the buffer device_dirty

  // Whole-buffer writes that need no old data and allocate by themselves; leave the buffer host_dirty.
  [[nodiscard]] Status copy_from(std::span<const std::byte> bytes);
  [[nodiscard]] Status fill(std::byte value);
  // Reads, as host_read does.
  [[nodiscard]] Status copy_to(std::span<std::byte> bytes);

  // For code that wrote through pointers it got elsewhere. Refused when the other side is dirty: one of the two would
  // be lost.
  [[nodiscard]] Status mark_host_dirty();
  [[nodiscard]] Status mark_device_dirty();

  // Makes both sides valid, allocating the missing one.
  [[nodiscard]] Status synchronise();
  [[nodiscard]] Status ensure_on_host();
  [[nodiscard]] Status ensure_on_device();

  // The buffer as a DLPack tensor that others may keep: it shares the memory and keeps it alive. The host side carries
  // the host's device code, the device side the device's; WebGPU memory has no address and is refused.
  enum class Side { host, device };
  [[nodiscard]] Result<DLManagedTensor*> to_dlpack(Side side);

 private:
  struct Storage;
  explicit UnifiedBuffer(std::shared_ptr<Storage> storage) : storage_(std::move(storage)) {}
  [[nodiscard]] Status check_type(ElementType wanted) const;
  [[nodiscard]] Result<AccessGuard> open_host(AccessGuard::Side side);
  [[nodiscard]] Result<DeviceView> open_device(AccessGuard::Side side);
  [[nodiscard]] Status check_access(AccessGuard::Side side) const;
  [[nodiscard]] void* host_data() const;
  [[nodiscard]] Status ensure_host_memory();
  [[nodiscard]] Status ensure_device_memory();
  [[nodiscard]] Status begin_host_overwrite();
  void set_state(BufferState state);
  void set_written_on_host();
  void set_written_on_device();

  std::shared_ptr<Storage> storage_;
};

}  // namespace cingulum
