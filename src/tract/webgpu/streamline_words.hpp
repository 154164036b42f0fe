// The words that the tracking shaders and the host share (webgpu/streamline.wgsl): counters, the state of a workgroup's
// streamline between dispatches, seeds, and the entries of pages. Written once, here: webgpu_shader.cpp gives the text
// its constants from these. Used by the WebGPU tracker and by page_store.cpp.
//
// Buffer `work`: work_counter_words counters; per workgroup state_words of state (a LineWords, and from
// state_directions on x y z of the lanes' initial directions); per seed a SeedWords; then, for ptt_probes.wgsl, the
// values of a workgroup's slots. Buffer `pages`: per page an entry of entry_words, then per page page_words of points.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/rotation.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

enum class WorkCounter : std::uint32_t {
  next_seed = 0,
  pages = 1,  // taken: more than there are when they are used up
  seeds_outside = 2,
  seeds_without_direction = 3,
  // The counters from here on are counted anew in every dispatch.
  unfinished = 4,         // workgroups
  waiting_for_brick = 5,  // those of them that wait for another brick of the field
  shares = 6,             // of calls that were taken (ptt_probes.wgsl)
};
inline constexpr std::uint32_t counters_of_dispatch = 3;  // the last of them
inline constexpr std::uint32_t work_counter_words = 16;

enum class LinePhase : std::uint32_t {
  free = 0,     // takes a seed next; zeros are a workgroup before its first
  at_seed = 1,  // asks for the initial directions next
  starts_half = 2,
  turning = 3,  // stands at the seed, heading into the first half: the second asks for its first step, to go against it
  at_start = 4,  // stands at the seed, heading into a half
  moved = 5,     // stands at a point that is not tested yet
};

// A streamline between dispatches.
struct LineWords {
  std::uint32_t phase;  // LinePhase
  std::uint32_t seed;   // number within the range
  std::uint32_t direction;
  std::uint32_t count;  // of directions
  std::uint32_t half;
  std::uint32_t steps;  // getter calls of this half
  std::uint32_t points;
  numerics::Vec3 seed_position;
  numerics::Vec3 position;
  numerics::Frame frame;
  float bound;  // of ptt's rejection, as the last arc left it
};
inline constexpr std::uint32_t line_words_used = sizeof(LineWords) / sizeof(std::uint32_t);
inline constexpr std::uint32_t state_directions = 32;  // a word per lane before
inline constexpr std::uint32_t state_words = 128;
static_assert(line_words_used <= state_directions && state_directions + 3u * 32u <= state_words);

struct SeedWords {
  numerics::Vec3 position;
  std::uint32_t number;  // within the range
  numerics::Vec3 given;  // its direction, where directions are given
  std::uint32_t unused;
};
inline constexpr std::uint32_t seed_words = sizeof(SeedWords) / sizeof(std::uint32_t);
static_assert((seed_words & (seed_words - 1u)) == 0u, "lanes take words modulo this");

// What the page belongs to. `bits`: direction, half, whether the half ends with it, why, and the page's points.
struct PageEntryWords {
  std::uint32_t seed;  // number within the range
  std::uint32_t bits;
  std::uint32_t first;  // the number in its half of the page's first point
  std::uint32_t steps;  // getter calls of the half until then
};
inline constexpr std::uint32_t entry_words = sizeof(PageEntryWords) / sizeof(std::uint32_t);
inline constexpr std::uint32_t entry_half_shift = 5;
inline constexpr std::uint32_t entry_last_shift = 6;
inline constexpr std::uint32_t entry_reason_shift = 7;
inline constexpr std::uint32_t entry_points_shift = 16;

inline constexpr std::uint32_t points_per_page = 32;
inline constexpr std::uint32_t page_words = 3 * points_per_page;

// For ptt_probes.wgsl: calls of the getter that are handed out at a time, and the first number of a straight arc, which
// is that of no other (`along` is at most 10^4).
inline constexpr std::uint32_t calls_of_a_share = 64;
inline constexpr float straight_arc = 0x1p100f;

}  // namespace cingulum
