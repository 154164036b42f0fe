// The reply buffers of one actor, or of one seat of a grid: so many of one size, which a body takes one after the other
// (context.reply_buffer()), fills and sends, and which the reader of the answer gives back
// (ring/actor/reply_buffer.hpp). Here is the host's end: it puts what is free into a ring that the body's side reads.
// Any thread gives back; the ring has one reader, the body.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "ring/actor/buffer_table.hpp"
#include "ring/queue/ring_types.hpp"
#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

class ReplyRing : public std::enable_shared_from_this<ReplyRing> {
 public:
  // Zeroed, and there as long as the ring: `count` slots and the writer's line, and count x bytes for the buffers.
  struct Memory {
    ReplySlot* slots = nullptr;
    RingLine* writer = nullptr;
    std::byte* host = nullptr;
    std::byte* actor_side = nullptr;  // the same bytes, as the body addresses them
  };
  // `count`: a power of two. The table outlives the ring, or what is left of it after close.
  [[nodiscard]] static Result<std::shared_ptr<ReplyRing>> make(BufferTable& table, const Memory& memory,
                                                               std::uint32_t count, std::uint64_t bytes,
                                                               Schedule* schedule = nullptr);
  // Makes a ring in memory of its own, which lasts until the last of its buffers was given back.
  [[nodiscard]] static Result<std::shared_ptr<ReplyRing>> make_own(BufferTable& table, std::uint32_t count,
                                                                   std::uint64_t bytes, Schedule* schedule);

  // Nothing comes back into the ring any more; buffers that readers still hold stay theirs until they give them back.
  // `position`: of the body, which takes no more.
  void close(std::uint64_t position);

  // For a body that is a thread: waits for the buffer at its position; none when `stop` became true.
  [[nodiscard]] std::optional<ReplySlot> wait_for(std::uint64_t position, const std::atomic<bool>& stop);
  // Wakes it, so that it looks at its flag.
  void wake() { returned_.ring_always(); }

 private:
  ReplyRing(BufferTable& table, const Memory& memory, std::uint32_t count, Schedule* schedule)
      : table_(table), memory_(memory), count_(count), returned_({}, schedule) {}
  [[nodiscard]] Status fill(std::uint64_t bytes);
  void put(BufferHandle handle, std::uint64_t address);

  BufferTable& table_;
  Memory memory_;
  const std::uint32_t count_;
  // The memory that make_own allocates; empty where a grid has given its own.
  std::vector<ReplySlot> own_slots_;
  RingLine own_line_;
  std::unique_ptr<std::byte[]> own_bytes_;

  std::mutex mutex_;  // guards what follows
  std::uint64_t position_ = 0;
  bool closed_ = false;
  Doorbell returned_;
};

}  // namespace cingulum::ring
