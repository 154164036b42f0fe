// The kernels of tract/kernel compiled for the instruction sets of this host. All have the same results; the CPU
// tracker takes the fastest, tests compare them.
#pragma once

#include <cstdint>

#include "tract/kernel/views.hpp"

namespace cingulum {

struct CpuKernels {
  const char* name;
  // kernel/track.hpp; positions and directions are x y z.
  InitialDirections (*initial_directions)(const TrackingInput& input, const Slab& slab, std::uint32_t seed,
                                          const float* position, float* directions);
  HalfEnd (*track_half)(const TrackingInput& input, const Slab& slab, std::uint32_t seed, std::uint32_t direction_index,
                        std::uint32_t half, const float* position, const float* ahead, float* points);
  // One step from a fixed point, for tests of distributions and for the bench: reads the record at `position` and
  // writes the direction; false where there is none.
  bool (*next_direction)(const TrackingInput& input, const Slab& slab, std::uint32_t seed, std::uint32_t step,
                         const float* position, const float* ahead, float* direction);
};

// Null where this program or this CPU has no such instructions.
[[nodiscard]] const CpuKernels* portable_kernels();
[[nodiscard]] const CpuKernels* avx2_kernels();
[[nodiscard]] const CpuKernels* avx512_kernels();

// The fastest of them.
[[nodiscard]] const CpuKernels& best_cpu_kernels();

}  // namespace cingulum
