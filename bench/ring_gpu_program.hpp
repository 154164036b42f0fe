// The actors of bench/ring_gpu.cpp as one persistent CUDA kernel: echo, batch_echo, bounce.
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::bench {

ring::CudaProgram bench_program();

}  // namespace cingulum::bench
