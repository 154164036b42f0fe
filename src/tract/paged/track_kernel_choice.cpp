#include "tract/paged/track_kernel_choice.hpp"

#include <algorithm>
#include <array>

namespace cingulum {
namespace {

using enum TrackKernelId;

struct Pair {
  TrackKernelId seeds = none;
  TrackKernelId halves = none;
};

Pair on_amplitudes(const TrackingInput& input, bool any_shape) {
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob:
      return {amplitudes_closest, !any_shape && Amplitudes362::matches(input) ? amplitudes_prob_362 : amplitudes_prob};
    case Getter::det:
      return {amplitudes_closest, !any_shape && Amplitudes362::matches(input) ? amplitudes_det_362 : amplitudes_det};
    case Getter::closest: return {amplitudes_closest, amplitudes_closest};
    case Getter::ptt:
      return {amplitudes_closest,
              !any_shape && ProbesInRegisters::matches(input) ? amplitudes_ptt_probes : amplitudes_ptt};
    default: return {};
  }
}

Pair on_series(const TrackingInput& input, bool any_shape) {
  const bool fixed = !any_shape && SeriesDegree8<false>::matches(input);
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob: return {series_closest, fixed ? series_prob_degree8 : series_prob};
    case Getter::det: return {series_closest, fixed ? series_det_degree8 : series_det};
    case Getter::closest: return {series_closest, fixed ? series_closest_degree8 : series_closest};
    case Getter::ptt: return {series_closest, series_ptt};
    default: return {};
  }
}

Pair in_float16(const TrackingInput& input) {
  const bool series = input.field.kind == field_of_harmonics;
  const TrackKernelId seeds = series ? float16_series_closest : float16_amplitudes_closest;
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob: return {seeds, series ? float16_series_prob : float16_amplitudes_prob};
    case Getter::det: return {seeds, series ? float16_series_det : float16_amplitudes_det};
    case Getter::closest: return {seeds, seeds};
    case Getter::ptt: return {seeds, series ? float16_series_ptt : float16_amplitudes_ptt};
    default: return {};
  }
}

Pair pair_for(const TrackingInput& input, bool any_shape) {
  // Fields in half precision first: the others would take them for float32.
  if (input.field.is_float16 != 0u) return in_float16(input);
  switch (input.field.kind) {
    case field_of_amplitudes: return on_amplitudes(input, any_shape);
    case field_of_harmonics: return on_series(input, any_shape);
    case field_of_bootstrap: return {boot, !any_shape && BootstrapDegree4::matches(input) ? boot_degree4 : boot};
    case field_of_tensors: return {tensors, tensors};
    case field_of_peaks: return {peaks, peaks};
    default: return {};
  }
}

std::uint32_t table_words(TrackKernelId id, const TrackingInput& input) {
  switch (id) {
    case boot_degree4: return BootstrapDegree4::table_words(input);
    case amplitudes_prob_362:
    case amplitudes_det_362: return Amplitudes362::table_words(input);
    case amplitudes_ptt_probes: return ProbesInRegisters::table_words(input);
    case series_prob_degree8:
    case series_det_degree8: return SeriesDegree8<false>::table_words(input);
    case series_closest_degree8: return SeriesDegree8<true>::table_words(input);
    default: return 0u;
  }
}

std::uint32_t slab_words(const TrackKernelFacts& facts, const TrackingInput& input, const kernel::SlabLayout& layout) {
  const std::uint32_t corners = kernel::kept_corner_words(input.field.stride);
  switch (facts.slab_use) {
    case SlabUse::all: return layout.words;
    case SlabUse::all_and_corners: return layout.words + corners;
    case SlabUse::record_and_corners: return kernel::whole_rows(input.field.channels + 1u) + corners;
    case SlabUse::corners: return corners;
    case SlabUse::probes: return kernel::probe_slab_words(facts.walks);
  }
  return layout.words;
}

// The launch has as many warps on a multiprocessor as registers and shared memory allow; few enough in a block that one
// fits.
TrackLaunchShape launch_shape(TrackKernelId id, const TrackingInput& input, bool at_seeds, std::uint64_t most_shared) {
  const TrackKernelFacts facts = track_kernel_facts(id);
  TrackLaunchShape shape;
  shape.slab_words = slab_words(facts, input, kernel::slab_layout(input, at_seeds));
  shape.threads = facts.threads;
  const std::uint64_t table_bytes = std::uint64_t{table_words(id, input)} * sizeof(float);
  const auto bytes = [&] {
    return table_bytes + std::uint64_t{shape.slab_words} * sizeof(float) * (shape.threads / numerics::lane_count);
  };
  // Blocks share a multiprocessor, which has about a kilobyte more than the largest block may take, for each of them.
  const auto wanted = [&] { return facts.blocks * (bytes() + 1024); };
  while (shape.threads > numerics::lane_count && wanted() > most_shared + 1024) shape.threads -= numerics::lane_count;
  shape.slabs_in_shared = bytes() <= most_shared && shape.threads >= std::min(64u, facts.threads);
  shape.fits = shape.slabs_in_shared || !facts.shared_slabs;
  if (shape.slabs_in_shared) {
    shape.shared_bytes = static_cast<std::uint32_t>(bytes());
  } else if (shape.fits) {
    shape.threads = facts.threads;
  }
  return shape;
}

}  // namespace

TrackKernelChoice choose_track_kernels(const TrackingInput& input, const TrackKernelSituation& situation) {
  TrackKernelChoice choice;
  const Pair wanted = pair_for(input, situation.any_shape);
  if (wanted.halves == none) return choice;
  choice.seeds = wanted.seeds;
  choice.halves = situation.in_bricks ? bricks : wanted.halves;
  choice.seeds_launch = launch_shape(choice.seeds, input, true, situation.shared_bytes);
  choice.halves_launch = launch_shape(choice.halves, input, false, situation.shared_bytes);
  if (!choice.halves_launch.fits) {
    // Too much for shared memory: the kernel for all shapes takes global memory.
    choice.too_large_for_shared = choice.halves;
    choice.halves = pair_for(input, true).halves;
    choice.halves_launch = launch_shape(choice.halves, input, false, situation.shared_bytes);
  }
  return choice;
}

std::string_view track_kernel_name(TrackKernelId id) {
  constexpr std::array<std::string_view, track_kernel_count> names = {"none",
                                                                      "boot",
                                                                      "amplitudes_prob",
                                                                      "amplitudes_det",
                                                                      "amplitudes_closest",
                                                                      "amplitudes_ptt",
                                                                      "series_prob",
                                                                      "series_det",
                                                                      "series_closest",
                                                                      "series_ptt",
                                                                      "float16_amplitudes_prob",
                                                                      "float16_amplitudes_det",
                                                                      "float16_amplitudes_closest",
                                                                      "float16_amplitudes_ptt",
                                                                      "float16_series_prob",
                                                                      "float16_series_det",
                                                                      "float16_series_closest",
                                                                      "float16_series_ptt",
                                                                      "tensors",
                                                                      "peaks",
                                                                      "boot_degree4",
                                                                      "amplitudes_prob_362",
                                                                      "amplitudes_det_362",
                                                                      "amplitudes_ptt_probes",
                                                                      "series_prob_degree8",
                                                                      "series_det_degree8",
                                                                      "series_closest_degree8",
                                                                      "bricks"};
  return names[static_cast<std::uint32_t>(id)];
}

}  // namespace cingulum
