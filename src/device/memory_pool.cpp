#include "device/memory_pool.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "base/quantity.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t smallest_device_block = 512;
constexpr std::uint64_t smallest_pinned_block = 64;
constexpr std::uint64_t largest_slab_block = std::uint64_t{64} << 10;
constexpr std::uint64_t arena_bytes = std::uint64_t{2} << 20;
// Larger requests cannot be rounded up to a block; no machine has that much.
constexpr std::uint64_t largest_request = std::uint64_t{1} << 60;

Status check_request(const Device& device, std::uint64_t bytes) {
  if (bytes == 0) return fail(ErrorKind::invalid_argument, "pool on {}: a block needs at least one byte", device.id());
  if (bytes <= largest_request) return {};
  return fail(ErrorKind::out_of_memory, "pool on {}: {} were asked for in one block", device.id(), format_bytes(bytes));
}

// What a pool allocates to serve a request of a pinned class: an arena of many small blocks, or one large block.
std::uint64_t arena_bytes_for(std::uint64_t class_bytes) {
  return class_bytes <= largest_slab_block ? arena_bytes : class_bytes;
}

}  // namespace

std::uint64_t device_block_bytes(std::uint64_t bytes) {
  bytes = std::max(bytes, smallest_device_block);
  const std::uint64_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

std::uint64_t pinned_block_bytes(std::uint64_t bytes) {
  return std::bit_ceil(std::max(bytes, smallest_pinned_block));
}

// All bookkeeping of both pools; they differ in how blocks are made and which unused ones may be freed.
template <class Block>
class PoolCore : public std::enable_shared_from_this<PoolCore<Block>> {
 public:
  PoolCore(const Device& device, std::optional<std::uint64_t> limit_bytes) : device_id_(device.id()) {
    statistics_.limit_bytes = limit_bytes;
  }

  // A kept block, or one of those that `make` allocates (`make_bytes` in all); the others are kept.
  template <class Make>
  Result<PooledBlock<Block>> acquire(std::uint64_t class_bytes, std::uint64_t make_bytes, Make&& make) {
    return catch_out_of_memory([&]() -> Result<PooledBlock<Block>> {
      std::unique_lock lock(mutex_);
      ++statistics_.requests;
      SizeClass& size_class = classes_[class_bytes];
      if (!size_class.free.empty()) {
        ++statistics_.reused;
      } else {
        CGL_TRY(grow(lock, class_bytes, make_bytes, make));
      }
      Block block = std::move(size_class.free.back());
      size_class.free.pop_back();
      ++size_class.on_loan;
      forget(class_bytes, 1);
      statistics_.used_bytes += class_bytes;
      ++statistics_.used_blocks;
      return PooledBlock<Block>(this->shared_from_this(), std::move(block), class_bytes);
    });
  }

  template <class Make>
  Status reserve(std::uint64_t class_bytes, std::uint64_t make_bytes, std::uint64_t count, Make&& make) {
    return catch_out_of_memory([&]() -> Status {
      std::unique_lock lock(mutex_);
      const std::size_t before = classes_[class_bytes].made;
      while (classes_[class_bytes].made - before < count) CGL_TRY(grow(lock, class_bytes, make_bytes, make));
      return {};
    });
  }

  // Allocates nothing, so that it cannot fail: keep() made room.
  void give_back(std::uint64_t class_bytes, Block block) noexcept {
    const std::lock_guard lock(mutex_);
    statistics_.used_bytes -= class_bytes;
    --statistics_.used_blocks;
    if (closed_) return;
    SizeClass& size_class = classes_.find(class_bytes)->second;
    --size_class.on_loan;
    size_class.free.push_back(std::move(block));
    statistics_.kept_bytes += class_bytes;
    ++statistics_.kept_blocks;
  }

  // Frees unused blocks of each class, largest class first; `choose(class_bytes, free)` moves those that may go to the
  // end and returns where they start.
  template <class Choose>
  Result<std::uint64_t> trim(Choose&& choose) {
    std::vector<Block> freed;  // destroyed outside the lock: freeing may wait for the device
    std::uint64_t freed_bytes = 0;
    const std::lock_guard lock(mutex_);
    CGL_TRY(check_not_held("nothing is freed"));
    for (auto entry = classes_.rbegin(); entry != classes_.rend(); ++entry) {
      auto& blocks = entry->second.free;
      const auto first = choose(entry->first, blocks);
      const auto count = static_cast<std::uint64_t>(blocks.end() - first);
      std::move(first, blocks.end(), std::back_inserter(freed));
      blocks.erase(first, blocks.end());
      forget(entry->first, count);
      freed_bytes += count * entry->first;
    }
    return freed_bytes;
  }

  // Called by the pool's destructor: allocates nothing.
  void close() noexcept {
    std::map<std::uint64_t, SizeClass> freed;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    freed.swap(classes_);
    statistics_.kept_bytes = 0;
    statistics_.kept_blocks = 0;
  }

  PoolHold hold() {
    {
      const std::lock_guard lock(mutex_);
      ++holders_;
    }
    return PoolHold(std::shared_ptr<void>(nullptr, [self = this->shared_from_this()](void*) {
      const std::lock_guard lock(self->mutex_);
      --self->holders_;
    }));
  }

  void set_limit(std::optional<std::uint64_t> bytes) {
    const std::lock_guard lock(mutex_);
    statistics_.limit_bytes = bytes;
  }

  PoolStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

  [[nodiscard]] std::uint64_t kept_bytes() const { return statistics_.kept_bytes; }

 private:
  struct SizeClass {
    std::vector<Block> free;
    std::size_t on_loan = 0;
    std::size_t made = 0;
  };

  // Makes blocks, unlocked meanwhile. Their bytes are counted before, so that threads that grow at once keep the limit.
  template <class Make>
  Status grow(std::unique_lock<std::mutex>& lock, std::uint64_t class_bytes, std::uint64_t make_bytes, Make&& make) {
    CGL_TRY(check_not_held("nothing is allocated; reserve before"));
    CGL_TRY(check_limit(make_bytes));
    growing_bytes_ += make_bytes;
    lock.unlock();
    auto made = catch_out_of_memory([&] { return make(); });
    lock.lock();
    growing_bytes_ -= make_bytes;
    if (!made) return tl::make_unexpected(std::move(made.error()));
    keep(class_bytes, std::move(*made));
    return {};
  }

  void keep(std::uint64_t class_bytes, std::vector<Block> blocks) {
    SizeClass& size_class = classes_[class_bytes];
    size_class.made += blocks.size();
    auto& free = size_class.free;
    // Giving a block back must not fail: the places of those on loan are made with those of the new ones.
    free.reserve(free.size() + blocks.size() + size_class.on_loan);
    free.insert(free.end(), std::make_move_iterator(blocks.begin()), std::make_move_iterator(blocks.end()));
    statistics_.kept_bytes += blocks.size() * class_bytes;
    statistics_.kept_blocks += blocks.size();
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.used_bytes + statistics_.kept_bytes);
  }

  void forget(std::uint64_t class_bytes, std::uint64_t count) {
    statistics_.kept_bytes -= count * class_bytes;
    statistics_.kept_blocks -= count;
  }

  [[nodiscard]] Status check_not_held(std::string_view consequence) const {
    if (holders_ == 0) return {};
    return fail(ErrorKind::invalid_state, "pool on {}: it is held still (a persistent kernel runs), {}", device_id_,
                consequence);
  }

  [[nodiscard]] Status check_limit(std::uint64_t more_bytes) const {
    const std::uint64_t total = statistics_.used_bytes + statistics_.kept_bytes + growing_bytes_;
    const std::uint64_t limit = statistics_.limit_bytes.value_or(largest_request);
    if (more_bytes <= limit && total <= limit - more_bytes) return {};
    return fail(ErrorKind::out_of_memory, "pool on {}: {} more needed, {} in use and {} kept of a limit of {}",
                device_id_, format_bytes(more_bytes), format_bytes(statistics_.used_bytes),
                format_bytes(statistics_.kept_bytes), format_bytes(limit));
  }

  std::string device_id_;
  std::mutex mutex_;  // guards everything below
  std::map<std::uint64_t, SizeClass> classes_;
  PoolStatistics statistics_;
  std::uint64_t growing_bytes_ = 0;  // being allocated right now
  int holders_ = 0;
  bool closed_ = false;
};

template <class Block>
PooledBlock<Block>::PooledBlock(std::shared_ptr<PoolCore<Block>> core, Block block, std::uint64_t class_bytes)
    : core_(std::move(core)), block_(std::move(block)), class_bytes_(class_bytes) {}

template <class Block>
PooledBlock<Block>::PooledBlock(PooledBlock&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)), block_(std::move(other.block_)), class_bytes_(other.class_bytes_) {}

template <class Block>
PooledBlock<Block>& PooledBlock<Block>::operator=(PooledBlock&& other) noexcept {
  if (this != &other) {
    give_back();
    core_ = std::exchange(other.core_, nullptr);
    block_ = std::move(other.block_);
    class_bytes_ = other.class_bytes_;
  }
  return *this;
}

template <class Block>
PooledBlock<Block>::~PooledBlock() {
  give_back();
}

template <class Block>
void PooledBlock<Block>::give_back() noexcept {
  if (core_ == nullptr) return;
  core_->give_back(class_bytes_, std::move(block_));
  core_ = nullptr;
}

template class PooledBlock<DeviceBlock>;
template class PooledBlock<PinnedBlock>;

DevicePool::DevicePool(Device& device, std::optional<std::uint64_t> limit_bytes)
    : device_(device), core_(std::make_shared<PoolCore<DeviceBlock>>(device, limit_bytes)) {}
DevicePool::~DevicePool() {
  core_->close();
}

Result<std::vector<DeviceBlock>> DevicePool::make_block(std::uint64_t class_bytes) {
  auto buffer = device_.allocate(class_bytes);
  // What is kept for later goes before a request fails.
  if (!buffer && buffer.error().kind() == ErrorKind::out_of_memory && trim().value_or(0) > 0) {
    buffer = device_.allocate(class_bytes);
  }
  if (!buffer) return tl::make_unexpected(std::move(buffer.error()));
  std::vector<DeviceBlock> blocks;
  blocks.emplace_back(std::move(*buffer));
  return blocks;
}

Result<PooledBlock<DeviceBlock>> DevicePool::acquire(std::uint64_t bytes) {
  CGL_TRY(check_request(device_, bytes));
  const std::uint64_t class_bytes = device_block_bytes(bytes);
  return core_->acquire(class_bytes, class_bytes, [&] { return make_block(class_bytes); });
}

Status DevicePool::reserve(std::uint64_t bytes, std::uint64_t count) {
  CGL_TRY(check_request(device_, bytes));
  const std::uint64_t class_bytes = device_block_bytes(bytes);
  return core_->reserve(class_bytes, class_bytes, count, [&] { return make_block(class_bytes); });
}

Result<std::uint64_t> DevicePool::trim(std::uint64_t keep_bytes) {
  std::uint64_t kept = 0;
  bool first_class = true;
  return core_->trim([&](std::uint64_t class_bytes, std::vector<DeviceBlock>& free) {
    if (std::exchange(first_class, false)) kept = core_->kept_bytes();
    const std::uint64_t surplus = kept > keep_bytes ? kept - keep_bytes : 0;
    const std::uint64_t count = std::min<std::uint64_t>(free.size(), (surplus + class_bytes - 1) / class_bytes);
    kept -= count * class_bytes;
    return free.end() - static_cast<std::ptrdiff_t>(count);
  });
}

void DevicePool::set_limit(std::optional<std::uint64_t> bytes) {
  core_->set_limit(bytes);
}
PoolHold DevicePool::hold() {
  return core_->hold();
}
PoolStatistics DevicePool::statistics() const {
  return core_->statistics();
}

PinnedPool::PinnedPool(Device& device, HostMemoryKind kind, std::optional<std::uint64_t> limit_bytes)
    : device_(device), kind_(kind), core_(std::make_shared<PoolCore<PinnedBlock>>(device, limit_bytes)) {}
PinnedPool::~PinnedPool() {
  core_->close();
}

Result<std::vector<PinnedBlock>> PinnedPool::make_arena(std::uint64_t class_bytes) {
  const std::uint64_t bytes = arena_bytes_for(class_bytes);
  CGL_TRY_ASSIGN(std::shared_ptr<HostMemory> arena, device_.allocate_host(bytes, kind_));
  std::vector<PinnedBlock> blocks;
  auto* const device_start = static_cast<std::byte*>(arena->device_pointer());
  for (std::uint64_t offset = 0; offset + class_bytes <= bytes; offset += class_bytes) {
    blocks.push_back({arena, arena->bytes().subspan(offset, class_bytes),
                      device_start == nullptr ? nullptr : device_start + offset});
  }
  return blocks;
}

Result<PooledBlock<PinnedBlock>> PinnedPool::acquire(std::uint64_t bytes) {
  CGL_TRY(check_request(device_, bytes));
  const std::uint64_t class_bytes = pinned_block_bytes(bytes);
  return core_->acquire(class_bytes, arena_bytes_for(class_bytes), [&] { return make_arena(class_bytes); });
}

Status PinnedPool::reserve(std::uint64_t bytes, std::uint64_t count) {
  CGL_TRY(check_request(device_, bytes));
  const std::uint64_t class_bytes = pinned_block_bytes(bytes);
  return core_->reserve(class_bytes, arena_bytes_for(class_bytes), count, [&] { return make_arena(class_bytes); });
}

Result<std::uint64_t> PinnedPool::trim() {
  return core_->trim([](std::uint64_t class_bytes, std::vector<PinnedBlock>& free) {
    // An arena can go when all of its blocks are here.
    std::map<const HostMemory*, std::uint64_t> here;
    for (const PinnedBlock& block : free) here[block.arena.get()] += class_bytes;
    return std::stable_partition(free.begin(), free.end(), [&](const PinnedBlock& block) {
      return here[block.arena.get()] < block.arena->bytes().size();
    });
  });
}

void PinnedPool::set_limit(std::optional<std::uint64_t> bytes) {
  core_->set_limit(bytes);
}
PoolHold PinnedPool::hold() {
  return core_->hold();
}
PoolStatistics PinnedPool::statistics() const {
  return core_->statistics();
}

}  // namespace cingulum
