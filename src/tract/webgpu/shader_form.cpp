#include "tract/webgpu/shader_form.hpp"

#include <algorithm>

#include "numerics/lanes_portable.hpp"
#include "tract/webgpu/probe_words.hpp"

namespace cingulum {

std::uint64_t rounds_of_a_call(const TrackingInput& input, bool probes) {
  const TrackingPlan& plan = input.plan;
  const auto getter = static_cast<Getter>(plan.getter);
  const std::uint64_t rows = input.sphere.rows;
  const std::uint64_t coefficients = input.harmonics.coefficients;
  const std::uint64_t series = coefficients * (input.harmonics.mirror != 0u ? rows / 4 : rows);
  const std::uint64_t peaks = rows * (input.sphere.degree + most_initial_directions);
  const std::uint64_t at_direction = 8 + std::uint64_t{input.harmonics.degree + 1} * (input.harmonics.degree / 2 + 2);
  // Corners, records, folds; amplitudes on the sphere; peaks at the seed.
  std::uint64_t rounds = 128 + 2 * (input.field.channels / numerics::lane_count) + 4 * rows + series + peaks;
  if (getter == Getter::det) rounds += 4 * at_direction;
  if (getter == Getter::tensor) rounds += 4 * 15;
  if (getter == Getter::boot) {
    rounds += plan.boot_attempts * (2 * input.bootstrap.rows * coefficients + 64 + series + 4 * rows + peaks);
  }
  if (probes) {
    // With lanes that wait until several are idle, and none taking more than one of those that others made.
    const std::uint64_t followed = 2 * (2 + plan.ptt_tries / numerics::lane_count) * plan.ptt_probe_quality;
    return rounds + followed * (24 + input.nearest.capacity);
  }
  if (getter == Getter::ptt) {
    const std::uint64_t amplitude = 10 + std::max<std::uint64_t>(at_direction, input.nearest.capacity);
    rounds +=
        (1 + (plan.ptt_tries + 31) / 32) * plan.ptt_probe_quality * std::max(plan.ptt_probe_count, 1u) * amplitude;
  }
  return rounds;
}

bool subgroups_are_32_wide(const DeviceCapabilities& can) {
  return can.subgroups && can.subgroup_min == 32 && can.subgroup_max == 32;
}

ShaderForm choose_shader_form(const TrackingInput& input, const WebgpuTrackerOptions& options,
                              const DeviceCapabilities& can, const ShaderSituation& situation) {
  constexpr std::uint64_t probe_element_bytes = 16;
  ShaderForm form;
  form.lanes = options.lanes.value_or(subgroups_are_32_wide(can) ? LaneForm::subgroup : LaneForm::workgroup);
  // ptt_probes.wgsl asks its lanes for each other's words at every point, which is quick by subgroups alone.
  form.probes = situation.probe_tables_there && options.probes.value_or(form.lanes == LaneForm::subgroup) &&
                probes_fit(input) && situation.starts_are_unit && !situation.in_bricks && situation.field_pieces == 1 &&
                probe_offsets(input).end * probe_element_bytes <= situation.largest_binding_bytes &&
                (!can.software || rounds_of_a_call(input, true) <= most_software_rounds);
  // Compiling for one shape pays when there is much to track; not for ptt.wgsl, where it was measured to gain nothing.
  constexpr std::uint64_t many_seeds = 10'000;
  const bool is_ptt = static_cast<Getter>(input.plan.getter) == Getter::ptt;
  form.specialised = options.specialised.value_or(situation.seeds >= many_seeds && (!is_ptt || form.probes));
  if (tracking_workgroup_bytes(input, form.specialised) > guaranteed_workgroup_bytes) form.specialised = true;
  form.int64 = form.probes && options.int64.value_or(can.shader_int64);
  return form;
}

}  // namespace cingulum
