#include "device/unified_buffer.hpp"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "device/borrowed_buffer.hpp"

namespace cingulum {
namespace {

struct TensorDeleter {
  void operator()(DLManagedTensor* tensor) const {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};

// The number of bytes of a shape, refusing what does not count.
Result<std::uint64_t> bytes_of(ElementType type, std::span<const std::int64_t> shape) {
  if (type.bits == 0 || type.bits % 8 != 0) {
    return fail(ErrorKind::invalid_argument, "elements of {} bits are not whole bytes", type.bits);
  }
  std::uint64_t bytes = type.bytes();
  for (const std::int64_t extent : shape) {
    if (extent <= 0)
      return fail(ErrorKind::invalid_argument, "an extent of {} in a shape; extents are at least 1", extent);
    const auto count = static_cast<std::uint64_t>(extent);
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / count) {
      return fail(ErrorKind::invalid_argument, "a shape of more than 2^63 bytes");
    }
    bytes *= count;
  }
  return bytes;
}

bool is_contiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

}  // namespace

std::string_view buffer_state_name(BufferState state) {
  switch (state) {
    case BufferState::uninitialised: return "uninitialised";
    case BufferState::host_only: return "host_only";
    case BufferState::device_only: return "device_only";
    case BufferState::synchronised: return "synchronised";
    case BufferState::host_dirty: return "host_dirty";
    case BufferState::device_dirty: return "device_dirty";
  }
  return "unknown";
}

struct UnifiedBuffer::Storage {
  Storage(Queue& on, ElementType elements, std::vector<std::int64_t> extents, std::uint64_t all_bytes,
          HostMemoryKind kind)
      : queue(on), type(elements), shape(std::move(extents)), bytes(all_bytes), host_kind(kind) {}

  Queue& queue;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;
  HostMemoryKind host_kind;
  BufferState state = BufferState::uninitialised;
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<Buffer> device;
  // Borrowed host memory, and the tensor that both kinds of borrowed memory belong to.
  void* borrowed_host = nullptr;
  std::unique_ptr<DLManagedTensor, TensorDeleter> tensor;
  std::shared_ptr<AccessGuard::Counts> counts = std::make_shared<AccessGuard::Counts>();
  std::uint64_t uploads = 0;
  std::uint64_t downloads = 0;

  [[nodiscard]] bool shared() const { return queue.device().capabilities().shares_host_memory; }
  [[nodiscard]] void* host_pointer() const {
    if (borrowed_host != nullptr) return borrowed_host;
    if (host != nullptr) return host->bytes().data();
    return shared() && device != nullptr ? device->device_pointer() : nullptr;
  }
  [[nodiscard]] std::span<std::byte> host_bytes() const { return {static_cast<std::byte*>(host_pointer()), bytes}; }

  // The last upload, while it may still be reading the host copy.
  std::unique_ptr<Event> upload;
  Status wait_for_upload() {
    if (upload == nullptr) return {};
    const std::unique_ptr<Event> event = std::move(upload);
    return event->wait();
  }

  // The copies end before their memory goes.
  ~Storage() { static_cast<void>(wait_for_upload()); }
};

AccessGuard::AccessGuard(std::shared_ptr<Counts> counts, Side side) : counts_(std::move(counts)), side_(side) {
  ++count_of(*counts_, side_);
}
AccessGuard::AccessGuard(AccessGuard&& other) noexcept : counts_(std::move(other.counts_)), side_(other.side_) {}
AccessGuard::~AccessGuard() {
  if (counts_ != nullptr) --count_of(*counts_, side_);
}
int& AccessGuard::count_of(Counts& counts, Side side) {
  switch (side) {
    case Side::host_read: return counts.host_readers;
    case Side::host_write: return counts.host_writers;
    case Side::device_read: return counts.device_readers;
    case Side::device_write: break;
  }
  return counts.device_writers;
}

Result<UnifiedBuffer> UnifiedBuffer::create(Queue& queue, ElementType type, std::vector<std::int64_t> shape,
                                            HostMemoryKind host_kind) {
  return catch_out_of_memory([&]() -> Result<UnifiedBuffer> {
    CGL_TRY_ASSIGN(const std::uint64_t bytes, bytes_of(type, shape));
    return UnifiedBuffer(std::make_shared<Storage>(queue, type, std::move(shape), bytes, host_kind));
  });
}

Result<UnifiedBuffer> UnifiedBuffer::from_dlpack(Queue& queue, DLManagedTensor* tensor) {
  if (tensor == nullptr) return fail(ErrorKind::invalid_argument, "DLPack: there is no tensor");
  const DLTensor& source = tensor->dl_tensor;
  if (source.dtype.lanes != 1)
    return fail(ErrorKind::invalid_argument, "DLPack: vector elements ({} lanes)", source.dtype.lanes);
  if (source.dtype.code != kDLInt && source.dtype.code != kDLUInt && source.dtype.code != kDLFloat &&
      source.dtype.code != kDLComplex) {
    return fail(ErrorKind::invalid_argument, "DLPack: elements of type code {} are not supported", source.dtype.code);
  }
  const ElementType type{static_cast<ElementType::Code>(source.dtype.code), source.dtype.bits};
  if (source.ndim < 0 || (source.ndim > 0 && source.shape == nullptr) || source.data == nullptr) {
    return fail(ErrorKind::invalid_argument, "DLPack: the tensor has no shape or no data");
  }
  const std::span<const std::int64_t> shape(source.shape, static_cast<std::size_t>(source.ndim));
  CGL_TRY(bytes_of(type, shape).map([](std::uint64_t) {}));
  // Complex numbers are aligned as their halves are.
  if ((reinterpret_cast<std::uintptr_t>(source.data) + source.byte_offset) % std::min<std::size_t>(type.bytes(), 8) !=
      0) {
    return fail(ErrorKind::invalid_argument, "DLPack: the elements are not aligned");
  }
  if (!is_contiguous(source))
    return fail(ErrorKind::invalid_argument, "DLPack: the tensor is not contiguous; copy it first");
  return catch_out_of_memory([&]() -> Result<UnifiedBuffer> {
    CGL_TRY_ASSIGN(UnifiedBuffer buffer, create(queue, type, {shape.begin(), shape.end()}));
    Storage& storage = *buffer.storage_;
    auto* const data = static_cast<std::byte*>(source.data) + source.byte_offset;
    const auto& own = queue.device().description().dlpack;
    const bool on_host = source.device.device_type == kDLCPU || source.device.device_type == kDLCUDAHost;
    const bool on_device =
        own && own->type == static_cast<std::int32_t>(source.device.device_type) && own->id == source.device.device_id;
    if (!on_host && !on_device) {
      return fail(ErrorKind::invalid_argument,
                  "DLPack: the tensor lies on device type {} number {}, not on the host or {}",
                  static_cast<int>(source.device.device_type), source.device.device_id, queue.device().id());
    }
    if (on_device || storage.shared()) {
      storage.device = std::make_unique<BorrowedBuffer>(queue.device(), data, storage.bytes);
    }
    if (on_host && !storage.shared()) storage.borrowed_host = data;
    storage.state =
        storage.shared() ? BufferState::synchronised : (on_host ? BufferState::host_only : BufferState::device_only);
    storage.tensor.reset(tensor);  // last: on failure it stays the caller's
    return buffer;
  });
}

UnifiedBuffer::UnifiedBuffer(UnifiedBuffer&&) noexcept = default;
UnifiedBuffer& UnifiedBuffer::operator=(UnifiedBuffer&&) noexcept = default;
UnifiedBuffer::~UnifiedBuffer() = default;

Device& UnifiedBuffer::device() const {
  return storage_->queue.device();
}
ElementType UnifiedBuffer::type() const {
  return storage_->type;
}
std::span<const std::int64_t> UnifiedBuffer::shape() const {
  return storage_->shape;
}
std::uint64_t UnifiedBuffer::size() const {
  return storage_->bytes / storage_->type.bytes();
}
std::uint64_t UnifiedBuffer::bytes() const {
  return storage_->bytes;
}
BufferState UnifiedBuffer::state() const {
  return storage_->state;
}
std::uint64_t UnifiedBuffer::uploads() const {
  return storage_->uploads;
}
std::uint64_t UnifiedBuffer::downloads() const {
  return storage_->downloads;
}
void* UnifiedBuffer::host_data() const {
  return storage_->host_pointer();
}

// With one memory for both sides there is nothing to disagree about: every state but uninitialised is synchronised.
void UnifiedBuffer::set_state(BufferState state) {
  storage_->state = storage_->shared() && state != BufferState::uninitialised ? BufferState::synchronised : state;
}

// A side without a twin has nothing that could be old.
void UnifiedBuffer::set_written_on_host() {
  set_state(storage_->device == nullptr ? BufferState::host_only : BufferState::host_dirty);
}

void UnifiedBuffer::set_written_on_device() {
  set_state(host_data() == nullptr ? BufferState::device_only : BufferState::device_dirty);
}

Status UnifiedBuffer::check_type(ElementType wanted) const {
  if (wanted == type()) return {};
  return fail(ErrorKind::invalid_argument, "a view of {} elements on a buffer of {}", wanted.name(), type().name());
}

Status UnifiedBuffer::check_access(AccessGuard::Side side) const {
  if (!is_allocated()) {
    return fail(ErrorKind::invalid_state, "the buffer is not allocated; call allocate, fill or copy_from first");
  }
  const AccessGuard::Counts& open = *storage_->counts;
  const char* holder = nullptr;
  if (open.host_writers > 0) holder = "is being written on the host";
  if (open.device_writers > 0) holder = "is being written on the device";
  const bool writes = side == AccessGuard::Side::host_write || side == AccessGuard::Side::device_write;
  if (writes && open.host_readers > 0) holder = "is being read on the host";
  if (writes && open.device_readers > 0) holder = "is being read on the device";
  if (holder == nullptr) return {};
  return fail(ErrorKind::invalid_state, "the buffer {}: release that view first", holder);
}

Status UnifiedBuffer::ensure_host_memory() {
  Storage& storage = *storage_;
  if (storage.host_pointer() != nullptr) return {};
  if (storage.shared()) return ensure_device_memory();
  CGL_TRY_ASSIGN(storage.host, device().allocate_host(storage.bytes, storage.host_kind));
  std::memset(storage.host->bytes().data(), 0, storage.bytes);
  return {};
}

Status UnifiedBuffer::ensure_device_memory() {
  Storage& storage = *storage_;
  if (storage.device != nullptr) return {};
  CGL_TRY_ASSIGN(auto memory, device().allocate(storage.bytes));
  CGL_TRY(storage.queue.fill(*memory, 0, storage.bytes, std::byte{0}));
  storage.device = std::move(memory);
  return {};
}

Status UnifiedBuffer::allocate(bool host, bool device) {
  if (is_allocated())
    return fail(ErrorKind::invalid_state, "the buffer is already allocated ({})", buffer_state_name(state()));
  if (!host && !device) return fail(ErrorKind::invalid_argument, "allocate neither on the host nor on the device");
  // The device first: it is the one that refuses, and nothing is kept then.
  if (device) CGL_TRY(ensure_device_memory());
  if (host) {
    if (Status status = ensure_host_memory(); !status) {
      storage_->device.reset();
      return status;
    }
  }
  set_state(host && device ? BufferState::synchronised : (host ? BufferState::host_only : BufferState::device_only));
  return {};
}

Status UnifiedBuffer::free() {
  if (is_allocated()) CGL_TRY(check_access(AccessGuard::Side::device_write));
  // Copies in flight end before their memory goes.
  CGL_TRY(storage_->queue.synchronise());
  Storage& old = *storage_;
  // Exported tensors may still hold the old storage: they keep it, this buffer starts anew.
  auto fresh = catch_out_of_memory([&]() -> Result<std::shared_ptr<Storage>> {
    return std::make_shared<Storage>(old.queue, old.type, old.shape, old.bytes, old.host_kind);
  });
  if (!fresh) return tl::make_unexpected(fresh.error());
  storage_ = std::move(*fresh);
  return {};
}

Status UnifiedBuffer::ensure_on_host() {
  CGL_TRY(check_access(AccessGuard::Side::host_read));
  if (state() != BufferState::device_only && state() != BufferState::device_dirty) return {};
  CGL_TRY(ensure_host_memory());
  CGL_TRY(storage_->queue.download(storage_->host_bytes(), *storage_->device, 0));
  CGL_TRY(storage_->queue.synchronise());
  ++storage_->downloads;
  set_state(BufferState::synchronised);
  return {};
}

Status UnifiedBuffer::ensure_on_device() {
  CGL_TRY(check_access(AccessGuard::Side::device_read));
  if (state() != BufferState::host_only && state() != BufferState::host_dirty) return {};
  CGL_TRY(ensure_device_memory());
  CGL_TRY(storage_->queue.upload(*storage_->device, 0, storage_->host_bytes()));
  // Not waited for: work on the queue comes after it, and whoever writes the host copy waits first.
  auto event = storage_->queue.record();
  if (!event) {
    static_cast<void>(storage_->queue.synchronise());
    return tl::make_unexpected(std::move(event.error()));
  }
  storage_->upload = std::move(*event);
  ++storage_->uploads;
  set_state(BufferState::synchronised);
  return {};
}

Status UnifiedBuffer::synchronise() {
  CGL_TRY(ensure_on_host());
  CGL_TRY(ensure_on_device());
  CGL_TRY(ensure_host_memory());
  return ensure_device_memory();
}

Result<AccessGuard> UnifiedBuffer::open_host(AccessGuard::Side side) {
  CGL_TRY(check_access(side));
  CGL_TRY(ensure_on_host());
  if (side == AccessGuard::Side::host_write) {
    CGL_TRY(storage_->wait_for_upload());
    set_written_on_host();
  }
  return AccessGuard(storage_->counts, side);
}

Result<DeviceView> UnifiedBuffer::open_device(AccessGuard::Side side) {
  CGL_TRY(check_access(side));
  CGL_TRY(ensure_on_device());
  if (side == AccessGuard::Side::device_write) {
    set_written_on_device();
  }
  return DeviceView{AccessGuard(storage_->counts, side), storage_->device.get()};
}

Result<DeviceView> UnifiedBuffer::device_read() {
  return open_device(AccessGuard::Side::device_read);
}
Result<DeviceView> UnifiedBuffer::device_write() {
  return open_device(AccessGuard::Side::device_write);
}

// Before a write of the whole host copy, which needs no old data.
Status UnifiedBuffer::begin_host_overwrite() {
  if (is_allocated()) CGL_TRY(check_access(AccessGuard::Side::host_write));
  CGL_TRY(ensure_host_memory());
  return storage_->wait_for_upload();
}

Status UnifiedBuffer::copy_from(std::span<const std::byte> from) {
  if (from.size() != bytes()) {
    return fail(ErrorKind::invalid_argument, "copy_from: {} bytes into a buffer of {}", from.size(), bytes());
  }
  CGL_TRY(begin_host_overwrite());
  std::memcpy(host_data(), from.data(), from.size());
  set_written_on_host();
  return {};
}

Status UnifiedBuffer::fill(std::byte value) {
  CGL_TRY(begin_host_overwrite());
  std::memset(host_data(), std::to_integer<int>(value), bytes());
  set_written_on_host();
  return {};
}

Status UnifiedBuffer::copy_to(std::span<std::byte> to) {
  if (to.size() != bytes()) {
    return fail(ErrorKind::invalid_argument, "copy_to: a buffer of {} bytes into {}", bytes(), to.size());
  }
  CGL_TRY_ASSIGN(const AccessGuard guard, open_host(AccessGuard::Side::host_read));
  std::memcpy(to.data(), host_data(), to.size());
  return {};
}

Status UnifiedBuffer::mark_host_dirty() {
  CGL_TRY(check_access(AccessGuard::Side::host_write));
  if (host_data() == nullptr) return fail(ErrorKind::invalid_state, "mark_host_dirty: there is no host copy");
  if (state() == BufferState::device_dirty) {
    return fail(ErrorKind::invalid_state,
                "mark_host_dirty: the device copy is dirty too, one of the two would be lost");
  }
  set_written_on_host();
  return {};
}

Status UnifiedBuffer::mark_device_dirty() {
  CGL_TRY(check_access(AccessGuard::Side::device_write));
  if (storage_->device == nullptr) return fail(ErrorKind::invalid_state, "mark_device_dirty: there is no device copy");
  if (state() == BufferState::host_dirty) {
    return fail(ErrorKind::invalid_state,
                "mark_device_dirty: the host copy is dirty too, one of the two would be lost");
  }
  set_written_on_device();
  return {};
}

Result<DLManagedTensor*> UnifiedBuffer::to_dlpack(Side side) {
  CGL_TRY(check_access(side == Side::host ? AccessGuard::Side::host_read : AccessGuard::Side::device_read));
  CGL_TRY(side == Side::host ? ensure_on_host() : ensure_on_device());
  // Others know nothing of our queue.
  CGL_TRY(storage_->queue.synchronise());
  void* const data = side == Side::host ? host_data() : storage_->device->device_pointer();
  const auto& own = device().description().dlpack;
  if (data == nullptr || (side == Side::device && !own)) {
    return fail(ErrorKind::unavailable,
                "DLPack: memory of {} has no address that others could use; export the host side", device().id());
  }
  // The tensor shares the storage, so the memory lives as long as the last of the two.
  struct Export {
    DLManagedTensor tensor;
    std::shared_ptr<Storage> storage;
  };
  return catch_out_of_memory([&]() -> Result<DLManagedTensor*> {
    auto exported = std::make_unique<Export>();
    exported->storage = storage_;
    DLTensor& tensor = exported->tensor.dl_tensor;
    tensor.data = data;
    tensor.device = {kDLCPU, 0};
    if (side == Side::device) tensor.device = {static_cast<DLDeviceType>(own->type), own->id};
    tensor.ndim = static_cast<int>(storage_->shape.size());
    tensor.dtype = {static_cast<std::uint8_t>(type().code), type().bits, 1};
    tensor.shape = storage_->shape.data();
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
    exported->tensor.manager_ctx = exported.get();
    exported->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); };
    return &exported.release()->tensor;
  });
}

}  // namespace cingulum
