// Large payloads: a table of buffers, named in messages by a handle of slot and generation. A handle whose buffer was
// released is stale and found out, never zeros or someone else's bytes. The table may lie in memory that a device reads
// too (BufferEntry is plain data): host threads add and release, everybody looks up.
//
// An entry's generation is odd while the slot is in use and grows at every add and release. Releasing while another
// thread still uses the bytes is the users' affair: hold a reference (retain) for as long as they are used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/atomics.hpp"

namespace cingulum::ring {

// What travels at the start of a payload, with mark_handle set in the header.
struct BufferHandle {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // never 0 in a valid handle
  std::uint64_t bytes = 0;
};
static_assert(sizeof(BufferHandle) == 16);

struct BufferEntry {
  std::uint32_t generation = 0;
  std::uint32_t device = 0;   // 0: host memory; n + 1: device n of the runtime's list
  std::uint64_t address = 0;  // of the bytes, in that memory
  std::uint64_t bytes = 0;
};

// Null when the handle is stale or was never valid. Host and device.
CGL_HD_GENERIC template <class Atomics>
CGL_HD void* find_buffer(const BufferEntry* entries, std::uint32_t entry_count, BufferHandle handle) {
  if (handle.slot >= entry_count || (handle.generation & 1u) == 0) return nullptr;
  const BufferEntry& entry = entries[handle.slot];
  if (Atomics::load_acquire(entry.generation) != handle.generation) return nullptr;
  return reinterpret_cast<void*>(Atomics::load_relaxed(entry.address));
}

struct BufferTableStatistics {
  std::uint64_t added = 0;
  std::uint64_t released = 0;
  std::uint64_t live = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t stale_lookups = 0;
};

class BufferTable {
 public:
  explicit BufferTable(std::uint32_t capacity = 4096);
  // Entries in memory of the caller's (mapped, pinned), zeroed, that outlives the table.
  explicit BufferTable(std::span<BufferEntry> entries);

  // A zeroed host buffer that the table owns. ErrorKind::full when no slot is free.
  [[nodiscard]] Result<BufferHandle> add(std::uint64_t bytes);
  // Bytes of somebody else's; `on_release` is called once when the last reference goes.
  [[nodiscard]] Result<BufferHandle> add_borrowed(void* address, std::uint64_t bytes, std::uint32_t device,
                                                  std::function<void()> on_release);
  // ErrorKind::not_found with slot and generations when stale.
  [[nodiscard]] Result<std::span<std::byte>> get(BufferHandle handle);
  [[nodiscard]] Status retain(BufferHandle handle);
  // Gives a reference back; the buffer goes with the last one. Answers the references left.
  [[nodiscard]] Result<std::uint32_t> release(BufferHandle handle);

  [[nodiscard]] BufferTableStatistics statistics() const;
  [[nodiscard]] std::span<const BufferEntry> entries() const { return entries_; }

 private:
  struct Owner {
    std::unique_ptr<std::byte[]> memory;
    std::function<void()> on_release;
    std::uint32_t references = 0;
  };
  [[nodiscard]] Status check(BufferHandle handle, std::string_view what);

  mutable std::mutex mutex_;
  std::vector<BufferEntry> own_entries_;
  std::span<BufferEntry> entries_;
  std::vector<Owner> owners_;
  std::vector<std::uint32_t> free_;
  BufferTableStatistics statistics_;
};

}  // namespace cingulum::ring
