// Takes nearly all of a device's memory, so that other processes find it full. Used by tests of tracking with little
// memory, and by the program gpu_ballast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace cingulum::testing {

// All memory of the device but about `left` bytes, for as long as the buffers live. The driver rounds allocations up,
// so the goal is approached in smaller and smaller pieces.
inline std::vector<std::unique_ptr<Buffer>> take_all_but(Device& device, std::uint64_t left) {
  constexpr std::uint64_t largest = std::uint64_t{8} << 30, least = std::uint64_t{2} << 20;
  std::vector<std::unique_ptr<Buffer>> ballast;
  for (std::uint64_t piece = largest; piece >= least;) {
    const auto memory = device.memory();
    const std::uint64_t free = memory ? memory->free_bytes.value_or(0) : 0;
    if (free < left + least) break;
    auto more = device.allocate(std::min(free - left, piece));
    if (more) {
      ballast.push_back(std::move(*more));
    } else {
      piece /= 2;
    }
  }
  return ballast;
}

}  // namespace cingulum::testing
