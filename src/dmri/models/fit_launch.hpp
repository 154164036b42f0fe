// How the kernels of models are launched, as far as it follows from counts alone: threads of a block and its shared
// memory. Free of vendors' headers. Called by cuda/cuda_fit_device.cpp, and by tests on machines without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cingulum {

struct FitLaunchShape {
  std::uint32_t threads;       // of a block
  std::uint32_t shared_bytes;  // of a block
  bool fits;                   // whether there is as much
};

// A thread per voxel, with `numbers` float64 of its own; those that do not fit lie in global memory.
inline constexpr std::uint32_t voxel_fit_threads = 128;
[[nodiscard]] constexpr FitLaunchShape voxel_fit_launch(std::size_t numbers, std::uint64_t most_shared) {
  std::uint32_t threads = voxel_fit_threads;
  const auto bytes = [&] { return std::uint64_t{threads} * numbers * sizeof(double); };
  while (threads > 32 && bytes() > most_shared) threads -= 32;
  return {threads, static_cast<std::uint32_t>(bytes()), bytes() <= most_shared};
}

// A warp per voxel, with `team_bytes` of its own; what does not fit cannot be fitted.
inline constexpr std::uint32_t csd_threads = 64;
[[nodiscard]] constexpr FitLaunchShape csd_fit_launch(std::uint32_t team_bytes, std::uint64_t most_shared) {
  std::uint32_t threads = csd_threads;
  const auto bytes = [&] { return std::uint64_t{threads} / 32 * team_bytes; };
  while (threads > 32 && bytes() > most_shared) threads -= 32;
  return {threads, static_cast<std::uint32_t>(bytes()), bytes() <= most_shared};
}

}  // namespace cingulum
