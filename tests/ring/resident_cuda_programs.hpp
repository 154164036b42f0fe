// The persistent kernels of the tests (resident_cuda_programs.cu).
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring::testing {

[[nodiscard]] CudaProgram cuda_test_program();
// The bodies of ability_bodies.hpp.
[[nodiscard]] CudaProgram cuda_ability_program(std::vector<std::string> names);
[[nodiscard]] CudaProgram cuda_trapping_program();

}  // namespace cingulum::ring::testing
