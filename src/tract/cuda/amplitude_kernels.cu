#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

template <TrackKernelId id>
struct On362 : cuda::AnyShape<id>, Amplitudes362 {
  static CGL_HD void fix(TrackingInput& input) {
    cuda::AnyShape<id>::fix(input);
    fix_shape(input);
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.sphere.x = cuda::share(input.sphere.x, numerics::lane_count * rows, free);
    input.sphere.y = cuda::share(input.sphere.y, numerics::lane_count * rows, free);
    input.sphere.z = cuda::share(input.sphere.z, numerics::lane_count * rows, free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
  }
};

}  // namespace

TrackKernel amplitude_kernel(TrackKernelId id, bool at_seeds) {
  using enum TrackKernelId;
  if (at_seeds)
    return id == amplitudes_closest ? cuda::seeds_entry<cuda::AnyShape<amplitudes_closest>>() : TrackKernel{};
  switch (id) {
    case amplitudes_prob: return cuda::halves_entry<cuda::AnyShape<amplitudes_prob>>();
    case amplitudes_det: return cuda::halves_entry<cuda::AnyShape<amplitudes_det>>();
    case amplitudes_closest: return cuda::halves_entry<cuda::AnyShape<amplitudes_closest>>();
    case amplitudes_prob_362: return cuda::halves_entry<On362<amplitudes_prob_362>>();
    case amplitudes_det_362: return cuda::halves_entry<On362<amplitudes_det_362>>();
    default: return {};
  }
}

}  // namespace cingulum
