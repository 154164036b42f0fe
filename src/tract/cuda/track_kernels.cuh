// The body of every tracking kernel: a warp per half (or seed), taken from a queue until it is empty. A `Shape` fixes
// what is known when the kernel is compiled, so that branches fall away and loops unroll; the rest is read from the
// input. Included by the .cu files beside it, each of which has some of the kernels.
#pragma once

#include "numerics/lanes_warp.cuh"
#include "tract/cuda/track_kernels.hpp"
#include "tract/kernel/paged_half.hpp"

namespace cingulum::cuda {

struct WarpMachine {
  // The next number of a counter in device memory, the same for all lanes.
  static __device__ std::uint32_t take(std::uint32_t* counter) {
    std::uint32_t taken = 0;
    if (numerics::WarpLanes::lane_index() == 0u) taken = atomicAdd(counter, 1u);
    return __shfl_sync(numerics::WarpLanes::whole_warp, taken, 0);
  }
};

// Copies a table to shared memory with all threads of the block; returns where it lies and moves `free` behind it.
template <class T>
__device__ inline const T* share(const T* table, std::uint32_t count, float*& free) {
  T* const to = reinterpret_cast<T*>(free);
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = table[i];
  free += kernel::whole_rows(count);
  return to;
}

// All sizes as they come, slabs in shared memory or, where they do not fit, in global memory. Kernels of fixed shapes
// add what they fix.
template <TrackKernelId id>
struct AnyShape {
  using Steps = typename StepsOfKernel<id>::Steps;
  static constexpr TrackKernelFacts facts = track_kernel_facts(id);
  static constexpr std::uint32_t threads = facts.threads;
  static constexpr std::uint32_t blocks = facts.blocks;
  static constexpr bool shared_slabs = facts.shared_slabs;
  static constexpr auto getter = static_cast<std::uint32_t>(facts.getter);
  static constexpr std::uint32_t kind = facts.kind;
  static constexpr std::uint32_t is_float16 = facts.is_float16 ? 1u : 0u;
  static CGL_HD void fix(TrackingInput& input) {
    input.plan.getter = getter;
    input.field.kind = kind;
    input.field.is_float16 = is_float16;
  }
  static __device__ void share_tables(TrackingInput&, float*&) {}
};

template <class Shape>
__device__ inline Slab slab_of_warp(const SlabMemoryOnDevice& memory, float* shared) {
  const std::uint32_t warp = threadIdx.x / numerics::lane_count;
  float* const own = shared + memory.layout.words * warp;
  if constexpr (Shape::shared_slabs) {
    return kernel::slab_at(own, memory.layout);
  } else {
    const std::size_t warps = blockDim.x / numerics::lane_count;
    float* const global = memory.global + memory.layout.words * (warps * blockIdx.x + warp);
    return kernel::slab_at(memory.global == nullptr ? own : global, memory.layout);
  }
}

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    find_directions(const __grid_constant__ TrackingInput given, const __grid_constant__ kernel::PagedWork work,
                    const __grid_constant__ SlabMemoryOnDevice memory) {
  extern __shared__ float shared_memory[];
  float* free = shared_memory;
  TrackingInput input = given;
  Shape::fix(input);
  Shape::share_tables(input, free);
  __syncthreads();
  kernel::run_seeds<numerics::WarpLanes, WarpMachine>(input, slab_of_warp<Shape>(memory, free), work.seeds);
}

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    track_halves(const __grid_constant__ TrackingInput given, const __grid_constant__ kernel::PagedWork work,
                 const __grid_constant__ SlabMemoryOnDevice memory) {
  extern __shared__ float shared_memory[];
  float* free = shared_memory;
  TrackingInput input = given;
  Shape::fix(input);
  Shape::share_tables(input, free);
  __syncthreads();
  kernel::run_halves<numerics::WarpLanes, WarpMachine, typename Shape::Steps>(input, slab_of_warp<Shape>(memory, free),
                                                                              work.seeds, work.halves, work.store);
}

template <class Shape>
TrackKernel entry(const void* function) {
  TrackKernel kernel{function};
  if constexpr (requires { Shape::walks; }) {
    kernel.derived_words = Shape::derived_words;
    kernel.derive = Shape::derive;
    kernel.expanded_words = Shape::expanded_words;
    kernel.expand = Shape::expand;
  }
  return kernel;
}

template <class Shape>
TrackKernel seeds_entry() {
  return entry<Shape>(reinterpret_cast<const void*>(&find_directions<Shape>));
}

template <class Shape>
TrackKernel halves_entry() {
  return entry<Shape>(reinterpret_cast<const void*>(&track_halves<Shape>));
}

}  // namespace cingulum::cuda
