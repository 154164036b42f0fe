#include "base/mapped_growth.hpp"

#include <algorithm>
#include <system_error>

namespace cingulum {
namespace {

// Taken in one call; between calls the thread can be stopped, and others may write headers.
constexpr std::uint64_t step_bytes = std::uint64_t{8} << 20U;
// As much as was asked for last is likely asked for next.
constexpr std::uint64_t most_ahead_bytes = std::uint64_t{128} << 20U;

}  // namespace

MappedGrowth::~MappedGrowth() {
  stop();
}

void MappedGrowth::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MappedGrowth::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || allocated_ < wanted_; });
    if (stop_) return;
    const std::uint64_t from = allocated_;
    const std::uint64_t size = std::min(wanted_ - from, step_bytes);
    lock.unlock();
    const int error = -uninterrupted([&] { return layer_.allocate(descriptor_, from, size); });
    lock.lock();
    if (error == 0) {
      allocated_ = from + size;
    } else {
      wanted_ = from;  // no more ahead: the writer asks for what it needs itself, and gets the reason
    }
    changed_.notify_all();
  }
}

int MappedGrowth::allocate_until(std::uint64_t end) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return allocated_ >= end || allocated_ >= wanted_; });
  if (allocated_ >= end) return 0;
  const std::uint64_t from = allocated_;
  lock.unlock();
  const int error = -uninterrupted([&] { return layer_.allocate(descriptor_, from, end - from); });
  lock.lock();
  if (error == 0) wanted_ = allocated_ = end;
  return error;
}

int MappedGrowth::map(std::uint64_t offset, std::size_t size, Bytes& bytes) {
  const std::uint64_t end = offset + size;
  if (const int error = allocate_until(end); error != 0) return error;
  const std::uint64_t first = offset / FileLayer::map_granule * FileLayer::map_granule;
  const auto before = static_cast<std::size_t>(offset - first);
  std::byte* mapping = nullptr;
  if (const int error = -layer_.map(descriptor_, first, before + size, mapping); error != 0) return error;
  bytes.layer_ = &layer_;
  bytes.mapping_ = mapping;
  bytes.mapping_bytes_ = before + size;
  bytes.bytes_ = {mapping + before, size};
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::max(allocated_, end + std::min<std::uint64_t>(size, most_ahead_bytes));
  }
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      const std::lock_guard lock(mutex_);
      wanted_ = allocated_;  // without a thread nothing comes ahead
    }
  }
  changed_.notify_all();
  return 0;
}

int MappedGrowth::finish(std::uint64_t size) {
  stop();
  return allocated_ > size ? -uninterrupted([&] { return layer_.cut(descriptor_, size); }) : 0;
}

}  // namespace cingulum
