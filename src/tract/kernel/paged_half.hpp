// Tracking on a device whose working groups are warps: seeds and halves are taken from a queue, one group each, and
// points go to pages of 32 that are handed out as they fill, so that no length has to be foreseen. When pages run out
// the halves that are left are unfinished; the tracker adds pages and runs them again. A last pass puts the points of
// each streamline side by side. Called by the kernels of cuda/ and, with the lanes of a host, by the tests of
// paged_tracker.cpp. `Machine` is how a group takes a number: see WarpMachine and HostMachine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/views.hpp"
#include "tract/kernel/walk.hpp"

namespace cingulum::kernel {

inline constexpr std::uint32_t page_points = numerics::lane_count;
inline constexpr std::uint32_t page_floats = 3u * page_points;  // 32 x, 32 y, 32 z
inline constexpr std::uint32_t no_page = 0xffffffffu;
// A line is a seed of the piece and one of its directions in a word.
inline constexpr std::uint32_t direction_bits = 5u;
static_assert((1u << direction_bits) == most_initial_directions);

struct PageStore {
  float* pages;
  std::uint32_t* next;  // of each page, the one after it
  std::uint32_t* used;  // pages asked for, perhaps more than there are
  std::uint32_t capacity;
};

struct HalfRecord {
  std::uint32_t points;
  std::uint32_t steps;
  std::uint32_t reason;  // EndReason, or unfinished_half
  std::uint32_t first_page;
};

// The seeds of a piece in the order of work.
struct SeedList {
  const float* positions;      // x y z in voxels
  const std::uint32_t* index;  // in the run
  float* directions;           // x y z, `stride` directions per seed
  InitialDirections* initial;  // what was found
  std::uint32_t* queue;
  std::uint32_t count;
  std::uint32_t stride;
};

// A list of halves: number n is half n % 2 of line n / 2.
struct HalfList {
  const std::uint32_t* lines;         // seed << direction_bits | direction, in the order of work
  const std::uint32_t* half_numbers;  // which halves to track; null: the first `count`, of one-sided plans every second
  HalfRecord* halves;                 // by number
  std::uint32_t* queue;
  std::uint32_t count;
};

// The half of one number: its draws, and where it starts heading `ahead`.
struct HalfStart {
  std::uint32_t seed;
  std::uint32_t direction_index;
  std::uint32_t half;
  numerics::Vec3 position;
  numerics::Vec3 ahead;
};

CGL_HD inline HalfStart half_at(const SeedList& seeds, const HalfList& list, std::uint32_t half_number) {
  const std::uint32_t line = list.lines[half_number / 2u];
  const std::uint32_t half = half_number % 2u;
  const std::uint32_t entry = line >> direction_bits;
  const std::uint32_t direction_index = line & (most_initial_directions - 1u);
  const float* const p = seeds.positions + 3u * static_cast<std::size_t>(entry);
  const float* const d = seeds.directions + 3u * (static_cast<std::size_t>(seeds.stride) * entry + direction_index);
  const numerics::Vec3 along{d[0], d[1], d[2]};
  return {seeds.index[entry], direction_index, half, {p[0], p[1], p[2]}, half == 0u ? along : -along};
}

CGL_HD inline HalfWalk begin_half_at(const TrackingPlan& plan, const SeedList& seeds, const HalfList& list,
                                     std::uint32_t half_number) {
  const HalfStart start = half_at(seeds, list, half_number);
  return begin_half(plan, start.seed, start.direction_index, start.half, start.position, start.ahead, nullptr);
}

inline constexpr std::uint32_t no_place = 0xffffffffu;
// The place of the half that a group tracks next; no_place when all are taken.
CGL_HD_GENERIC
template <class Machine>
CGL_HD inline std::uint32_t take_half(const TrackingPlan& plan, const HalfList& list) {
  const std::uint32_t item = Machine::take(list.queue);
  if (item >= list.count) return no_place;
  return list.half_numbers != nullptr ? list.half_numbers[item] : (plan.one_sided != 0u ? 2u * item : item);
}

// The streamlines [0, count) of a part of the output, one after the other.
struct CompactionList {
  const std::uint32_t* line;    // which line each is
  const std::uint32_t* offset;  // its first point within the part
  float* points;                // x y z
  std::uint32_t count;
};

// A half between two moves, and its pages so far.
struct PausedHalf {
  std::uint32_t is_paused;  // 0: it begins at its seed
  std::uint32_t moves;
  std::uint32_t arcs;
  std::uint32_t kept;
  std::uint32_t first_page;
  std::uint32_t last_page;
  numerics::Vec3 position;
  numerics::Frame frame;
  float bound;
};

// Where only a brick of the field is on the device: halves pause at z below `low` and from `high` on.
struct BrickWork {
  PausedHalf* paused;  // by number; null: the whole field is there
  float low;
  float high;
};

// What a piece hands to kernels; all pointers are the device's.
struct PagedWork {
  SeedList seeds;
  HalfList halves;
  PageStore store;
  CompactionList output;
  BrickWork brick;
};

// The next page of a half, of which `first` and `last` are the ends so far; false where there is none left.
CGL_HD_GENERIC
template <class Machine>
CGL_HD inline bool append_page(const PageStore& store, std::uint32_t& first, std::uint32_t& last) {
  const std::uint32_t page = Machine::take(store.used);
  if (page >= store.capacity) return false;
  if (first == no_page) {
    first = page;
  } else {
    store.next[last] = page;
  }
  last = page;
  return true;
}

// Points of a half, kept in the lanes until a page is full.
template <class Lanes, class Machine>
struct PagedPoints {
  PageStore store;
  typename Lanes::Float x, y, z;
  std::uint32_t first;
  std::uint32_t last;

  CGL_HD_GENERIC
  static CGL_HD PagedPoints begin(const PageStore& store) {
    const typename Lanes::Float zero = Lanes::broadcast(0.0f);
    return {store, zero, zero, zero, no_page, no_page};
  }

  // Point `index` of the half; false where there is no page.
  CGL_HD_GENERIC
  CGL_HD bool keep(std::uint32_t index, numerics::Vec3 position) {
    const std::uint32_t lane = index % page_points;
    const typename Lanes::Mask own = Lanes::mask_of_bits(1u << lane);
    x = Lanes::select(own, Lanes::broadcast(position.x), x);
    y = Lanes::select(own, Lanes::broadcast(position.y), y);
    z = Lanes::select(own, Lanes::broadcast(position.z), z);
    return lane + 1u < page_points || write_page();
  }

  // Called after the last of `points` points.
  CGL_HD_GENERIC
  CGL_HD bool finish(std::uint32_t points) { return points % page_points == 0u || write_page(); }

  CGL_HD_GENERIC
  CGL_HD bool write_page() {
    if (!append_page<Machine>(store, first, last)) return false;
    float* const to = store.pages + static_cast<std::size_t>(last) * page_floats;
    Lanes::store(to, x);
    Lanes::store(to + page_points, y);
    Lanes::store(to + 2u * page_points, z);
    return true;
  }
};

// One group's share of finding initial directions.
CGL_HD_GENERIC
template <class Lanes, class Machine>
CGL_HD inline void run_seeds(const TrackingInput& input, const Slab& slab, const SeedList& seeds) {
  for (;;) {
    const std::uint32_t entry = Machine::take(seeds.queue);
    if (entry >= seeds.count) return;
    const float* const p = seeds.positions + 3u * static_cast<std::size_t>(entry);
    seeds.initial[entry] =
        find_initial_directions<Lanes>(input, slab, seeds.index[entry], {p[0], p[1], p[2]},
                                       seeds.directions + 3u * static_cast<std::size_t>(seeds.stride) * entry);
  }
}

// One group's share of tracking.
CGL_HD_GENERIC
template <class Lanes, class Machine, class Steps>
CGL_HD inline void run_halves(const TrackingInput& input, const Slab& slab, const SeedList& seeds, const HalfList& list,
                              const PageStore& store) {
  for (;;) {
    const std::uint32_t half_number = take_half<Machine>(input.plan, list);
    if (half_number == no_place) return;
    HalfWalk walk = begin_half_at(input.plan, seeds, list, half_number);
    PagedPoints<Lanes, Machine> points = PagedPoints<Lanes, Machine>::begin(store);
    HalfEnd end = walk_half<Lanes, Steps>(input, slab, WholeField{}, points, walk);
    if (end.reason != unfinished_half && !points.finish(end.points)) end.reason = unfinished_half;
    list.halves[half_number] = {end.points, end.steps, end.reason, points.first};
    // No half after this one would find a page.
    if (end.reason == unfinished_half) return;
  }
}

// Puts the points of one half where they belong: point i of it at to[3 i], or backwards from there. `lane` of `lanes`
// threads that share the work.
CGL_HD inline void copy_half(const PageStore& store, const HalfRecord& half, float* to, bool backwards,
                             std::uint32_t lane, std::uint32_t lanes) {
  std::uint32_t page = half.first_page;
  for (std::uint32_t first = 0; first < half.points; first += page_points) {
    const float* const from = store.pages + static_cast<std::size_t>(page) * page_floats;
    for (std::uint32_t i = lane; i < page_points && first + i < half.points; i += lanes) {
      const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(first + i);
      float* const point = backwards ? to - 3 * step : to + 3 * step;
      point[0] = from[i];
      point[1] = from[page_points + i];
      point[2] = from[2u * page_points + i];
    }
    if (first + page_points < half.points) page = store.next[page];
  }
}

// One streamline of the output: the second half backwards, the seed, the first half.
CGL_HD inline void compact_line(const TrackingInput& input, const SeedList& seeds, const HalfList& list,
                                const PageStore& store, const CompactionList& output, std::uint32_t which,
                                std::uint32_t lane, std::uint32_t lanes) {
  const std::uint32_t line = output.line[which];
  const std::uint32_t against = input.plan.one_sided != 0u ? 0u : list.halves[2u * line + 1u].points;
  float* const seed_point = output.points + 3u * (static_cast<std::size_t>(output.offset[which]) + against);
  if (against != 0u) copy_half(store, list.halves[2u * line + 1u], seed_point - 3, true, lane, lanes);
  if (lane == 0u) {
    const float* const p = seeds.positions + 3u * static_cast<std::size_t>(list.lines[line] >> direction_bits);
    seed_point[0] = p[0];
    seed_point[1] = p[1];
    seed_point[2] = p[2];
  }
  copy_half(store, list.halves[2u * line], seed_point + 3, false, lane, lanes);
}

// Where the parts of a slab lie, in words. Parts whose times do not meet share memory: amplitudes replace the record
// that they were read from, survivors of the peak search replace the signal of the fit.
struct SlabLayout {
  std::uint32_t record;
  std::uint32_t values;
  std::uint32_t survivors;
  std::uint32_t peaks;
  std::uint32_t signal;
  std::uint32_t coefficients;
  std::uint32_t probe;
  std::uint32_t words;  // of one slab, a multiple of 32
};

CGL_HD constexpr std::uint32_t whole_rows(std::uint32_t words) {
  return numerics::lane_count * numerics::row_count(words);
}

// The layout for finding initial directions (`at_seeds`) or for tracking.
CGL_HD constexpr SlabLayout slab_layout(const TrackingInput& input, bool at_seeds) {
  const std::uint32_t slots = numerics::lane_count * input.sphere.rows;
  const std::uint32_t record = whole_rows(input.field.channels + 1u);
  const Getter getter = static_cast<Getter>(input.plan.getter);
  const bool on_record = input.field.kind == field_of_amplitudes;
  const bool seeks_peaks = slots != 0u && (at_seeds || getter == Getter::boot || getter == Getter::closest);
  const std::uint32_t signal = numerics::lane_count * input.bootstrap.rows * (input.harmonics.degree / 2u + 1u);
  const std::uint32_t survivors = seeks_peaks ? slots : 0u;
  SlabLayout layout{};
  layout.record = 0u;
  layout.values = on_record ? 0u : record;
  layout.signal = on_record ? (record > slots ? record : slots) : record + slots;
  layout.survivors = layout.signal;
  layout.coefficients = layout.signal + (signal > survivors ? signal : survivors);
  layout.peaks = layout.coefficients + (input.bootstrap.rows != 0u ? whole_rows(input.harmonics.coefficients) : 0u);
  layout.probe = layout.peaks + (seeks_peaks ? most_initial_directions : 0u);
  const bool probes = !at_seeds && getter == Getter::ptt && input.field.kind == field_of_harmonics;
  constexpr std::uint32_t probe_words = 97;  // kernel/ptt.hpp
  layout.words = layout.probe + (probes ? numerics::lane_count * probe_words : 0u);
  return layout;
}

CGL_HD inline Slab slab_at(float* memory, const SlabLayout& layout) {
  Slab slab{};
  slab.record = memory + layout.record;
  slab.values = memory + layout.values;
  // Words and floats have the same size; each part is written before it is read, as what it is.
  slab.survivors = reinterpret_cast<std::uint32_t*>(memory + layout.survivors);
  slab.peaks = reinterpret_cast<std::uint32_t*>(memory + layout.peaks);
  slab.signal = memory + layout.signal;
  slab.coefficients = memory + layout.coefficients;
  slab.probe = memory + layout.probe;
  return slab;
}

}  // namespace cingulum::kernel
