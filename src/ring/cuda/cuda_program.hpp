// The actors that one persistent CUDA kernel can run: compiled ahead (ring/cuda/resident_kernel.cuh) or at run time
// from text (ring/cuda/user_program.hpp). No CUDA header is needed to hold one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ring/resident/body_type.hpp"

namespace cingulum::ring {

struct CudaProgram {
  std::string name;
  std::vector<std::string> actors;  // in the order of the bodies
  // The cudaKernel_t; where it is null, find_kernel finds it and answers 0 or the error of the CUDA runtime.
  // find_kernel is compiled beside the kernel: every binary with CUDA code has a runtime of its own, and only that one
  // knows the kernel by its address. What it finds is the driver's and good for all of them.
  const void* kernel = nullptr;
  int (*find_kernel)(const void** kernel) = nullptr;
  std::shared_ptr<void> compiled_code;  // keeps code that was compiled at run time
  std::vector<BodyType> types;          // of the actors
  std::uint32_t block_bytes = 0;        // shared memory of a block that its bodies ask for
};

}  // namespace cingulum::ring
