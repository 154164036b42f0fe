// Tensors, OPDT and CSA, the bootstrap's preparation and amplitudes: a voxel per thread, with the arithmetic of the
// headers that the host compiles for packs.
#include "dmri/models/cuda/model_kernels.hpp"

namespace cingulum {
namespace {

constexpr unsigned tensor_threads = 128;
// A block makes this many amplitudes of its voxels: there are few voxels in a piece of memory with many directions.
constexpr std::uint32_t rows_per_block = 32;

// A voxel's record of float32 as numbers.
struct Record {
  const float* values;
  __device__ double operator[](std::size_t i) const { return static_cast<double>(values[i]); }
};

// Numbers of the threads of a block side by side: number i of a thread is `stride` behind number i - 1.
struct Column {
  double* first;
  std::size_t stride;
  __device__ double& operator[](std::size_t i) const { return first[i * stride]; }
  __device__ Column operator+(std::size_t i) const { return {first + i * stride, stride}; }
};

// Where results go, rounded once.
struct Rounded {
  float* to;
  struct Place {
    float* at;
    __device__ void operator=(double value) const { *at = static_cast<float>(value); }
  };
  __device__ Place operator[](std::size_t i) const { return {to + i}; }
};

__device__ Column column_of_thread(const VoxelWork& work) {
  extern __shared__ double shared_numbers[];
  double* const block = work.global == nullptr ? shared_numbers
                                               : work.global + std::size_t{work.numbers} * blockDim.x *
                                                                   (blockIdx.x + std::size_t{gridDim.x} * blockIdx.y);
  return {block + threadIdx.x, blockDim.x};
}

__global__ void __launch_bounds__(tensor_threads)
    tensor_kernel(const __grid_constant__ TensorDesign design, const float* signals, std::uint32_t voxels,
                  const __grid_constant__ TensorRecords to, FitCounters* counters) {
  const std::size_t voxel = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (voxel >= voxels) return;
  const Record record = {signals + voxel * design.volumes};
  const auto estimate =
      fit_tensor<double>(design, [&](std::uint32_t i) { return clamped_log_signal(record[i], design.min_signal); });
  const TensorMeasures<double> maps = measure_tensor(estimate);
  for (int j = 0; j < 6; ++j) to.tensor[6 * voxel + j] = static_cast<float>(estimate.tensor[j]);
  for (int j = 0; j < 3; ++j) to.eigenvalues[3 * voxel + j] = static_cast<float>(estimate.eigenvalues[j]);
  for (int j = 0; j < 3; ++j) to.v1[3 * voxel + j] = static_cast<float>(estimate.eigenvectors[j]);
  to.fa[voxel] = static_cast<float>(maps.fa);
  to.md[voxel] = static_cast<float>(maps.md);
  to.rd[voxel] = static_cast<float>(maps.rd);
  to.s0[voxel] = static_cast<float>(maps.s0);
  if (estimate.solvable == 0.0) atomicAdd(&counters->unsolvable, 1ull);
}

// Calls body(voxel) for the voxels of this thread.
template <class Body>
__device__ void each_voxel(std::uint32_t voxels, const Body& body) {
  for (std::size_t v = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; v < voxels;
       v += std::size_t{gridDim.x} * blockDim.x) {
    body(v);
  }
}

__global__ void q_ball_kernel(const __grid_constant__ QBallView view, const float* signals, std::uint32_t stride,
                              std::uint32_t voxels, float* coefficients, float* gfa,
                              const __grid_constant__ VoxelWork work) {
  const Column normalised = column_of_thread(work);
  const Column scratch = normalised + view.directions;
  const Column result = scratch + (view.directions + view.count);
  each_voxel(voxels, [&](std::size_t v) {
    normalise_signal<double>(view, Record{signals + v * stride}, normalised);
    fit_q_ball_voxel<double>(view, normalised, scratch, result);
    for (std::size_t i = 0; i < view.count; ++i) coefficients[v * view.count + i] = static_cast<float>(result[i]);
    gfa[v] = static_cast<float>(generalised_fractional_anisotropy<double>(result, view.count));
  });
}

__global__ void bootstrap_kernel(const __grid_constant__ BootstrapPreparationView view, const float* signals,
                                 std::uint32_t stride, std::uint32_t voxels, float* coefficients, float* residuals,
                                 float* b0, const __grid_constant__ VoxelWork work) {
  const Column signal = column_of_thread(work);
  each_voxel(voxels, [&](std::size_t v) {
    const Record record = {signals + v * stride};
    take_weighted_signals<double>(view, record, signal);
    multiply<double>(view.inverse, view.count, view.directions, signal, Rounded{coefficients + v * view.count});
    multiply<double>(view.residual, view.directions, view.directions, signal, Rounded{residuals + v * view.directions});
    b0[v] = static_cast<float>(mean_b0_signal<double>(view, record));
  });
}

// Amplitudes that are not above zero are zero.
struct Clipped {
  float* to;
  struct Place {
    float* at;
    __device__ void operator=(double value) const {
      *at = static_cast<float>(numerics::select(value > 0.0, value, 0.0));
    }
  };
  __device__ Place operator[](std::size_t i) const { return {to + i}; }
};

__global__ void sample_kernel(const double* matrix, std::uint32_t rows, std::uint32_t columns, bool clip,
                              const float* coefficients, std::uint32_t voxels, float* amplitudes,
                              const __grid_constant__ VoxelWork work) {
  const Column record = column_of_thread(work);
  const std::uint32_t first = rows_per_block * blockIdx.y;
  const std::uint32_t count = rows - first < rows_per_block ? rows - first : rows_per_block;
  const double* const part = matrix + std::size_t{first} * columns;
  each_voxel(voxels, [&](std::size_t v) {
    for (std::uint32_t i = 0; i < columns; ++i) record[i] = static_cast<double>(coefficients[v * columns + i]);
    float* const to = amplitudes + v * rows + first;
    if (clip) {
      multiply<double>(part, count, columns, record, Clipped{to});
    } else {
      multiply<double>(part, count, columns, record, Rounded{to});
    }
  });
}

// No more blocks than there are voxels for.
unsigned grid_of(const VoxelWork& work, std::uint32_t voxels) {
  const std::uint32_t needed = (voxels + work.threads - 1) / work.threads;
  return needed < work.blocks ? needed : work.blocks;
}

}  // namespace

cudaError_t launch_tensors(const TensorDesign& design, const float* signals, std::uint32_t voxels,
                           const TensorRecords& to, FitCounters* counters, cudaStream_t stream) {
  tensor_kernel<<<(voxels + tensor_threads - 1) / tensor_threads, tensor_threads, 0, stream>>>(design, signals, voxels,
                                                                                               to, counters);
  return cudaGetLastError();
}

cudaError_t launch_q_ball(const QBallView& view, const float* signals, std::uint32_t stride, std::uint32_t voxels,
                          float* coefficients, float* gfa, const VoxelWork& work, cudaStream_t stream) {
  q_ball_kernel<<<grid_of(work, voxels), work.threads, work.shared_bytes, stream>>>(view, signals, stride, voxels,
                                                                                    coefficients, gfa, work);
  return cudaGetLastError();
}
const void* q_ball_kernel_address() {
  return reinterpret_cast<const void*>(&q_ball_kernel);
}

cudaError_t launch_bootstrap(const BootstrapPreparationView& view, const float* signals, std::uint32_t stride,
                             std::uint32_t voxels, float* coefficients, float* residuals, float* b0,
                             const VoxelWork& work, cudaStream_t stream) {
  bootstrap_kernel<<<grid_of(work, voxels), work.threads, work.shared_bytes, stream>>>(
      view, signals, stride, voxels, coefficients, residuals, b0, work);
  return cudaGetLastError();
}
const void* bootstrap_kernel_address() {
  return reinterpret_cast<const void*>(&bootstrap_kernel);
}

cudaError_t launch_sample(const double* matrix, std::uint32_t rows, std::uint32_t columns, bool clip,
                          const float* coefficients, std::uint32_t voxels, float* amplitudes, const VoxelWork& work,
                          cudaStream_t stream) {
  const dim3 grid(grid_of(work, voxels), (rows + rows_per_block - 1) / rows_per_block);
  sample_kernel<<<grid, work.threads, work.shared_bytes, stream>>>(matrix, rows, columns, clip, coefficients, voxels,
                                                                   amplitudes, work);
  return cudaGetLastError();
}
const void* sample_kernel_address() {
  return reinterpret_cast<const void*>(&sample_kernel);
}

}  // namespace cingulum
