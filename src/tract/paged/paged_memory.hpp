// The memory of paged tracking: buffers on the device and on the host that grow as pieces need, and what one calling
// thread works with; from the device's WorkingMemory. Used by the paged tracker alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "device/working_memory.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/plan.hpp"

namespace cingulum {

// Device memory that grows; what it held is lost unless it is kept.
class GrowingBuffer {
 public:
  static constexpr std::uint64_t least_bytes = 256;

  // A `careful` buffer has what it had when there is no more.
  [[nodiscard]] Status reserve(Device& device, std::uint64_t bytes, bool careful = false) {
    if (buffer_ && buffer_->bytes() >= bytes) return {};
    const std::uint64_t wanted = std::max<std::uint64_t>(buffer_ ? bytes + bytes / 2 : bytes, least_bytes);
    const std::shared_ptr<WorkingMemory> memory = WorkingMemory::of(device);
    if (!careful) buffer_.reset();
    auto buffer = memory->take(wanted);
    if (!buffer && wanted > bytes) buffer = memory->take(bytes);
    if (!buffer) return tl::make_unexpected(std::move(buffer.error()));
    buffer_ = std::move(*buffer);
    return {};
  }
  // Keeps the first `kept` bytes; `queue` has nothing else to do with the old memory afterwards.
  [[nodiscard]] Status grow(Queue& queue, std::uint64_t bytes, std::uint64_t kept) {
    if (buffer_->bytes() >= bytes) return {};
    CGL_TRY_ASSIGN(auto larger, WorkingMemory::of(queue.device())->take(bytes));
    if (kept > 0) CGL_TRY(queue.copy(*larger, 0, *buffer_, 0, kept));
    CGL_TRY(queue.synchronise());
    buffer_ = std::move(larger);
    return {};
  }
  void release() { buffer_.reset(); }
  [[nodiscard]] Buffer& buffer() const { return *buffer_; }
  template <class T>
  [[nodiscard]] T* as(std::uint64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(buffer_->device_pointer()) + offset_bytes);
  }

 private:
  WorkingBuffer buffer_;
};

// Host memory that the device's copies like, growing.
class GrowingHostBuffer {
 public:
  [[nodiscard]] Status reserve(Device& device, std::uint64_t bytes) {
    if (memory_ && memory_->bytes().size() >= bytes) return {};
    const std::shared_ptr<WorkingMemory> memory = WorkingMemory::of(device);
    memory_.reset();
    const HostMemoryKind kind =
        device.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable;
    CGL_TRY_ASSIGN(memory_, memory->take_host(std::max<std::uint64_t>(bytes + bytes / 2, 4096), kind));
    return {};
  }
  template <class T>
  [[nodiscard]] std::span<T> as(std::size_t count, std::uint64_t offset_bytes = 0) const {
    return {reinterpret_cast<T*>(memory_->bytes().data() + offset_bytes), count};
  }

 private:
  WorkingHostMemory memory_;
};

inline constexpr std::uint64_t page_bytes = kernel::page_floats * sizeof(float);
// Two words in one buffer: the queue of work, and the pages used.
inline constexpr std::uint64_t counter_bytes = 256;
inline constexpr std::uint64_t pages_counter_offset = 128;

// What one calling thread works with.
struct Caller {
  std::uint32_t number = 0;  // its number among those that work at the same time
  bool is_reserve = false;   // has room for a seed whatever happens, and keeps it
  CancelToken cancel;        // of the call that has the lane
  std::unique_ptr<Queue> queue;
  GrowingBuffer counters, positions, index, directions, initial, lines, half_numbers, halves, paused, pages, next,
      output_line, output_offset;
  std::array<GrowingBuffer, 2> parts;
  GrowingHostBuffer up, down;
  std::array<GrowingHostBuffer, 2> parts_down;
  std::uint32_t page_capacity = 0;

  [[nodiscard]] std::uint64_t pages_there() const {
    return std::min({pages.buffer().bytes() / page_bytes, next.buffer().bytes() / sizeof(std::uint32_t),
                     std::uint64_t{kernel::no_page}});
  }
};

// What a caller needs for all streamlines of one seed, of the greatest length. Used by PagedField.
struct LaneSizes {
  std::uint64_t seeds, directions, lines, halves, paused, pages, part_bytes;

  LaneSizes(const TrackingPlan& plan, std::uint64_t part_points, bool in_bricks) {
    // The most pages of the reserve: a plan that needs more is refused when it needs the reserve.
    constexpr std::uint64_t most_pages = std::uint64_t{1} << 17;
    const std::uint64_t starts = std::clamp(plan.max_directions, 1u, most_initial_directions);
    const std::uint64_t line_points = 2 * std::uint64_t{plan.max_steps} + 1;
    seeds = 1;
    directions = starts * sizeof(numerics::Vec3);
    lines = starts;
    halves = 2 * starts * sizeof(kernel::HalfRecord);
    paused = in_bricks ? 2 * starts * sizeof(kernel::PausedHalf) : 0;
    pages = std::min(2 * starts * ((plan.max_steps + kernel::page_points - 1) / kernel::page_points + 1), most_pages);
    part_bytes =
        3 * sizeof(float) *
        std::min(std::max(line_points, std::min(part_points, starts * line_points)), most_pages * kernel::page_points);
  }
  // What reserve() takes.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = counter_bytes;
    Caller none;
    static_cast<void>(each_buffer(none, [&](GrowingBuffer&, std::uint64_t needed) -> Status {
      sum += std::max<std::uint64_t>(needed, GrowingBuffer::least_bytes);
      return {};
    }));
    return sum;
  }
  // A `careful` one leaves the caller what it had when there is no more.
  [[nodiscard]] Status reserve(Device& device, Caller& caller, bool careful = false) const {
    return each_buffer(
        caller, [&](GrowingBuffer& growing, std::uint64_t needed) { return growing.reserve(device, needed, careful); });
  }
  // Whether a caller with memory for `other` has enough for these.
  [[nodiscard]] bool fit_into(const LaneSizes& other) const { return larger_of(other) == other; }
  [[nodiscard]] LaneSizes larger_of(const LaneSizes& other) const {
    LaneSizes both = *this;
    both.directions = std::max(directions, other.directions);
    both.lines = std::max(lines, other.lines);
    both.halves = std::max(halves, other.halves);
    both.paused = std::max(paused, other.paused);
    both.pages = std::max(pages, other.pages);
    both.part_bytes = std::max(part_bytes, other.part_bytes);
    return both;
  }
  [[nodiscard]] bool operator==(const LaneSizes&) const = default;

 private:
  template <class Visit>
  Status each_buffer(Caller& caller, Visit&& visit) const {
    CGL_TRY(visit(caller.positions, seeds * sizeof(numerics::Vec3)));
    CGL_TRY(visit(caller.index, seeds * sizeof(std::uint32_t)));
    CGL_TRY(visit(caller.directions, directions));
    CGL_TRY(visit(caller.initial, seeds * sizeof(InitialDirections)));
    CGL_TRY(visit(caller.lines, lines * sizeof(std::uint32_t)));
    CGL_TRY(visit(caller.half_numbers, 2 * lines * sizeof(std::uint32_t)));
    CGL_TRY(visit(caller.halves, halves));
    if (paused > 0) CGL_TRY(visit(caller.paused, paused));
    CGL_TRY(visit(caller.pages, pages * page_bytes));
    CGL_TRY(visit(caller.next, pages * sizeof(std::uint32_t)));
    CGL_TRY(visit(caller.output_line, lines * sizeof(std::uint32_t)));
    CGL_TRY(visit(caller.output_offset, lines * sizeof(std::uint32_t)));
    for (GrowingBuffer& part : caller.parts) CGL_TRY(visit(part, part_bytes));
    return {};
  }
};

}  // namespace cingulum
