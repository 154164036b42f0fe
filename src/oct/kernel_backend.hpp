// How OctKernels reaches a device: a launch names a kernel, ranges of buffers and a record of parameters
// (kernel/kernel_records.hpp), and each backend runs it in its own way: loops over rows on the CPU, kernels that nvcc
// compiled ahead on CUDA, WGSL on WebGPU. The equality of all three is a test (oct_kernels.test.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"
#include "device/device.hpp"
#include "oct/device_volume.hpp"
#include "oct/kernel/kernel_pointers.hpp"

namespace cingulum::oct {

#define CGL_NAME(name) name,
enum class OctKernel : std::uint32_t { CGL_OCT_KERNELS(CGL_NAME) };
#undef CGL_NAME
#define CGL_ONE(name) +1
inline constexpr std::size_t oct_kernel_count = CGL_OCT_KERNELS(CGL_ONE);
#undef CGL_ONE

inline constexpr std::uint32_t no_compiled_word = UINT32_MAX;

// Which of a kernel's buffers it writes, and what it is called in WGSL.
struct KernelFacts {
  std::string_view name;
  std::size_t buffers;
  std::array<bool, most_kernel_buffers> written;
  std::array<std::uint32_t, 3> block;  // threads of a workgroup, and of a block of CUDA unless its launcher chooses
  // The word of its record that WGSL knows as a constant, `compiled_word`: there is a kernel for each of its values.
  std::uint32_t compiled_word = no_compiled_word;
};
[[nodiscard]] const KernelFacts& kernel_facts(OctKernel kernel);

// Elements of four bytes.
struct KernelRange {
  const Buffer* buffer = nullptr;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

[[nodiscard]] inline KernelRange planes_range(const DeviceVolume& volume, std::uint64_t first, std::uint64_t planes) {
  return {volume.buffer.get(), first * volume.shape.plane(), planes * volume.shape.plane()};
}
[[nodiscard]] inline KernelRange whole_range(const DeviceVolume& volume) {
  return {volume.buffer.get(), 0, volume.shape.voxels()};
}

struct KernelLaunch {
  OctKernel kernel;
  std::span<const KernelRange> ranges;
  std::span<const std::uint32_t> words;  // the record
  // GPUs: how many threads along each axis of the grid, at least.
  std::array<std::uint32_t, 3> threads{1, 1, 1};
};

template <class Record>
[[nodiscard]] std::span<const std::uint32_t> record_words(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 4 == 0);
  return {reinterpret_cast<const std::uint32_t*>(&record), sizeof(Record) / 4};
}

[[nodiscard]] KernelPointers pointers_of(const KernelLaunch& launch);

class KernelBackend {
 public:
  virtual ~KernelBackend() = default;
  KernelBackend(const KernelBackend&) = delete;
  KernelBackend& operator=(const KernelBackend&) = delete;

  [[nodiscard]] virtual Status launch(Queue& queue, const KernelLaunch& launch) = 0;
  template <class Record>
  [[nodiscard]] Status launch(Queue& queue, OctKernel kernel, const Record& record,
                              std::initializer_list<KernelRange> ranges, const std::array<std::uint32_t, 3>& threads) {
    return launch(queue, {kernel, {ranges.begin(), ranges.size()}, record_words(record), threads});
  }
  // The most elements of a range.
  [[nodiscard]] virtual std::uint64_t most_elements() const { return UINT64_MAX; }

 protected:
  KernelBackend() = default;
};

[[nodiscard]] Result<std::unique_ptr<KernelBackend>> make_host_oct_backend(Device& device);
// Declared here, defined in cuda/: the device is one of CUDA.
[[nodiscard]] Result<std::unique_ptr<KernelBackend>> make_cuda_oct_backend(Device& device);
[[nodiscard]] Result<std::unique_ptr<KernelBackend>> make_webgpu_oct_backend(Device& device);

// Calls body(first, planes) for slabs of so many planes, each as large as can be bound at once.
template <class Body>
[[nodiscard]] Status for_each_slab(std::uint32_t planes, std::uint64_t plane_elements, std::uint64_t most_elements,
                                   const Body& body) {
  const auto slab = static_cast<std::uint32_t>(std::min<std::uint64_t>(planes, most_elements / plane_elements));
  for (std::uint32_t first = 0; first < planes; first += slab) CGL_TRY(body(first, std::min(slab, planes - first)));
  return {};
}

}  // namespace cingulum::oct
