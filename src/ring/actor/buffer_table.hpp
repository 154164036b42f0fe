// Large payloads: a table of buffers, named in messages by a handle of slot and generation. A handle whose buffer was
// released is stale and found out, never zeros or someone else's bytes. The entries may lie in memory that a device
// reads too (ring/actor/buffer_handle.hpp): host threads add and release, everybody looks up.
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
#include "ring/actor/buffer_handle.hpp"

namespace cingulum::ring {

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
  BufferTable(const BufferTable&) = delete;
  BufferTable& operator=(const BufferTable&) = delete;
  ~BufferTable();

  // A zeroed host buffer that the table owns. ErrorKind::full when no slot is free.
  [[nodiscard]] Result<BufferHandle> add(std::uint64_t bytes);
  // Bytes that the caller owns; `on_release` is called once when the last reference goes.
  [[nodiscard]] Result<BufferHandle> add_borrowed(void* address, std::uint64_t bytes, std::uint32_t device,
                                                  std::function<void()> on_release);
  // Bytes that the caller owns, which actors address as `actor_side`. They stay in the table when their last reference
  // goes, under a new handle, with which `on_return` is called; until retire.
  [[nodiscard]] Result<BufferHandle> add_returning(void* host, void* actor_side, std::uint64_t bytes,
                                                   std::function<void(BufferHandle)> on_return);
  void retire(BufferHandle handle);
  // Whether add_returning gave it.
  [[nodiscard]] bool returns(BufferHandle handle) const;
  // Calls `use` with the table of this number, while it lives. False: there is none in this process.
  static bool with_table(std::uint32_t number, const std::function<void(BufferTable&)>& use);

  // ErrorKind::not_found with slot and generations when stale.
  [[nodiscard]] Result<std::span<std::byte>> get(BufferHandle handle);
  [[nodiscard]] Status retain(BufferHandle handle);
  // Gives a reference back; the buffer goes with the last one. Answers the references left.
  [[nodiscard]] Result<std::uint32_t> release(BufferHandle handle);

  [[nodiscard]] BufferTableStatistics statistics() const;
  [[nodiscard]] std::span<const BufferEntry> entries() const { return entries_; }
  // In every handle of this table. Numbers go round after 65535 tables of a process.
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  struct Owner {
    std::unique_ptr<std::byte[]> memory;
    std::function<void()> on_release;
    std::function<void(BufferHandle)> on_return;
    std::byte* host = nullptr;  // where the host sees what actors address otherwise
    std::uint32_t references = 0;
  };
  [[nodiscard]] Status check(BufferHandle handle, std::string_view what);

  const std::uint32_t number_;
  mutable std::mutex mutex_;
  std::vector<BufferEntry> own_entries_;
  std::span<BufferEntry> entries_;
  std::vector<Owner> owners_;
  std::vector<std::uint32_t> free_;
  BufferTableStatistics statistics_;
};

}  // namespace cingulum::ring
