#include "ring/workloads/cuda/workload_program.hpp"

#include "ring/cuda/resident_kernel.cuh"
#include "ring/workloads/anomaly_body.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/hop_body.hpp"
#include "ring/workloads/pagerank_body.hpp"

namespace cingulum::ring {

// In the order of WorkloadBody.
CudaProgram workload_program(std::vector<std::string> names) {
  return make_cuda_program<EchoBody, SumBody<false>, SumBody<true>, PageRankBody, AnomalyBody, HopBody, BatchEchoBody>(
      "workloads", std::move(names));
}

}  // namespace cingulum::ring
