// The workloads' bodies as one persistent CUDA kernel.
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring {

[[nodiscard]] CudaProgram workload_program();

}  // namespace cingulum::ring
