// The body of tracking actors as a persistent CUDA kernel.
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum {

[[nodiscard]] ring::CudaProgram resident_tracking_program();

}  // namespace cingulum
