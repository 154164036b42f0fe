#include "device/device.hpp"

#include <algorithm>

#include "base/quantity.hpp"
#include "device/borrowed_buffer.hpp"

namespace cingulum {
namespace {

Status check_range(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes, std::string_view operation) {
  if (offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    return fail(ErrorKind::invalid_argument, "{}: bytes {} to {} are outside a buffer of {} bytes on {}", operation,
                offset, offset + bytes, buffer.bytes(), buffer.device().id());
  }
  return {};
}

Status check_device(const Queue& queue, const Buffer& buffer, std::string_view operation) {
  if (&queue.device() != &buffer.device()) {
    return fail(ErrorKind::invalid_argument, "{}: a buffer of {} was given to a queue of {}; use copy_between",
                operation, buffer.device().id(), queue.device().id());
  }
  return {};
}

}  // namespace

std::string_view host_memory_kind_name(HostMemoryKind kind) {
  switch (kind) {
    case HostMemoryKind::pageable: return "pageable";
    case HostMemoryKind::pinned: return "pinned";
    case HostMemoryKind::mapped: return "mapped";
  }
  return "unknown";
}

Status Queue::upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) {
  CGL_TRY(check_device(*this, to, "upload"));
  CGL_TRY(check_range(to, offset, from.size(), "upload"));
  if (from.empty()) return {};
  return catch_out_of_memory([&] { return do_upload(to, offset, from); });
}

Status Queue::download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset) {
  CGL_TRY(check_device(*this, from, "download"));
  CGL_TRY(check_range(from, offset, to.size(), "download"));
  if (to.empty()) return {};
  return catch_out_of_memory([&] { return do_download(to, from, offset); });
}

Status Queue::copy(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                   std::uint64_t bytes) {
  CGL_TRY(check_device(*this, to, "copy"));
  CGL_TRY(check_device(*this, from, "copy"));
  CGL_TRY(check_range(to, to_offset, bytes, "copy to"));
  CGL_TRY(check_range(from, from_offset, bytes, "copy from"));
  if (&to == &from && to_offset < from_offset + bytes && from_offset < to_offset + bytes && bytes != 0) {
    return fail(ErrorKind::invalid_argument, "copy: the ranges at {} and {} of {} bytes in one buffer overlap",
                to_offset, from_offset, bytes);
  }
  if (bytes == 0) return {};
  return catch_out_of_memory([&] { return do_copy(to, to_offset, from, from_offset, bytes); });
}

Status Queue::fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value) {
  CGL_TRY(check_device(*this, to, "fill"));
  CGL_TRY(check_range(to, offset, bytes, "fill"));
  if (bytes == 0) return {};
  return catch_out_of_memory([&] { return do_fill(to, offset, bytes, value); });
}

Status Queue::launch(Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments) {
  if (&kernel.device() != &device()) {
    return fail(ErrorKind::invalid_argument, "launching {}: the kernel belongs to {}, the queue to {}", kernel.name(),
                kernel.device().id(), device().id());
  }
  CGL_TRY(check_launch(kernel, shape, arguments));
  return catch_out_of_memory([&] { return do_launch(kernel, shape, arguments); });
}

Result<std::unique_ptr<Event>> Queue::record() {
  return catch_out_of_memory([&] { return do_record(); });
}

Status Queue::do_copy_to_peer(Buffer&, std::uint64_t, const Buffer&, std::uint64_t, std::uint64_t) {
  return fail(ErrorKind::unavailable, "device {}: no direct copies to other devices", device().id());
}

Result<std::unique_ptr<Buffer>> Device::allocate(std::uint64_t bytes) {
  if (bytes == 0) return fail(ErrorKind::invalid_argument, "device {}: a buffer needs at least one byte", id());
  const std::uint64_t largest = capabilities().largest_buffer_bytes;
  if (largest != 0 && bytes > largest) {
    return fail(ErrorKind::out_of_memory,
                "device {}: a buffer of {} was asked for, the largest possible is {}; split it", id(),
                format_bytes(bytes), format_bytes(largest));
  }
  CGL_TRY(budget_.charge(id(), bytes));
  BudgetCharge charge(budget_, bytes);
  auto buffer = catch_out_of_memory([&] { return do_allocate(bytes); });
  // From here on the buffer's destructor refunds.
  if (buffer) charge.release();
  return buffer;
}

Result<std::unique_ptr<HostMemory>> Device::allocate_host(std::uint64_t bytes, HostMemoryKind kind) {
  if (bytes == 0) return fail(ErrorKind::invalid_argument, "device {}: host memory needs at least one byte", id());
  if (kind == HostMemoryKind::pinned && !capabilities().pinned_host_memory) {
    return fail(ErrorKind::unavailable, "device {}: no pinned host memory here; ask for pageable", id());
  }
  if (kind == HostMemoryKind::mapped && !capabilities().mapped_host_memory) {
    return fail(ErrorKind::unavailable, "device {}: no mapped host memory here; ask for pinned or pageable", id());
  }
  return catch_out_of_memory([&] { return do_allocate_host(bytes, kind); });
}

Result<std::unique_ptr<Queue>> Device::create_queue() {
  return catch_out_of_memory([&] { return do_create_queue(); });
}

Result<std::unique_ptr<Kernel>> Device::compile(const KernelSource& source) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<Kernel>> {
    CGL_TRY(check_source(*this, source, kernel_language()));
    return do_compile(source);
  });
}

Result<std::unique_ptr<Buffer>> Device::buffer_over(HostMemory& memory) {
  if (memory.device_pointer() == nullptr || !capabilities().mapped_host_memory) {
    return fail(ErrorKind::invalid_argument, "device {}: {} host memory is not mapped: kernels cannot address it", id(),
                host_memory_kind_name(memory.kind()));
  }
  if (&memory.device() != this) {
    return fail(ErrorKind::invalid_argument, "device {}: the host memory was mapped for {}", id(),
                memory.device().id());
  }
  return std::make_unique<BorrowedBuffer>(*this, memory.device_pointer(), memory.bytes().size());
}

Result<MemoryState> Device::memory() const {
  CGL_TRY_ASSIGN(const DriverMemory driver, driver_memory());
  MemoryState state;
  state.total_bytes = driver.total_bytes;
  state.free_bytes = driver.free_bytes;
  state.used_bytes = budget_.used_bytes();
  state.limit_bytes = budget_.limit_bytes();
  if (state.limit_bytes) {
    const std::uint64_t left = *state.limit_bytes > state.used_bytes ? *state.limit_bytes - state.used_bytes : 0;
    state.free_bytes = std::min(state.free_bytes.value_or(left), left);
  }
  return state;
}

bool Device::can_copy_directly_to(const Device& other) const {
  return &other == this;
}

Status copy_between(Queue& to_queue, Buffer& to, std::uint64_t to_offset, Queue& from_queue, const Buffer& from,
                    std::uint64_t from_offset, std::uint64_t bytes) {
  CGL_TRY(check_device(to_queue, to, "copy_between"));
  CGL_TRY(check_device(from_queue, from, "copy_between"));
  CGL_TRY(check_range(to, to_offset, bytes, "copy_between, to"));
  CGL_TRY(check_range(from, from_offset, bytes, "copy_between, from"));
  if (bytes == 0) return {};
  Device& source = from_queue.device();
  if (&to_queue.device() == &source) {
    CGL_TRY_ASSIGN(auto ready, from_queue.record());
    CGL_TRY(to_queue.wait_for(*ready));
    CGL_TRY(to_queue.copy(to, to_offset, from, from_offset, bytes));
    return to_queue.synchronise();
  }
  if (source.can_copy_directly_to(to_queue.device())) {
    CGL_TRY(to_queue.synchronise());
    CGL_TRY(from_queue.do_copy_to_peer(to, to_offset, from, from_offset, bytes));
    return from_queue.synchronise();
  }
  constexpr std::uint64_t piece_bytes = 16u << 20;
  const HostMemoryKind kind =
      source.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable;
  CGL_TRY_ASSIGN(auto staging, source.allocate_host(std::min(bytes, piece_bytes), kind));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t count = std::min(piece_bytes, bytes - done);
    const auto piece = staging->bytes().first(count);
    CGL_TRY(from_queue.download(piece, from, from_offset + done));
    CGL_TRY(from_queue.synchronise());
    CGL_TRY(to_queue.upload(to, to_offset + done, piece));
    CGL_TRY(to_queue.synchronise());
    done += count;
  }
  return {};
}

}  // namespace cingulum
