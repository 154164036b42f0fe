#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

// Amplitudes or series in half precision, all sizes as they come. Equal to: the kernels for all shapes on the same
// numbers in float32. Gain: half of the memory, no speed. Held by: Float16Field.tracks_as_the_same_numbers_in_float32,
// DeviceTracking.random_plans_have_the_bits_of_the_cpu.
template <TrackKernelId id>
TrackKernel halves() {
  return cuda::halves_entry<cuda::AnyShape<id>>();
}

}  // namespace

TrackKernel float16_kernel(TrackKernelId id, bool at_seeds) {
  using enum TrackKernelId;
  switch (id) {
    case float16_amplitudes_closest:
      return at_seeds ? cuda::seeds_entry<cuda::AnyShape<float16_amplitudes_closest>>()
                      : halves<float16_amplitudes_closest>();
    case float16_series_closest:
      return at_seeds ? cuda::seeds_entry<cuda::AnyShape<float16_series_closest>>() : halves<float16_series_closest>();
    default: break;
  }
  if (at_seeds) return {};
  switch (id) {
    case float16_amplitudes_prob: return halves<float16_amplitudes_prob>();
    case float16_amplitudes_det: return halves<float16_amplitudes_det>();
    case float16_amplitudes_ptt: return halves<float16_amplitudes_ptt>();
    case float16_series_prob: return halves<float16_series_prob>();
    case float16_series_det: return halves<float16_series_det>();
    case float16_series_ptt: return halves<float16_series_ptt>();
    default: return {};
  }
}

}  // namespace cingulum
