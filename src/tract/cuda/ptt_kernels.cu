#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

using OnAmplitudes = cuda::AnyShape<Getter::ptt, field_of_amplitudes>;
using OnSeries = cuda::AnyShape<Getter::ptt, field_of_harmonics>;

}  // namespace

// The seeds are those of any getter on the same field.
TrackKernelPair ptt_kernels(const TrackingInput& input, bool any_shape) {
  if (static_cast<Getter>(input.plan.getter) != Getter::ptt) return {};
  TrackingInput other = input;
  other.plan.getter = static_cast<std::uint32_t>(Getter::closest);
  if (input.field.kind == field_of_amplitudes) {
    return {amplitude_kernels(other, any_shape).seeds, cuda::halves_entry<OnAmplitudes>()};
  }
  return {series_kernels(other, any_shape).seeds, cuda::halves_entry<OnSeries>()};
}

}  // namespace cingulum
