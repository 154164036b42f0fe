#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

using Any = cuda::AnyShape<TrackKernelId::boot>;

struct Degree4 : cuda::AnyShape<TrackKernelId::boot_degree4>, BootstrapDegree4 {
  static CGL_HD void fix(TrackingInput& input) {
    Any::fix(input);
    fix_shape(input);
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.harmonics.matrix = cuda::share(input.harmonics.matrix, matrix_words, free);
    input.bootstrap.basis = cuda::share(input.bootstrap.basis, gradient_words(input), free);
    input.bootstrap.fit = cuda::share(input.bootstrap.fit, gradient_words(input), free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
  }
};

}  // namespace

TrackKernel boot_kernel(TrackKernelId id, bool at_seeds) {
  switch (id) {
    case TrackKernelId::boot: return at_seeds ? cuda::seeds_entry<Any>() : cuda::halves_entry<Any>();
    case TrackKernelId::boot_degree4: return at_seeds ? TrackKernel{} : cuda::halves_entry<Degree4>();
    default: return {};
  }
}

}  // namespace cingulum
