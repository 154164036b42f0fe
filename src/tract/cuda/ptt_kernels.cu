#include <cstdlib>

#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/ptt_in_registers.hpp"

namespace cingulum {
namespace {

using OnAmplitudes = cuda::AnyShape<Getter::ptt, field_of_amplitudes>;
using OnSeries = cuda::AnyShape<Getter::ptt, field_of_harmonics>;

// Tables of ProbeView in device memory: cells, then the packed nearest slots.
__global__ void fill_probe_cells(const __grid_constant__ TrackingInput input, std::uint32_t* cells) {
  const std::size_t count = kernel::probe_cell_count(input.plan.size);
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) {
    kernel::write_probe_cell(input, i, cells);
  }
}
__global__ void pack_nearest(const __grid_constant__ TrackingInput input, std::uint32_t count, std::uint32_t* packed) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) packed[i] = kernel::packed_nearest(input.nearest, i);
}

// Records that are read whole: through the cache of a multiprocessor, or past it.
template <bool past_cache>
struct ProbeLanes : numerics::WarpLanes {
  using Narrow = ProbeLanes;
  using Wide = ProbeLanes;
  static __device__ kernel::FourFloats load_four(const kernel::FourFloats* from) {
    if constexpr (!past_cache) return *from;
    const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
    return {{four.x, four.y, four.z, four.w}};
  }
};

// Numbers of a queue for the warps of one block, 32 at a time: neighbours in the queue are neighbours in space, whose
// records a multiprocessor then has once.
__shared__ std::uint32_t lock, next, end;

template <bool near>
struct ProbeMachine : cuda::WarpMachine {
  static __device__ std::uint32_t take_near(std::uint32_t* counter) {
    if constexpr (!near) return take(counter);
    constexpr std::uint32_t at_a_time = 32;
    std::uint32_t taken = 0;
    if (numerics::WarpLanes::lane_index() == 0u) {
      while (atomicCAS(&lock, 0u, 1u) != 0u) {
      }
      __threadfence_block();
      volatile std::uint32_t* const first = &next;
      volatile std::uint32_t* const last = &end;
      if (*first == *last) {
        *first = atomicAdd(counter, at_a_time);
        *last = *first + at_a_time;
      }
      taken = *first;
      *first = taken + 1u;
      __threadfence_block();
      atomicExch(&lock, 0u);
    }
    return __shfl_sync(numerics::WarpLanes::whole_warp, taken, 0);
  }
};

template <std::uint32_t given_walks, std::uint32_t given_threads, bool past_cache, bool near>
struct InRegisters {
  using Lanes = ProbeLanes<past_cache>;
  using Machine = ProbeMachine<near>;
  static constexpr std::uint32_t walks = given_walks;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = 1;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = SlabUse::probes;
  static constexpr std::uint32_t arc_words = numerics::lane_count * kernel::probe_arc_words;

  static CGL_HD void fix(TrackingInput& input) {
    OnAmplitudes::fix(input);
    input.sphere.half = 1u;
    input.plan.ptt_probe_count = 1u;
    input.plan.ptt_exponent_is_one = 1u;
  }
  static bool matches(const TrackingInput& input) {
    return kernel::probes_in_registers(input);
  }
  static std::size_t derived_words(const TrackingInput& input) {
    return 8u * kernel::probe_cell_count(input.plan.size) + kernel::packed_nearest_words;
  }
  static cudaError_t derive(TrackingInput& input, std::uint32_t* words, cudaStream_t stream) {
    std::uint32_t* const packed = words + 8u * kernel::probe_cell_count(input.plan.size);
    fill_probe_cells<<<1024, 256, 0, stream>>>(input, words);
    const std::uint32_t count = kernel::packed_nearest_words;
    pack_nearest<<<(count + 255u) / 256u, 256, 0, stream>>>(input, count, packed);
    input.probes.cells = words;
    input.probes.nearest = packed;
    return cudaGetLastError();
  }
  static std::uint32_t table_words(const TrackingInput& input) {
    return arc_words + kernel::packed_nearest_words + 4u * numerics::lane_count * input.sphere.rows;
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    if (threadIdx.x < numerics::lane_count) {
      reinterpret_cast<kernel::ProbeArc*>(free)[threadIdx.x] = kernel::disc_arc<Lanes>(input);
    }
    input.probes.arcs = free;
    free += arc_words;
    input.probes.nearest = cuda::share(input.probes.nearest, kernel::packed_nearest_words, free);
    const std::uint32_t slots = numerics::lane_count * input.sphere.rows;
    for (std::uint32_t i = threadIdx.x; i < slots; i += blockDim.x) {
      reinterpret_cast<kernel::FourFloats*>(free)[i] = {{input.sphere.x[i], input.sphere.y[i], input.sphere.z[i], 0.0f}};
    }
    input.probes.directions = free;
    free += 4u * slots;
  }
};

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    follow_probes(const __grid_constant__ TrackingInput given, const __grid_constant__ kernel::PagedWork work,
                  const __grid_constant__ SlabMemoryOnDevice) {
  extern __shared__ float shared_memory[];
  constexpr std::uint32_t slab_words = Shape::walks * kernel::probe_walk_slab_words;
  float* free = shared_memory + slab_words * (blockDim.x / numerics::lane_count);
  TrackingInput input = given;
  Shape::fix(input);
  Shape::share_tables(input, free);
  if (threadIdx.x == 0u) lock = next = end = 0u;
  __syncthreads();
  kernel::run_probe_halves<typename Shape::Lanes, typename Shape::Machine, Shape::walks>(
      input, shared_memory, slab_words * (threadIdx.x / numerics::lane_count), work.seeds, work.halves, work.store);
}

template <class Shape>
TrackKernel probes_entry() {
  return cuda::entry<Shape>(reinterpret_cast<const void*>(&follow_probes<Shape>));
}

}  // namespace

// The seeds are those of any getter on the same field.
TrackKernelPair ptt_kernels(const TrackingInput& input, bool any_shape) {
  if (static_cast<Getter>(input.plan.getter) != Getter::ptt) return {};
  TrackingInput other = input;
  other.plan.getter = static_cast<std::uint32_t>(Getter::closest);
  if (input.field.kind == field_of_amplitudes) {
    const TrackKernel seeds = amplitude_kernels(other, any_shape).seeds;
    if (!any_shape && InRegisters<1, 512, false, true>::matches(input)) {
      const char* const v = std::getenv("CINGULUM_PTT_VARIANT");
      static int cycle = 0;
      switch (v == nullptr ? 0 : v[0] == 99 ? cycle++ : std::atoi(v)) {
        default: return {seeds, probes_entry<InRegisters<1, 512, false, true>>()};
        case 1: return {seeds, probes_entry<InRegisters<1, 512, false, false>>()};
        case 2: return {seeds, probes_entry<InRegisters<1, 512, true, true>>()};
        case 3: return {seeds, probes_entry<InRegisters<2, 512, false, true>>()};
        case 4: return {seeds, probes_entry<InRegisters<2, 512, true, true>>()};
        case 5: return {seeds, probes_entry<InRegisters<4, 512, false, true>>()};
        case 6: return {seeds, probes_entry<InRegisters<2, 384, false, true>>()};
        case 7: return {seeds, probes_entry<InRegisters<4, 384, true, true>>()};
        case 8: return {seeds, probes_entry<InRegisters<1, 576, false, true>>()};
        case 9: return {seeds, probes_entry<InRegisters<2, 576, true, true>>()};
        case 10: return {seeds, probes_entry<InRegisters<2, 512, false, false>>()};
        case 11: return {seeds, probes_entry<InRegisters<4, 256, false, true>>()};
      }
    }
    return {seeds, cuda::halves_entry<OnAmplitudes>()};
  }
  return {series_kernels(other, any_shape).seeds, cuda::halves_entry<OnSeries>()};
}

}  // namespace cingulum
