// The actors that one persistent CUDA kernel can run: compiled ahead (ring/cuda/resident_kernel.cuh) or at run time
// from text (ring/cuda/user_program.hpp). No CUDA header is needed to hold one.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace cingulum::ring {

struct CudaProgram {
  std::string name;
  std::vector<std::string> actors;      // in the order of the bodies
  const void* kernel = nullptr;         // for the CUDA runtime: a __global__ function or a cudaKernel_t
  std::shared_ptr<void> compiled_code;  // keeps code that was compiled at run time
};

}  // namespace cingulum::ring
