// Launchers of the model kernels that nvcc compiles ahead, as cuda_fit_device.cpp sees them. Views point to device
// memory; `voxels` records lie one after the other. Each launch returns what the runtime says of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "dmri/models/bootstrap_kernel.hpp"
#include "dmri/models/csd_team_kernel.hpp"
#include "dmri/models/fit_launch.hpp"
#include "dmri/models/q_ball_kernel.hpp"
#include "dmri/models/tensor_kernel.hpp"

namespace cingulum {

// Sums over all voxels of a fit, in device memory.
struct FitCounters {
  unsigned long long unsolvable;  // tensors; systems of CSD
  unsigned long long unconstrained;
  unsigned long long not_converged;
  unsigned long long iterations;
  unsigned next_voxel;  // of the launch that runs: set to zero before it
  unsigned unused;
};

struct TensorRecords {
  float *tensor, *eigenvalues, *v1, *fa, *md, *rd, *s0;
};

// Numbers that a voxel needs besides its result lie in shared memory where they fit, else in `global`.
struct VoxelWork {
  std::uint32_t threads;       // of a block
  std::uint32_t blocks;        // that fill the device; they take voxels in turn
  std::uint32_t numbers;       // per voxel
  std::uint32_t shared_bytes;  // 0: global
  double* global;              // blocks x threads x numbers
};

[[nodiscard]] cudaError_t launch_tensors(const TensorDesign& design, const float* signals, std::uint32_t voxels,
                                         const TensorRecords& to, FitCounters* counters, cudaStream_t stream);

[[nodiscard]] cudaError_t launch_q_ball(const QBallView& view, const float* signals, std::uint32_t stride,
                                        std::uint32_t voxels, float* coefficients, float* gfa, const VoxelWork& work,
                                        cudaStream_t stream);
[[nodiscard]] const void* q_ball_kernel_address();

[[nodiscard]] cudaError_t launch_bootstrap(const BootstrapPreparationView& view, const float* signals,
                                           std::uint32_t stride, std::uint32_t voxels, float* coefficients,
                                           float* residuals, float* b0, const VoxelWork& work, cudaStream_t stream);
[[nodiscard]] const void* bootstrap_kernel_address();

// `matrix` has `rows` x `columns` numbers.
[[nodiscard]] cudaError_t launch_sample(const double* matrix, std::uint32_t rows, std::uint32_t columns, bool clip,
                                        const float* coefficients, std::uint32_t voxels, float* amplitudes,
                                        const VoxelWork& work, cudaStream_t stream);
[[nodiscard]] const void* sample_kernel_address();

// A warp per voxel. Blocks of at most `csd_threads` (fit_launch.hpp), of which the registers of a multiprocessor
// suffice for `csd_blocks`.
inline constexpr std::uint32_t csd_blocks = 8;
struct CsdPiece {
  const float* signals;
  std::uint32_t stride;
  const std::uint32_t* volumes;
  std::uint32_t voxels;
  float* coefficients;
};
// `gram` has panel_numbers for each warp of the launch.
struct CsdLaunch {
  std::uint32_t threads;
  std::uint32_t blocks;
  std::uint32_t shared_bytes;
  double* gram;

  [[nodiscard]] std::size_t warps() const { return std::size_t{blocks} * threads / team_lanes; }
};
[[nodiscard]] cudaError_t launch_csd(const CsdTeamView& view, const CsdPiece& piece, FitCounters* counters,
                                     const CsdLaunch& launch, cudaStream_t stream);
[[nodiscard]] const void* csd_kernel_address();

}  // namespace cingulum
