#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

template <TrackKernelId id>
constexpr bool seeks_peaks = track_kernel_facts(id).getter == Getter::closest;

template <TrackKernelId id>
struct Degree8 : cuda::AnyShape<id>, SeriesDegree8<seeks_peaks<id>> {
  using Series = SeriesDegree8<seeks_peaks<id>>;
  static CGL_HD void fix(TrackingInput& input) {
    cuda::AnyShape<id>::fix(input);
    Series::fix_shape(input);
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.harmonics.matrix = cuda::share(input.harmonics.matrix, Series::matrix_words, free);
    input.sphere.x = cuda::share(input.sphere.x, Series::sphere_words, free);
    input.sphere.y = cuda::share(input.sphere.y, Series::sphere_words, free);
    input.sphere.z = cuda::share(input.sphere.z, Series::sphere_words, free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, Series::rows, free);
    if constexpr (seeks_peaks<id>) {
      input.sphere.neighbours = cuda::share(input.sphere.neighbours, Series::neighbours * Series::sphere_words, free);
    }
  }
};

}  // namespace

TrackKernel series_kernel(TrackKernelId id, bool at_seeds) {
  using enum TrackKernelId;
  if (at_seeds) return id == series_closest ? cuda::seeds_entry<cuda::AnyShape<series_closest>>() : TrackKernel{};
  switch (id) {
    case series_prob: return cuda::halves_entry<cuda::AnyShape<series_prob>>();
    case series_det: return cuda::halves_entry<cuda::AnyShape<series_det>>();
    case series_closest: return cuda::halves_entry<cuda::AnyShape<series_closest>>();
    case series_prob_degree8: return cuda::halves_entry<Degree8<series_prob_degree8>>();
    case series_det_degree8: return cuda::halves_entry<Degree8<series_det_degree8>>();
    case series_closest_degree8: return cuda::halves_entry<Degree8<series_closest_degree8>>();
    default: return {};
  }
}

}  // namespace cingulum
