#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

using OnAmplitudes = cuda::AnyShape<TrackKernelId::amplitudes_ptt>;
using OnSeries = cuda::AnyShape<TrackKernelId::series_ptt>;

// Tables of ProbeView in device memory. Cells that touch no stored voxel share number 0; the others are numbered as
// they come, which nothing depends on.
__global__ void fill_probe_cells(const __grid_constant__ TrackingInput input, std::uint32_t* cells,
                                 std::uint32_t* corners_of_cell, std::uint32_t* count) {
  const std::size_t all = kernel::probe_cell_count(input.plan.size);
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all;
       i += std::size_t{gridDim.x} * blockDim.x) {
    kernel::write_probe_cell(input, i, cells);
    std::uint32_t any = 0;
    for (std::uint32_t corner = 0; corner < 8u; ++corner) any |= cells[8u * i + corner];
    corners_of_cell[i] = any == 0u ? 0u : 1u + atomicAdd(count, 1u);
  }
}
// A warp per cell.
__global__ void fill_corners(const __grid_constant__ TrackingInput input, kernel::FourFloats* corners,
                             float* greatest) {
  const std::size_t all = kernel::probe_cell_count(input.plan.size);
  const std::uint32_t lane = threadIdx.x % numerics::lane_count;
  const std::size_t warps = std::size_t{gridDim.x} * blockDim.x / numerics::lane_count;
  const std::uint32_t numbers = input.field.channels + 1u;
  // Number 0 is that of cells without a stored voxel.
  if (blockIdx.x == 0u) {
    for (std::uint32_t i = threadIdx.x; i < 2u * numbers; i += blockDim.x) corners[i] = {};
    if (threadIdx.x < kernel::most_groups) greatest[threadIdx.x] = 0.0f;
  }
  for (std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / numerics::lane_count; i < all;
       i += warps) {
    const std::size_t cell = input.probes.corners_of_cell[i];
    if (cell == 0u) continue;
    kernel::FourFloats* const own = corners + 2u * cell * numbers;
    for (std::uint32_t slot = lane; slot < numbers; slot += numerics::lane_count) {
      const std::uint32_t rank = slot < input.field.channels ? input.probes.ranks[slot] : slot;
      kernel::write_corners(input, i, slot, own + 2u * rank);
    }
    __syncwarp();
    greatest[kernel::most_groups * cell + lane] = kernel::greatest_of_group(input, own, lane);
  }
}
__global__ void rank_slots(const __grid_constant__ TrackingInput input, std::uint32_t* ranks) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < input.field.channels) ranks[i] = kernel::rank_of_slot(input, i);
}
__global__ void pack_nearest(const __grid_constant__ TrackingInput input, std::uint32_t count, std::uint32_t* packed) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) packed[i] = kernel::packed_nearest(input.nearest, i);
}

template <bool side_by_side>
struct ProbeLanes : numerics::WarpLanes {
  static constexpr bool corners_side_by_side = side_by_side;
  using Narrow = ProbeLanes;
  using Wide = ProbeLanes;
};

// The rules of kernel/ptt_in_registers.hpp on the shapes that it takes.
struct Probes : cuda::AnyShape<TrackKernelId::amplitudes_ptt_probes>, ProbesInRegisters {
  static constexpr std::uint32_t walks = facts.walks;

  static CGL_HD void fix(TrackingInput& input) {
    OnAmplitudes::fix(input);
    fix_shape(input);
  }
  static std::size_t derived_words(const TrackingInput& input) {
    return 9u * kernel::probe_cell_count(input.plan.size) + kernel::packed_nearest_words + input.field.channels + 1u;
  }
  static cudaError_t derive(TrackingInput& input, std::uint32_t* words, std::uint32_t* count, cudaStream_t stream) {
    const std::size_t cells = kernel::probe_cell_count(input.plan.size);
    std::uint32_t* const corners_of_cell = words + 8u * cells;
    std::uint32_t* const packed = corners_of_cell + cells;
    std::uint32_t* const ranks = packed + kernel::packed_nearest_words;
    std::uint32_t* const counted = ranks + input.field.channels;
    cudaMemsetAsync(counted, 0, sizeof(std::uint32_t), stream);
    fill_probe_cells<<<1024, 256, 0, stream>>>(input, words, corners_of_cell, counted);
    pack_nearest<<<(kernel::packed_nearest_words + 255u) / 256u, 256, 0, stream>>>(input, kernel::packed_nearest_words,
                                                                                   packed);
    rank_slots<<<(input.field.channels + 63u) / 64u, 64, 0, stream>>>(input, ranks);
    cudaMemcpyAsync(count, counted, sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream);
    input.probes.cells = words;
    input.probes.corners_of_cell = corners_of_cell;
    input.probes.nearest = packed;
    input.probes.ranks = ranks;
    return cudaGetLastError();
  }
  static std::size_t expanded_words(const TrackingInput& input, std::uint32_t cells) {
    // Numbers of corners have 32 bits.
    const std::size_t numbers = (std::size_t{cells} + 1u) * (input.field.channels + 1u);
    return numbers >> 32u == 0u ? 8u * numbers + kernel::most_groups * (std::size_t{cells} + 1u) : 0u;
  }
  static cudaError_t expand(TrackingInput& input, std::uint32_t* words, std::uint32_t cells, cudaStream_t stream) {
    float* const corners = reinterpret_cast<float*>(words);
    float* const greatest = corners + 8u * (std::size_t{cells} + 1u) * (input.field.channels + 1u);
    fill_corners<<<4096, 256, 0, stream>>>(input, reinterpret_cast<kernel::FourFloats*>(corners), greatest);
    input.probes.corners = corners;
    input.probes.greatest = greatest;
    return cudaGetLastError();
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    if (threadIdx.x < numerics::lane_count) {
      reinterpret_cast<kernel::ProbeArc*>(free)[threadIdx.x] = kernel::disc_arc<numerics::WarpLanes>(input);
    }
    input.probes.arcs = free;
    free += arc_words;
    input.probes.nearest = cuda::share(input.probes.nearest, kernel::packed_nearest_words, free);
    const std::uint32_t slots = numerics::lane_count * input.sphere.rows;
    for (std::uint32_t i = threadIdx.x; i < slots; i += blockDim.x) {
      reinterpret_cast<kernel::FourFloats*>(free)[i] = {
          {input.sphere.x[i], input.sphere.y[i], input.sphere.z[i],
           numerics::bits_float(i < input.field.channels ? input.probes.ranks[i] : 0u)}};
    }
    input.probes.directions = free;
    free += 4u * slots;
  }
};

template <class Shape, bool side_by_side>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    follow_probes(const __grid_constant__ TrackingInput given, const __grid_constant__ kernel::PagedWork work,
                  const __grid_constant__ SlabMemoryOnDevice) {
  extern __shared__ float shared_memory[];
  constexpr std::uint32_t slab_words = kernel::probe_slab_words(Shape::walks);
  float* free = shared_memory + slab_words * (blockDim.x / numerics::lane_count);
  TrackingInput input = given;
  Shape::fix(input);
  Shape::share_tables(input, free);
  __syncthreads();
  kernel::run_probe_halves<ProbeLanes<side_by_side>, cuda::WarpMachine, Shape::walks>(
      input, shared_memory, slab_words * (threadIdx.x / numerics::lane_count), work.seeds, work.halves, work.store);
}

template <class Shape>
TrackKernel probes_entry() {
  TrackKernel kernel = cuda::entry<Shape>(reinterpret_cast<const void*>(&follow_probes<Shape, false>));
  kernel.expanded = reinterpret_cast<const void*>(&follow_probes<Shape, true>);
  return kernel;
}

}  // namespace

// The seeds are those of any getter on the same field.
TrackKernel ptt_kernel(TrackKernelId id, bool at_seeds) {
  if (at_seeds) return {};
  switch (id) {
    case TrackKernelId::amplitudes_ptt: return cuda::halves_entry<OnAmplitudes>();
    case TrackKernelId::amplitudes_ptt_probes: return probes_entry<Probes>();
    case TrackKernelId::series_ptt: return cuda::halves_entry<OnSeries>();
    default: return {};
  }
}

}  // namespace cingulum
