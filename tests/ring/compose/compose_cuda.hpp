// The persistent kernel of the composed test's routers (compose_cuda.cu).
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring::testing {

[[nodiscard]] CudaProgram compose_program();

}  // namespace cingulum::ring::testing
