// The persistent kernel of a program of actors: include this in a .cu file, name the bodies, and give the program to a
// CudaBackend. One block per seat; the lanes of a block run the body together.
//   CudaProgram program = make_cuda_program<Echo, Sum>("my actors", {"echo", "sum"});
#pragma once

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "ring/cuda/cuda_machine.cuh"
#include "ring/cuda/cuda_program.hpp"
#include "ring/resident/seat_loop.hpp"

namespace cingulum::ring {

// 256 lanes at most (GridOptions); the registers that a body may use follow from it. One block a processor is enough:
// fewer registers would put messages into memory.
template <class... Bodies>
__global__ void __launch_bounds__(256, 1) resident_actors(const GridPlan* plan) {
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  const GridPlan grid = *plan;
  run_seat<CudaMachine, BodyList<Bodies...>>(grid, blockIdx.x, *reinterpret_cast<SeatShared*>(shared_bytes));
}

template <class... Bodies>
int find_resident_kernel(const void** kernel) {
  cudaKernel_t found = nullptr;
  const cudaError_t code = cudaGetKernel(&found, reinterpret_cast<const void*>(&resident_actors<Bodies...>));
  *kernel = found;
  return static_cast<int>(code);
}

template <class... Bodies>
CudaProgram make_cuda_program(std::string name, std::vector<std::string> actors) {
  static_assert(sizeof...(Bodies) != 0);
  return {std::move(name),
          std::move(actors),
          nullptr,
          &find_resident_kernel<Bodies...>,
          nullptr,
          {BodyType{typeid(Bodies).name(), sizeof(Bodies)}...},
          BodyList<Bodies...>::block_bytes};
}

}  // namespace cingulum::ring
