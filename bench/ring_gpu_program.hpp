// The actors of bench/ring_gpu.cpp as one persistent CUDA kernel, smaller than that of all workloads: echo, batch_echo,
// hop.
#pragma once

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::bench {

ring::CudaProgram bench_program();

}  // namespace cingulum::bench
