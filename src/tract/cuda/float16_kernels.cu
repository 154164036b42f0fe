#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

// Amplitudes or series in half precision, all sizes as they come. Equal to: the kernels for all shapes on the same
// numbers in float32. Gain: half of the memory, no speed. Held by: Float16Field.tracks_as_the_same_numbers_in_float32,
// DeviceTracking.random_plans_have_the_bits_of_the_cpu.
template <Getter getter, std::uint32_t kind>
struct InFloat16 : cuda::AnyShape<getter, kind> {
  static CGL_HD void fix(TrackingInput& input) {
    cuda::AnyShape<getter, kind>::fix(input);
    input.field.is_float16 = 1u;
  }
};

template <std::uint32_t kind>
TrackKernelPair kernels_on(Getter getter) {
  const TrackKernel seeds = cuda::seeds_entry<InFloat16<Getter::closest, kind>>();
  switch (getter) {
    case Getter::prob: return {seeds, cuda::halves_entry<InFloat16<Getter::prob, kind>>()};
    case Getter::det: return {seeds, cuda::halves_entry<InFloat16<Getter::det, kind>>()};
    case Getter::closest: return {seeds, cuda::halves_entry<InFloat16<Getter::closest, kind>>()};
    case Getter::ptt: return {seeds, cuda::halves_entry<InFloat16<Getter::ptt, kind>>()};
    default: return {};
  }
}

}  // namespace

TrackKernelPair float16_kernels(const TrackingInput& input, bool) {
  if (input.field.is_float16 == 0u) return {};
  const auto getter = static_cast<Getter>(input.plan.getter);
  return input.field.kind == field_of_amplitudes ? kernels_on<field_of_amplitudes>(getter)
                                                 : kernels_on<field_of_harmonics>(getter);
}

}  // namespace cingulum
