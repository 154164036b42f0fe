// The kernels of tract/kernel compiled for the instruction sets of this host. All have the same results; the CPU
// tracker takes the fastest, tests compare them.
#pragma once

#include <cstdint>

#include "tract/kernel/views.hpp"

namespace cingulum {

// The most halves that one slab advances in turn, one step each.
inline constexpr std::uint32_t most_interleaved_halves = 8;

struct CpuKernels {
  const char* name;
  // kernel/track.hpp and kernel/walk.hpp; positions and directions are x y z.
  InitialDirections (*initial_directions)(const TrackingInput& input, const Slab& slab, std::uint32_t seed,
                                          const float* position, float* directions);
  HalfEnd (*track_half)(const TrackingInput& input, const Slab& slab, std::uint32_t seed, std::uint32_t direction_index,
                        std::uint32_t half, const float* position, const float* ahead, float* points);
  // Halves in turn, one step each, on one slab: the records that one will read come from memory while the others work.
  // `begin_half` prepares one; `advance_halves` goes on until one of `count` has ended and returns which.
  void (*begin_half)(const TrackingInput& input, std::uint32_t seed, std::uint32_t direction_index, std::uint32_t half,
                     const float* position, const float* ahead, float* points, HalfWalk& walk);
  std::uint32_t (*advance_halves)(const TrackingInput& input, const Slab& slab, HalfWalk* walks, std::uint32_t count);
  std::uint32_t (*halves_at_once)(const TrackingInput& input);  // how many it is best given
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
