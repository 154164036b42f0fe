#include "tract/webgpu/probe_words.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "numerics/lane_rotation.hpp"
#include "numerics/lanes_portable.hpp"
#include "tract/kernel/probe_tables.hpp"
#include "tract/webgpu/streamline_words.hpp"

namespace cingulum {
namespace {

using Lanes = numerics::PortableLanes;

constexpr std::uint32_t element_words = 4;
constexpr std::uint32_t arc_elements = 2;

std::uint32_t word_of(float number) {
  return std::bit_cast<std::uint32_t>(number);
}

}  // namespace

ProbeOffsets probe_offsets(const TrackingInput& input) {
  ProbeOffsets at;
  at.arcs = numerics::lane_count * input.sphere.rows;
  at.nearest = at.arcs + arc_elements * numerics::lane_count;
  at.cells = at.nearest + kernel::packed_nearest_words / element_words;
  at.end = at.cells + std::uint64_t{2} * kernel::probe_cell_count(input.plan.size);
  return at;
}

bool probes_fit(const TrackingInput& input) {
  return static_cast<Getter>(input.plan.getter) == Getter::ptt && input.field.kind == field_of_amplitudes &&
         input.field.is_float16 == 0u && input.field.stride % element_words == 0u && input.sphere.is_hemisphere != 0u &&
         input.nearest.cells % kernel::packed_cells == 0u && input.field.channels <= kernel::packed_slot_mask &&
         input.plan.ptt_probe_count <= 1u && input.plan.ptt_exponent_is_one != 0u;
}

bool starts_are_unit(const DeviceTables& tables, const GivenDirections* directions) {
  const auto is_unit = [](double x, double y, double z) { return std::abs(x * x + y * y + z * z - 1) <= 0x1p-20; };
  if (directions != nullptr) {
    return std::all_of(directions->directions.begin(), directions->directions.end(),
                       [&](const numerics::Vec3& d) { return is_unit(d.x, d.y, d.z); });
  }
  const TrackingInput input = with_pointers(tables, tables.words.data(), nullptr, nullptr);
  for (std::uint32_t slot = 0; slot < input.field.channels; ++slot) {
    if (!is_unit(input.sphere.x[slot], input.sphere.y[slot], input.sphere.z[slot])) return false;
  }
  return true;
}

std::vector<std::uint32_t> make_probe_words(const DeviceTables& tables, const Field& field) {
  const TrackingInput input =
      with_pointers(tables, tables.words.data(), field.record_of_voxel.data(), field.stored_bytes().data());
  const ProbeOffsets at = probe_offsets(input);
  std::vector<std::uint32_t> words(at.end * element_words);
  for (std::uint32_t slot = 0; slot < at.arcs; ++slot) {
    std::uint32_t* const to = &words[slot * element_words];
    to[0] = word_of(input.sphere.x[slot]);
    to[1] = word_of(input.sphere.y[slot]);
    to[2] = word_of(input.sphere.z[slot]);
  }

  const Lanes::Float limit = Lanes::broadcast(input.plan.ptt_max_curvature);
  const Lanes::Float k1 = Lanes::multiply(Lanes::load(input.disc.k1), limit);
  const Lanes::Float k2 = Lanes::multiply(Lanes::load(input.disc.k2), limit);
  const numerics::LaneArc<Lanes> arc = numerics::lane_arc<Lanes>(k1, k2, input.plan.ptt_probe_step_mm);
  for (std::uint32_t lane = 0; lane < numerics::lane_count; ++lane) {
    const bool bent = (Lanes::ballot(arc.bent) >> lane & 1u) != 0u;
    const float numbers[arc_elements * element_words] = {bent ? Lanes::get(arc.along, lane) : straight_arc,
                                                         Lanes::get(arc.aside_1, lane),
                                                         Lanes::get(arc.aside_2, lane),
                                                         Lanes::get(arc.keep, lane),
                                                         Lanes::get(arc.turn_1, lane),
                                                         Lanes::get(arc.turn_2, lane),
                                                         Lanes::get(arc.normal_normal, lane),
                                                         Lanes::get(arc.normal_binormal, lane)};
    std::uint32_t* const to = &words[(at.arcs + arc_elements * lane) * element_words];
    for (std::size_t i = 0; i < std::size(numbers); ++i) to[i] = word_of(numbers[i]);
  }

  for (std::uint32_t cell = 0; cell < kernel::packed_nearest_words; ++cell) {
    words[at.nearest * element_words + cell] = kernel::packed_nearest(input.nearest, cell);
  }

  std::uint32_t* const cells = &words[std::size_t{at.cells} * element_words];
  for (std::size_t cell = 0; cell < kernel::probe_cell_count(input.plan.size); ++cell) {
    kernel::write_probe_cell(input, cell, cells);
    // Numbers, where write_probe_cell() counts by four.
    for (std::uint32_t corner = 0; corner < 8; ++corner) cells[8 * cell + corner] *= element_words;
  }
  return words;
}

}  // namespace cingulum
