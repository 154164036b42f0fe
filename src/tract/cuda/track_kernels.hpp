// The tracking kernels that nvcc compiles ahead, as the launcher sees them: for every getter and kind of field a pair
// of kernels that runs all of it, and beside them pairs whose shapes (sphere, degree) are fixed when they are compiled.
// The latter have the former's bits (DeviceTracking.default_shapes_have_the_bits_of_the_cpu) and say in the headers of
// their steps what they gain.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tract/kernel/paged_half.hpp"

namespace cingulum {

// Memory of the warps of a launch.
struct SlabMemoryOnDevice {
  kernel::SlabLayout layout;
  float* global;  // of all warps, one slab after the other; null: shared memory
};

// What a kernel has of its slab: all of it, the record, nothing, and behind it the records of kernel/kept_corners.hpp;
// or what kernel/ptt_in_registers.hpp has per streamline.
enum class SlabUse { all, all_and_corners, record_and_corners, corners, probes };

// What a kernel takes: (TrackingInput, PagedWork, SlabMemoryOnDevice).
struct TrackKernel {
  const void* function = nullptr;
  std::uint32_t threads = 0;                                     // of a block, at most
  std::uint32_t blocks = 0;                                      // on a multiprocessor, for which its registers suffice
  std::uint32_t (*table_words)(const TrackingInput&) = nullptr;  // of shared memory that a block's tables take
  bool shared_slabs = false;                                     // cannot have slabs in global memory
  SlabUse slab_use = SlabUse::all;
  std::uint32_t walks = 1;  // halves that a warp tracks at a time
  // Tables that a kernel makes of the input, in words of device memory, and the launch that fills them and says in the
  // input where they are; null: none. It puts the number of cells for `expand` behind the pointer.
  std::size_t (*derived_words)(const TrackingInput&) = nullptr;
  cudaError_t (*derive)(TrackingInput&, std::uint32_t* words, std::uint32_t* cells, cudaStream_t) = nullptr;
  // The same for a larger table, which is done without where it does not fit; with it `expanded` is the kernel.
  std::size_t (*expanded_words)(const TrackingInput&, std::uint32_t cells) = nullptr;
  cudaError_t (*expand)(TrackingInput&, std::uint32_t* words, std::uint32_t cells, cudaStream_t) = nullptr;
  const void* expanded = nullptr;
};

struct TrackKernelPair {
  TrackKernel seeds;
  TrackKernel halves;
};

// Null functions where the file has no kernel for this input. `any_shape`: the one for all shapes.
[[nodiscard]] TrackKernelPair boot_kernels(const TrackingInput& input, bool any_shape);
[[nodiscard]] TrackKernelPair amplitude_kernels(const TrackingInput& input, bool any_shape);
[[nodiscard]] TrackKernelPair series_kernels(const TrackingInput& input, bool any_shape);
[[nodiscard]] TrackKernelPair ptt_kernels(const TrackingInput& input, bool any_shape);
[[nodiscard]] TrackKernelPair float16_kernels(const TrackingInput& input, bool any_shape);
[[nodiscard]] TrackKernelPair vector_kernels(const TrackingInput& input, bool any_shape);

// For every getter and kind of field, where only a brick of the field is on the device.
[[nodiscard]] TrackKernel brick_kernel();

[[nodiscard]] cudaError_t launch_compaction(const TrackingInput& input, const kernel::PagedWork& work,
                                            cudaStream_t stream);

}  // namespace cingulum
