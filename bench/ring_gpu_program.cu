#include "bench/ring_gpu_program.hpp"

#include "ring/cuda/resident_kernel.cuh"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/hop_body.hpp"

namespace cingulum::bench {

// By the names of ring::workload_body_name.
ring::CudaProgram bench_program() {
  return ring::make_cuda_program<ring::EchoBody, ring::BatchEchoBody, ring::HopBody>("bench actors",
                                                                                     {"echo", "batch_echo", "hop"});
}

}  // namespace cingulum::bench
