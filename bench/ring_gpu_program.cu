#include "bench/ring_gpu_program.hpp"

#include "bench/ring_bodies.hpp"
#include "ring/cuda/resident_kernel.cuh"

namespace cingulum::bench {

ring::CudaProgram bench_program() {
  return ring::make_cuda_program<EchoBody, BatchEchoBody, BounceBody, FailingBody>(
      "bench actors", {"echo", "batch_echo", "bounce", "failing"});
}

}  // namespace cingulum::bench
