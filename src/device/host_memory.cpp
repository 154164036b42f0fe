#include "device/host_memory.hpp"

#include "base/quantity.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t least_alignment = 256;  // the offset alignment of kernel arguments, and several cache lines
// Memory of many pages begins with one: files are read straight into it.
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t many_pages = 16 * page_bytes;

class OrdinaryHostMemory final : public HostMemory {
 public:
  OrdinaryHostMemory(const Device& device, AlignedBytes memory, std::uint64_t bytes, HostMemoryKind kind)
      : HostMemory(device, {memory.get(), bytes}, kind), memory_(std::move(memory)) {}
  [[nodiscard]] void* device_pointer() const override {
    return kind() == HostMemoryKind::mapped ? memory_.get() : nullptr;
  }

 private:
  AlignedBytes memory_;
};

}  // namespace

AlignedBytes allocate_aligned(std::uint64_t bytes) {
  if (bytes > (std::uint64_t{1} << 62)) return nullptr;
  const std::uint64_t alignment = bytes < many_pages ? least_alignment : page_bytes;
  const std::uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
}

Result<std::unique_ptr<HostMemory>> allocate_ordinary_host_memory(const Device& device, std::uint64_t bytes,
                                                                  HostMemoryKind kind) {
  AlignedBytes memory = allocate_aligned(bytes);
  if (memory == nullptr) {
    return fail(ErrorKind::out_of_memory, "{} of host memory could not be allocated; ask for less at a time",
                format_bytes(bytes));
  }
  return std::make_unique<OrdinaryHostMemory>(device, std::move(memory), bytes, kind);
}

}  // namespace cingulum
