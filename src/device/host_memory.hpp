// Ordinary host memory, aligned for vector registers and page-sized copies: what the CPU device hands out and what
// every backend uses for HostMemoryKind::pageable.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum {

struct FreeDeleter {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeDeleter>;

// Null when there is no such amount of memory.
[[nodiscard]] AlignedBytes allocate_aligned(std::uint64_t bytes);

// `kind` is what the result calls itself. For `mapped`, the device pointer is the host pointer: for devices that are
// the host.
[[nodiscard]] Result<std::unique_ptr<HostMemory>> allocate_ordinary_host_memory(const Device& device,
                                                                                std::uint64_t bytes,
                                                                                HostMemoryKind kind);

}  // namespace cingulum
