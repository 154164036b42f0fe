// The tracking kernels that nvcc compiles ahead, as the launcher sees them: those of track_kernel_shapes.hpp, by name.
// Those whose shapes (sphere, degree) are fixed when they are compiled have the bits of the others
// (DeviceTracking.default_shapes_have_the_bits_of_the_cpu) and say in the headers of their steps what they gain.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tract/kernel/paged_half.hpp"
#include "tract/paged/track_kernel_shapes.hpp"

namespace cingulum {

// Memory of the warps of a launch.
struct SlabMemoryOnDevice {
  kernel::SlabLayout layout;
  float* global;  // of all warps, one slab after the other; null: shared memory
};

// What a kernel takes: (TrackingInput, PagedWork, SlabMemoryOnDevice).
struct TrackKernel {
  const void* function = nullptr;
  // Tables that a kernel makes of the input, in words of device memory, and the launch that fills them and says in the
  // input where they are; null: none. It puts the number of cells for `expand` behind the pointer.
  std::size_t (*derived_words)(const TrackingInput&) = nullptr;
  cudaError_t (*derive)(TrackingInput&, std::uint32_t* words, std::uint32_t* cells, cudaStream_t) = nullptr;
  // The same for a larger table, which is done without where it does not fit; with it `expanded` is the kernel.
  std::size_t (*expanded_words)(const TrackingInput&, std::uint32_t cells) = nullptr;
  cudaError_t (*expand)(TrackingInput&, std::uint32_t* words, std::uint32_t cells, cudaStream_t) = nullptr;
  const void* expanded = nullptr;
};

// Null functions where the file has no kernel of this name. `at_seeds`: the one that finds initial directions.
[[nodiscard]] TrackKernel boot_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel amplitude_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel series_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel ptt_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel float16_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel vector_kernel(TrackKernelId id, bool at_seeds);
[[nodiscard]] TrackKernel brick_kernel(TrackKernelId id, bool at_seeds);

// The one among all files.
[[nodiscard]] inline TrackKernel track_kernel(TrackKernelId id, bool at_seeds) {
  for (const auto find :
       {float16_kernel, ptt_kernel, boot_kernel, amplitude_kernel, series_kernel, vector_kernel, brick_kernel}) {
    const TrackKernel kernel = find(id, at_seeds);
    if (kernel.function != nullptr) return kernel;
  }
  return {};
}

[[nodiscard]] cudaError_t launch_compaction(const TrackingInput& input, const kernel::PagedWork& work,
                                            cudaStream_t stream);

}  // namespace cingulum
