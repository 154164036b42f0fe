#include "examples/tracking_actors/cuda/resident_tracking_program.hpp"

#include "examples/tracking_actors/resident_tracking_body.hpp"
#include "numerics/lanes_warp.cuh"
#include "ring/cuda/resident_kernel.cuh"
#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

// A group is a warp of the actor's block.
struct WarpGroups {
  using Lanes = numerics::WarpLanes;
  using Machine = cuda::WarpMachine;

  template <class Context>
  static __device__ std::uint32_t group(Context& context) {
    return context.lane() / numerics::lane_count;
  }
  template <class Context>
  static __device__ std::uint32_t groups(Context& context) {
    return context.lanes() / numerics::lane_count;
  }
  template <class Context>
  static __device__ std::uint32_t lane_of_group(Context& context) {
    return context.lane() % numerics::lane_count;
  }
  static __device__ std::uint32_t lanes_of_group() { return numerics::lane_count; }
};

}  // namespace

ring::CudaProgram resident_tracking_program() {
  return ring::make_cuda_program<ResidentTrackingBody<WarpGroups>>("tracking", {"track"});
}

}  // namespace cingulum
