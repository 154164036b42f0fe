// Which of the tracking kernels of CUDA runs a plan on a field of a device, with how many threads and how much shared
// memory: the one place that decides it. Called by cuda/cuda_tracker.cpp before a run, and by tests on machines without
// a GPU. Reads the counts of the input alone, no memory that it points to.
#pragma once

#include <cstdint>
#include <string_view>

#include "tract/kernel/paged_half.hpp"
#include "tract/paged/track_kernel_shapes.hpp"

namespace cingulum {

// What decides besides plan and field.
struct TrackKernelSituation {
  std::uint64_t shared_bytes = 0;  // that a block may have
  bool in_bricks = false;          // only a brick of the field is on the device
  bool any_shape = false;          // for comparisons: the kernels for all shapes where others would run
};

struct TrackLaunchShape {
  std::uint32_t threads = 0;       // of a block
  std::uint32_t shared_bytes = 0;  // of a block; those of its tables and, with `slabs_in_shared`, of its slabs
  std::uint32_t slab_words = 0;    // of a warp
  bool slabs_in_shared = false;    // else in global memory
  bool fits = true;                // false: the kernel needs slabs in shared memory, and there is too little
};

struct TrackKernelChoice {
  TrackKernelId seeds = TrackKernelId::none;  // none: there is no kernel for this getter on this field
  TrackKernelId halves = TrackKernelId::none;
  TrackKernelId too_large_for_shared =
      TrackKernelId::none;  // the kernel of a fixed shape that shared memory was too small for
  TrackLaunchShape seeds_launch;
  TrackLaunchShape halves_launch;
};

[[nodiscard]] TrackKernelChoice choose_track_kernels(const TrackingInput& input, const TrackKernelSituation& situation);

[[nodiscard]] std::string_view track_kernel_name(TrackKernelId id);

}  // namespace cingulum
