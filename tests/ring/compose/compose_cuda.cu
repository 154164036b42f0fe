#include "ring/compose/compose_cuda.hpp"

#include "ring/compose/router.hpp"
#include "ring/cuda/resident_kernel.cuh"

namespace cingulum::ring::testing {

CudaProgram compose_program() {
  return make_cuda_program<Router>("composed actors", {"router"});
}

}  // namespace cingulum::ring::testing
