#include "ring/actor/reply_ring.hpp"

#include <utility>

namespace cingulum::ring {

Result<std::shared_ptr<ReplyRing>> ReplyRing::make(BufferTable& table, const Memory& memory, std::uint32_t count,
                                                   std::uint64_t bytes, Schedule* schedule) {
  std::shared_ptr<ReplyRing> ring(new ReplyRing(table, memory, count, schedule));
  CGL_TRY(ring->fill(bytes));
  return ring;
}

Result<std::shared_ptr<ReplyRing>> ReplyRing::make_own(BufferTable& table, std::uint32_t count, std::uint64_t bytes,
                                                       Schedule* schedule) {
  return catch_out_of_memory([&]() -> Result<std::shared_ptr<ReplyRing>> {
    std::shared_ptr<ReplyRing> ring(new ReplyRing(table, {}, count, schedule));
    ring->own_slots_.resize(count);
    ring->own_bytes_ = std::make_unique<std::byte[]>(count * bytes);
    ring->memory_ = {ring->own_slots_.data(), &ring->own_line_, ring->own_bytes_.get(), ring->own_bytes_.get()};
    CGL_TRY(ring->fill(bytes));
    return ring;
  });
}

Status ReplyRing::fill(std::uint64_t bytes) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    std::byte* const seen = memory_.actor_side + i * bytes;
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(seen));
    // The table holds the ring as long as one of its buffers is somewhere.
    const auto handle =
        table_.add_returning(memory_.host + i * bytes, seen, bytes,
                             [self = shared_from_this(), address](BufferHandle next) { self->put(next, address); });
    if (!handle) {
      close(0);
      return tl::make_unexpected(handle.error());
    }
    put(*handle, address);
  }
  return {};
}

void ReplyRing::put(BufferHandle handle, std::uint64_t address) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      ReplySlot& slot = memory_.slots[position_ & (count_ - 1)];
      slot.handle = handle;
      slot.address = address;
      HostAtomics::store_release(memory_.writer->position, ++position_);
      handle = {};
    }
  }
  if (handle.generation != 0) {
    table_.retire(handle);
  } else {
    returned_.ring();
  }
}

void ReplyRing::close(std::uint64_t position) {
  std::vector<BufferHandle> free;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    for (; position < position_; ++position) free.push_back(memory_.slots[position & (count_ - 1)].handle);
  }
  for (const BufferHandle handle : free) table_.retire(handle);
}

std::optional<ReplySlot> ReplyRing::wait_for(std::uint64_t position, const std::atomic<bool>& stop) {
  const auto is_there = [&] { return HostAtomics::load_acquire(memory_.writer->position) > position; };
  const auto is_stopped = [&] { return stop.load(std::memory_order_acquire); };
  static_cast<void>(returned_.wait([&] { return is_there() || is_stopped(); }, no_deadline));
  if (is_stopped()) return std::nullopt;
  return memory_.slots[position & (count_ - 1)];
}

}  // namespace cingulum::ring
