#include "ring/actor/buffer_table.hpp"

#include <unistd.h>

#include <atomic>
#include <map>
#include <shared_mutex>
#include <utility>

namespace cingulum::ring {
namespace {

constexpr std::uint64_t largest_buffer = (std::uint64_t{1} << 48) - 1;

std::uint32_t next_table_number() {
  // Processes that pass handles on by mistake begin at different numbers, in all likelihood.
  static std::atomic<std::uint32_t> next{static_cast<std::uint32_t>(::getpid()) * 40503u};
  for (;;) {
    const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed) & 0xffffu;
    if (number != 0) return number;
  }
}

// The tables of this process by their numbers, so that who holds a handle finds its table.
struct LivingTables {
  std::shared_mutex mutex;
  std::map<std::uint32_t, BufferTable*> by_number;

  // Never destroyed: tables may outlive what is static.
  static LivingTables& instance() {
    static auto* const all = new LivingTables();
    return *all;
  }
  void add(BufferTable& table) {
    const std::unique_lock lock(mutex);
    by_number[table.number()] = &table;
  }
};

}  // namespace

BufferTable::BufferTable(std::uint32_t capacity)
    : number_(next_table_number()), own_entries_(capacity), entries_(own_entries_), owners_(capacity) {
  for (std::uint32_t i = capacity; i > 0; --i) free_.push_back(i - 1);
  LivingTables::instance().add(*this);
}

BufferTable::BufferTable(std::span<BufferEntry> entries)
    : number_(next_table_number()), entries_(entries), owners_(entries.size()) {
  for (std::size_t i = entries.size(); i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
  LivingTables::instance().add(*this);
}

BufferTable::~BufferTable() {
  LivingTables& all = LivingTables::instance();
  const std::unique_lock lock(all.mutex);
  const auto found = all.by_number.find(number_);
  if (found != all.by_number.end() && found->second == this) all.by_number.erase(found);
}

bool BufferTable::with_table(std::uint32_t number, const std::function<void(BufferTable&)>& use) {
  LivingTables& all = LivingTables::instance();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_number.find(number);
  if (found == all.by_number.end()) return false;
  use(*found->second);
  return true;
}

Result<BufferHandle> BufferTable::add(std::uint64_t bytes) {
  return catch_out_of_memory([&]() -> Result<BufferHandle> {
    auto memory = std::make_unique<std::byte[]>(bytes);
    std::byte* const address = memory.get();
    CGL_TRY_ASSIGN(const BufferHandle handle, add_borrowed(address, bytes, 0, {}));
    const std::lock_guard lock(mutex_);
    owners_[handle.slot].memory = std::move(memory);
    return handle;
  });
}

Result<BufferHandle> BufferTable::add_borrowed(void* address, std::uint64_t bytes, std::uint32_t device,
                                               std::function<void()> on_release) {
  if (bytes > largest_buffer) return fail(ErrorKind::invalid_argument, "adding a buffer of {} bytes: too large", bytes);
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    return fail(ErrorKind::full, "adding a buffer of {} bytes: all {} slots of the table are in use; release some",
                bytes, entries_.size());
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  BufferEntry& entry = entries_[slot];
  HostAtomics::store_relaxed(entry.address, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)));
  HostAtomics::store_relaxed(entry.bytes, bytes);
  HostAtomics::store_relaxed(entry.device, device);
  const std::uint32_t generation = entry.generation + 1;  // odd: in use
  HostAtomics::store_release(entry.generation, generation);
  owners_[slot].on_release = std::move(on_release);
  owners_[slot].references = 1;
  ++statistics_.added;
  ++statistics_.live;
  statistics_.live_bytes += bytes;
  return BufferHandle{slot, generation, bytes & largest_buffer, number_ & 0xffffu};
}

Result<BufferHandle> BufferTable::add_returning(void* host, void* actor_side, std::uint64_t bytes,
                                                std::function<void(BufferHandle)> on_return) {
  CGL_TRY_ASSIGN(const BufferHandle handle, add_borrowed(actor_side, bytes, 0, {}));
  const std::lock_guard lock(mutex_);
  owners_[handle.slot].host = static_cast<std::byte*>(host);
  owners_[handle.slot].on_return = std::move(on_return);
  return handle;
}

void BufferTable::retire(BufferHandle handle) {
  {
    const std::lock_guard lock(mutex_);
    if (!check(handle, "retiring a")) return;
    owners_[handle.slot].on_return = {};
  }
  static_cast<void>(release(handle));
}

bool BufferTable::returns(BufferHandle handle) const {
  const std::lock_guard lock(mutex_);
  return handle.table == number_ && handle.slot < entries_.size() &&
         entries_[handle.slot].generation == handle.generation && owners_[handle.slot].on_return != nullptr;
}

Status BufferTable::check(BufferHandle handle, std::string_view what) {
  if (handle.table == number_ && handle.slot < entries_.size() && (handle.generation & 1u) != 0 &&
      entries_[handle.slot].generation == handle.generation) {
    return {};
  }
  ++statistics_.stale_lookups;
  if (handle.table != number_) {
    return fail(ErrorKind::not_found, "{} buffer: the handle is of table {}, this is table {}", what,
                std::uint64_t{handle.table}, number_);
  }
  if (handle.slot >= entries_.size()) {
    return fail(ErrorKind::not_found, "{} buffer: slot {} is not in the table of {}", what, handle.slot,
                entries_.size());
  }
  return fail(ErrorKind::not_found,
              "{} buffer: the handle of slot {}, generation {} is stale (the slot is at {}); it was released before",
              what, handle.slot, handle.generation, entries_[handle.slot].generation);
}

Result<std::span<std::byte>> BufferTable::get(BufferHandle handle) {
  const std::lock_guard lock(mutex_);
  CGL_TRY(check(handle, "looking up a"));
  const BufferEntry& entry = entries_[handle.slot];
  if (entry.device != 0) {
    return fail(ErrorKind::invalid_argument,
                "looking up a buffer: slot {} is in the memory of device {}, not the host's", handle.slot,
                entry.device - 1);
  }
  std::byte* const host = owners_[handle.slot].host;
  return std::span(host != nullptr ? host : reinterpret_cast<std::byte*>(entry.address), entry.bytes);
}

Status BufferTable::retain(BufferHandle handle) {
  const std::lock_guard lock(mutex_);
  CGL_TRY(check(handle, "retaining a"));
  ++owners_[handle.slot].references;
  return {};
}

Result<std::uint32_t> BufferTable::release(BufferHandle handle) {
  Owner gone;  // freed outside the lock
  std::function<void(BufferHandle)> on_return;
  std::uint32_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    CGL_TRY(check(handle, "releasing a"));
    Owner& owner = owners_[handle.slot];
    left = --owner.references;
    BufferEntry& entry = entries_[handle.slot];
    if (left == 0 && owner.on_return) {
      handle.generation += 2;
      HostAtomics::store_release(entry.generation, handle.generation);
      handle.bytes = entry.bytes & largest_buffer;
      owner.references = 1;
      on_return = owner.on_return;
    } else if (left == 0) {
      HostAtomics::store_release(entry.generation, entry.generation + 1);
      ++statistics_.released;
      --statistics_.live;
      statistics_.live_bytes -= entry.bytes;
      gone = std::exchange(owner, Owner{});
      free_.push_back(handle.slot);
    }
  }
  if (on_return) on_return(handle);
  if (gone.on_release) gone.on_release();
  return left;
}

BufferTableStatistics BufferTable::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace cingulum::ring
