// CSD: a warp per voxel, voxels taken from a queue since their iterations differ.
#include "dmri/models/cuda/model_kernels.hpp"

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
  template <int Words, class Body>
  __device__ void ballots(const Body& body, std::uint32_t* words) const {
    bool bits[Words];
    body(lane, bits);
    std::uint32_t found[Words];
#pragma unroll
    for (int w = 0; w < Words; ++w) found[w] = __ballot_sync(whole_warp, bits[w]);
    __syncwarp(whole_warp);  // what was read of `words` before has been read
    if (lane == 0) {
#pragma unroll
      for (int w = 0; w < Words; ++w) words[w] = found[w];
    }
    __syncwarp(whole_warp);
  }
};

__global__ void __launch_bounds__(csd_threads, csd_blocks)
    csd_kernel(const __grid_constant__ CsdTeamView tables, const __grid_constant__ CsdPiece piece,
               FitCounters* counters, double* gram) {
  extern __shared__ NumberPair shared_numbers[];
  const CsdView& view = tables.model;
  const unsigned warp = threadIdx.x / team_lanes;
  const unsigned warps = blockDim.x / team_lanes;
  const WarpTeam team = {static_cast<int>(threadIdx.x % team_lanes)};
  const CsdTeamMemory memory =
      team_memory(view, shared_numbers + std::size_t{team_bytes(view) / sizeof(NumberPair)} * warp,
                  gram + std::size_t{blockIdx.x * warps + warp} * panel_numbers(view.stride));
  unsigned long long all_iterations = 0;
  unsigned unconstrained = 0, not_converged = 0, not_solvable = 0;
  for (;;) {
    unsigned voxel = 0;
    if (team.lane == 0) voxel = atomicAdd(&counters->next_voxel, 1u);
    voxel = __shfl_sync(whole_warp, voxel, 0);
    if (voxel >= piece.voxels) break;
    int iterations = 0;
    const CsdEnd end = csd_fit_team(team, tables, piece.signals + std::size_t{voxel} * piece.stride, piece.volumes,
                                    memory, iterations);
    float* const to = piece.coefficients + std::size_t{voxel} * view.count;
    for (int i = team.lane; i < view.count; i += team_lanes) {
      to[i] = end == CsdEnd::not_solvable ? 0.0f : static_cast<float>(memory.solution[i]);
    }
    __syncwarp(whole_warp);
    all_iterations += static_cast<unsigned>(iterations);
    unconstrained += end == CsdEnd::unconstrained ? 1u : 0u;
    not_converged += end == CsdEnd::iterations_spent ? 1u : 0u;
    not_solvable += end == CsdEnd::not_solvable ? 1u : 0u;
  }
  if (team.lane == 0) {
    atomicAdd(&counters->iterations, all_iterations);
    atomicAdd(&counters->unconstrained, static_cast<unsigned long long>(unconstrained));
    atomicAdd(&counters->not_converged, static_cast<unsigned long long>(not_converged));
    atomicAdd(&counters->unsolvable, static_cast<unsigned long long>(not_solvable));
  }
}

}  // namespace

cudaError_t launch_csd(const CsdTeamView& view, const CsdPiece& piece, FitCounters* counters, const CsdLaunch& launch,
                       cudaStream_t stream) {
  csd_kernel<<<launch.blocks, launch.threads, launch.shared_bytes, stream>>>(view, piece, counters, launch.gram);
  return cudaGetLastError();
}
const void* csd_kernel_address() {
  return reinterpret_cast<const void*>(&csd_kernel);
}

}  // namespace cingulum
