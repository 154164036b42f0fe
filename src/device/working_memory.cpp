#include "device/working_memory.hpp"

#include <algorithm>
#include <map>

namespace cingulum {
namespace {

struct WorkingMemories {
  std::mutex mutex;
  std::map<const Device*, std::weak_ptr<WorkingMemory>> of_device;
};

WorkingMemories& working_memories() {
  static WorkingMemories memories;
  return memories;
}

std::uint64_t size_of(const Buffer& buffer) {
  return buffer.bytes();
}
std::uint64_t size_of(const HostMemory& host) {
  return host.bytes().size();
}

// The smallest of at least `bytes` and at most `most` for which `fits` holds; null where there is none.
template <class Memory, class Fits>
std::unique_ptr<Memory> take_from(std::vector<std::unique_ptr<Memory>>& kept, std::uint64_t bytes, std::uint64_t most,
                                  Fits&& fits) {
  auto best = kept.end();
  for (auto each = kept.begin(); each != kept.end(); ++each) {
    const std::uint64_t size = size_of(**each);
    if (size < bytes || size > most || !fits(**each)) continue;
    if (best == kept.end() || size < size_of(**best)) best = each;
  }
  if (best == kept.end()) return nullptr;
  std::unique_ptr<Memory> found = std::move(*best);
  kept.erase(best);
  return found;
}

// So much more than is asked for is given: memory that is a little too large would otherwise lie idle.
std::uint64_t near(std::uint64_t bytes) {
  constexpr std::uint64_t small = std::uint64_t{64} << 10;
  return std::max(small, bytes <= ~std::uint64_t{0} / 2 ? 2 * bytes : bytes);
}

}  // namespace

void GiveBackWorkingMemory::operator()(Buffer* buffer) const noexcept {
  memory->give_back(buffer);
}
void GiveBackWorkingMemory::operator()(HostMemory* host) const noexcept {
  memory->give_back(host);
}

std::shared_ptr<WorkingMemory> WorkingMemory::of(Device& device) {
  WorkingMemories& memories = working_memories();
  const std::lock_guard lock(memories.mutex);
  std::weak_ptr<WorkingMemory>& known = memories.of_device[&device];
  std::shared_ptr<WorkingMemory> memory = known.lock();
  if (memory == nullptr) {
    memory = std::shared_ptr<WorkingMemory>(new WorkingMemory(device));
    known = memory;
  }
  return memory;
}

std::uint64_t WorkingMemory::kept_on(const Device& device) {
  std::shared_ptr<WorkingMemory> memory;
  {
    WorkingMemories& memories = working_memories();
    const std::lock_guard lock(memories.mutex);
    const auto known = memories.of_device.find(&device);
    if (known != memories.of_device.end()) memory = known->second.lock();
  }
  return memory == nullptr ? 0 : memory->kept_bytes();
}

WorkingMemory::~WorkingMemory() {
  WorkingMemories& memories = working_memories();
  const std::lock_guard lock(memories.mutex);
  const auto known = memories.of_device.find(&device_);
  // Another one may have been made since the last holder went.
  if (known != memories.of_device.end() && known->second.expired()) memories.of_device.erase(known);
}

Result<WorkingBuffer> WorkingMemory::take(std::uint64_t bytes) {
  const auto any = [](const Buffer&) { return true; };
  const auto given = [&](std::unique_ptr<Buffer> buffer) {
    return WorkingBuffer(buffer.release(), GiveBackWorkingMemory{shared_from_this()});
  };
  free_what_may_go();
  {
    const std::lock_guard lock(mutex_);
    if (auto found = take_from(buffers_, bytes, near(bytes), any)) return given(std::move(found));
  }
  auto made = device_.allocate(bytes);
  if (made) return given(std::move(*made));
  if (made.error().kind() == ErrorKind::out_of_memory) {
    // Rather too large than none; and where only a wish keeps memory, what does not serve goes.
    std::unique_lock lock(mutex_);
    if (auto found = take_from(buffers_, bytes, ~std::uint64_t{0}, any)) return given(std::move(found));
    if (!device_.freeing_waits() && !buffers_.empty()) {
      std::vector<std::unique_ptr<Buffer>> freed;
      freed.swap(buffers_);
      lock.unlock();
      freed.clear();
      made = device_.allocate(bytes);
      if (made) return given(std::move(*made));
    }
  }
  return tl::make_unexpected(std::move(made.error()));
}

Result<WorkingHostMemory> WorkingMemory::take_host(std::uint64_t bytes, HostMemoryKind kind) {
  free_what_may_go();
  {
    const std::lock_guard lock(mutex_);
    const auto same_kind = [&](const HostMemory& host) { return host.kind() == kind; };
    if (auto found = take_from(host_, bytes, near(bytes), same_kind)) {
      return WorkingHostMemory(found.release(), GiveBackWorkingMemory{shared_from_this()});
    }
  }
  CGL_TRY_ASSIGN(auto made, device_.allocate_host(bytes, kind));
  return WorkingHostMemory(made.release(), GiveBackWorkingMemory{shared_from_this()});
}

std::shared_ptr<void> WorkingMemory::keep_all() {
  {
    const std::lock_guard lock(mutex_);
    ++holds_;
  }
  return std::shared_ptr<void>(nullptr, [self = shared_from_this()](void*) {
    {
      const std::lock_guard lock(self->mutex_);
      --self->holds_;
    }
    self->free_what_may_go();
  });
}

std::uint64_t WorkingMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& buffer : buffers_) sum += buffer->bytes();
  return sum;
}

void WorkingMemory::give_back(Buffer* buffer) noexcept {
  std::unique_ptr<Buffer> owned(buffer);
  try {
    const std::lock_guard lock(mutex_);
    if (keeps()) buffers_.push_back(std::move(owned));
  } catch (const std::bad_alloc&) {
    // No room to remember it: it is freed, or put off by the device.
  }
}

void WorkingMemory::give_back(HostMemory* host) noexcept {
  std::unique_ptr<HostMemory> owned(host);
  try {
    const std::lock_guard lock(mutex_);
    if (keeps()) host_.push_back(std::move(owned));
  } catch (const std::bad_alloc&) {
    // As above.
  }
}

void WorkingMemory::free_what_may_go() {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::unique_ptr<HostMemory>> host;
  const std::lock_guard lock(mutex_);
  if (keeps()) return;
  buffers.swap(buffers_);
  host.swap(host_);
}

}  // namespace cingulum
