#include "tract/webgpu/shader_constants.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/shader_library.hpp"
#include "numerics/lanes_portable.hpp"
#include "tract/kernel/det.hpp"
#include "tract/kernel/drawn_start.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/plan.hpp"
#include "tract/kernel/probe_tables.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/tensor.hpp"
#include "tract/webgpu/streamline_words.hpp"

namespace cingulum {
namespace {

constexpr std::uint32_t word_at(std::size_t offset_bytes) {
  return static_cast<std::uint32_t>(offset_bytes / sizeof(std::uint32_t));
}

template <class Enum>
constexpr std::uint32_t code(Enum value) {
  return static_cast<std::uint32_t>(value);
}

std::string constants_of_half() {
  std::string text;
  const auto add = [&](std::string_view name, auto value) { text += wgsl_constant(name, value); };
  add("most_initial_directions", most_initial_directions);
  add("start_draw", kernel::start_draw);
  add("no_page", kernel::no_page);
  add("end_none", code(EndReason::none));
  add("end_stop_map", code(EndReason::stop_map));
  add("end_outside_image", code(EndReason::outside_image));
  add("end_no_direction", code(EndReason::no_direction));
  add("end_max_length", code(EndReason::max_length));
  add("end_outside_mask", code(EndReason::outside_mask));
  add("refinement_reach", kernel::refinement_reach);
  add("refinement_rounds", kernel::refinement_rounds);
  add("refinement_step", kernel::refinement_step);
  add("refinement_cosine", kernel::refinement_cosine);
  add("jacobi_sweeps", kernel::jacobi_sweeps);
  return text;
}

std::string constants_of_ptt() {
  std::string text;
  const auto add = [&](std::string_view name, auto value) { text += wgsl_constant(name, value); };
  add("two_pi", kernel::two_pi);
  add("bound_margin", kernel::bound_margin);
  add("tries_on_trust", kernel::tries_on_trust);
  add("disc_points", numerics::lane_count);
  add("packed_cells", kernel::packed_cells);
  add("packed_slot_bits", kernel::packed_slot_bits);
  add("packed_slot_mask", kernel::packed_slot_mask);
  add("packed_too_many", kernel::packed_too_many);
  add("packed_scale", kernel::short_scale(0.5f * kernel::packed_cells));
  add("packed_middle", kernel::rounded_middle(0.5f * kernel::packed_cells));
  add("calls_of_a_share", calls_of_a_share);
  add("straight_arc", straight_arc);
  return text;
}

std::string constants_of_words() {
  std::string text;
  const auto add = [&](std::string_view name, auto value) { text += wgsl_constant(name, value); };
  add("work_counter_words", work_counter_words);
  add("counter_next_seed", code(WorkCounter::next_seed));
  add("counter_pages", code(WorkCounter::pages));
  add("counter_seeds_outside", code(WorkCounter::seeds_outside));
  add("counter_seeds_without_direction", code(WorkCounter::seeds_without_direction));
  add("counter_unfinished", code(WorkCounter::unfinished));
  add("counter_waiting_for_brick", code(WorkCounter::waiting_for_brick));
  add("counter_shares", code(WorkCounter::shares));
  add("phase_free", code(LinePhase::free));
  add("phase_at_seed", code(LinePhase::at_seed));
  add("phase_starts_half", code(LinePhase::starts_half));
  add("phase_turning", code(LinePhase::turning));
  add("phase_at_start", code(LinePhase::at_start));
  add("phase_moved", code(LinePhase::moved));
  add("state_words", state_words);
  add("state_directions", state_directions);
  add("line_words_used", line_words_used);
  add("line_phase", word_at(offsetof(LineWords, phase)));
  add("line_seed", word_at(offsetof(LineWords, seed)));
  add("line_direction", word_at(offsetof(LineWords, direction)));
  add("line_count", word_at(offsetof(LineWords, count)));
  add("line_half", word_at(offsetof(LineWords, half)));
  add("line_steps", word_at(offsetof(LineWords, steps)));
  add("line_points", word_at(offsetof(LineWords, points)));
  add("line_seed_position", word_at(offsetof(LineWords, seed_position)));
  add("line_position", word_at(offsetof(LineWords, position)));
  add("line_tangent", word_at(offsetof(LineWords, frame) + offsetof(numerics::Frame, tangent)));
  add("line_normal", word_at(offsetof(LineWords, frame) + offsetof(numerics::Frame, normal)));
  add("line_bound", word_at(offsetof(LineWords, bound)));
  add("line_binormal", word_at(offsetof(LineWords, frame) + offsetof(numerics::Frame, binormal)));
  add("seed_words", seed_words);
  add("seed_position", word_at(offsetof(SeedWords, position)));
  add("seed_number", word_at(offsetof(SeedWords, number)));
  add("seed_given", word_at(offsetof(SeedWords, given)));
  add("entry_words", entry_words);
  add("entry_seed", word_at(offsetof(PageEntryWords, seed)));
  add("entry_bits", word_at(offsetof(PageEntryWords, bits)));
  add("entry_first", word_at(offsetof(PageEntryWords, first)));
  add("entry_steps", word_at(offsetof(PageEntryWords, steps)));
  add("entry_half_shift", entry_half_shift);
  add("entry_last_shift", entry_last_shift);
  add("entry_reason_shift", entry_reason_shift);
  add("entry_points_shift", entry_points_shift);
  add("points_per_page", points_per_page);
  add("page_words", page_words);
  return text;
}

}  // namespace

std::string tracking_constants_wgsl() {
  return constants_of_half() + constants_of_ptt() + constants_of_words();
}

}  // namespace cingulum
