#include "device/host_memory.hpp"

#include "base/quantity.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t alignment_bytes = 256;  // the offset alignment of kernel arguments, and several cache lines

class OrdinaryHostMemory final : public HostMemory {
 public:
  OrdinaryHostMemory(AlignedBytes memory, std::uint64_t bytes, HostMemoryKind kind)
      : HostMemory({memory.get(), bytes}, kind), memory_(std::move(memory)) {}
  [[nodiscard]] void* device_pointer() const override {
    return kind() == HostMemoryKind::mapped ? memory_.get() : nullptr;
  }

 private:
  AlignedBytes memory_;
};

}  // namespace

AlignedBytes allocate_aligned(std::uint64_t bytes) {
  if (bytes > (std::uint64_t{1} << 62)) return nullptr;
  const std::uint64_t rounded = (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(alignment_bytes, rounded)));
}

Result<std::unique_ptr<HostMemory>> allocate_ordinary_host_memory(std::uint64_t bytes, HostMemoryKind kind) {
  AlignedBytes memory = allocate_aligned(bytes);
  if (memory == nullptr) {
    return fail(ErrorKind::out_of_memory, "{} of host memory could not be allocated", format_bytes(bytes));
  }
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<HostMemory>> {
    return std::make_unique<OrdinaryHostMemory>(std::move(memory), bytes, kind);
  });
}

}  // namespace cingulum
