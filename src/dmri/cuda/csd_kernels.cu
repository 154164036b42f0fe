// CSD: a warp per voxel, four warps in a block that look for small amplitudes together, voxels taken from a queue since
// their iterations differ.
#include "dmri/cuda/model_kernels.hpp"

namespace cingulum {
namespace {

constexpr unsigned whole_warp = 0xffffffffu;

struct WarpTeam {
  int lane;

  template <class T>
  struct PerLane {
    T own;
    __device__ T& of(int) { return own; }
  };
  template <class Body>
  __device__ void each(const Body& body) const {
    body(lane);
    __syncwarp(whole_warp);
  }
  template <class Body>
  __device__ std::uint32_t ballot(const Body& body) const {
    return __ballot_sync(whole_warp, body(lane));
  }
  template <class Body>
  __device__ void once(const Body& body) const {
    if (lane == 0) body();
  }
};

struct ThreadBlock {
  CsdSlot& slot;
  std::uint32_t* next_voxel;

  template <class Body>
  __device__ void each_team(const Body& body) const {
    body(static_cast<int>(threadIdx.x / team_lanes), WarpTeam{static_cast<int>(threadIdx.x % team_lanes)}, slot);
    __syncthreads();
  }
  __device__ std::uint32_t take(const WarpTeam& team) const {
    std::uint32_t voxel = 0;
    if (team.lane == 0) voxel = atomicAdd(next_voxel, 1u);
    return __shfl_sync(whole_warp, voxel, 0);
  }
};

__global__ void __launch_bounds__(csd_threads, csd_blocks)
    csd_kernel(const __grid_constant__ CsdTeamView tables, const __grid_constant__ CsdPiece piece,
               FitCounters* counters, double* gram) {
  extern __shared__ NumberPair shared_numbers[];
  const CsdView& view = tables.model;
  CsdSlot slot;
  const CsdBlockMemory memory =
      block_memory(view, shared_numbers, gram + std::size_t{blockIdx.x} * block_teams * panel_numbers(view.stride));
  csd_fit_block(ThreadBlock{slot, &counters->next_voxel}, tables, piece, memory);
  if (threadIdx.x % team_lanes == 0) {
    atomicAdd(&counters->iterations, static_cast<unsigned long long>(slot.all_iterations));
    atomicAdd(&counters->unconstrained, static_cast<unsigned long long>(slot.unconstrained));
    atomicAdd(&counters->not_converged, static_cast<unsigned long long>(slot.not_converged));
    atomicAdd(&counters->unsolvable, static_cast<unsigned long long>(slot.not_solvable));
  }
}

}  // namespace

cudaError_t launch_csd(const CsdTeamView& view, const CsdPiece& piece, FitCounters* counters, const CsdLaunch& launch,
                       cudaStream_t stream) {
  csd_kernel<<<launch.blocks, csd_threads, launch.shared_bytes, stream>>>(view, piece, counters, launch.gram);
  return cudaGetLastError();
}
const void* csd_kernel_address() {
  return reinterpret_cast<const void*>(&csd_kernel);
}

}  // namespace cingulum
