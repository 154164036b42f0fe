// The workloads' bodies as one persistent CUDA kernel.
#pragma once

#include <string>
#include <vector>

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring {

// `names` are those of workload_body_names().
[[nodiscard]] CudaProgram workload_program(std::vector<std::string> names);

}  // namespace cingulum::ring
