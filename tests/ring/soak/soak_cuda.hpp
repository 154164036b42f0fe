// The persistent kernel of the soak's actors (soak_cuda.cu).
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring::soak {

[[nodiscard]] CudaProgram soak_program();

}  // namespace cingulum::ring::soak
