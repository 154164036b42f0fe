// The grid of a launch: enough blocks of a kernel's own size for the threads that are asked for.
#pragma once

#include "oct/cuda/oct_launch.hpp"

namespace cingulum::oct {

inline dim3 blocks_for(const std::array<std::uint32_t, 3>& threads, dim3 block) {
  return {(threads[0] + block.x - 1) / block.x, (threads[1] + block.y - 1) / block.y,
          (threads[2] + block.z - 1) / block.z};
}

}  // namespace cingulum::oct
