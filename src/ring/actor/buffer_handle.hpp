// How a large payload is named in a message: slot and generation in a table of buffers (ring/actor/buffer_table.hpp),
// and how host and device look it up. A handle whose buffer was released is stale and gives null.
#pragma once

#include "ring/queue/atomics.hpp"

namespace cingulum::ring {

// What travels at the start of a payload; make_message and make_reply set mark_handle for it.
struct BufferHandle {
  using names_a_buffer = void;  // see begins_with_handle of ring/queue/message.hpp
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // never 0 in a valid handle
  std::uint64_t bytes : 48 = 0;
  std::uint64_t table : 16 = 0;  // the table's number: a handle of another table is as stale as an old one
};
static_assert(sizeof(BufferHandle) == 16);

// Whatever they say of its bytes.
CGL_HD inline bool names_the_same(const BufferHandle& a, const BufferHandle& b) {
  return a.slot == b.slot && a.generation == b.generation && a.table == b.table;
}

struct BufferEntry {
  std::uint32_t generation = 0;
  std::uint32_t device = 0;   // 0: host memory; n + 1: device n of the runtime's list
  std::uint64_t address = 0;  // of the bytes, in that memory
  std::uint64_t bytes = 0;
};

// A reply buffer that is free, as the ring from which its actor takes it has it (ring/actor/reply_ring.hpp).
struct ReplySlot {
  BufferHandle handle;
  std::uint64_t address = 0;  // as the actor's side addresses it
  std::uint64_t unused = 0;
};
static_assert(sizeof(ReplySlot) == 32);

// Null when the handle is stale, was never valid, or is of another table than number `table`. Host and device.
CGL_HD_GENERIC template <class Atomics>
CGL_HD void* find_buffer(const BufferEntry* entries, std::uint32_t entry_count, std::uint32_t table,
                         BufferHandle handle) {
  if (handle.slot >= entry_count || (handle.generation & 1u) == 0 || handle.table != table) return nullptr;
  const BufferEntry& entry = entries[handle.slot];
  if (Atomics::load_acquire(entry.generation) != handle.generation) return nullptr;
  return reinterpret_cast<void*>(Atomics::load_relaxed(entry.address));
}

}  // namespace cingulum::ring
