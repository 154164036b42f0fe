// The body of a resident tracking actor: takes a few seeds of a request, finds their directions, tracks their halves
// with all groups of its lanes, and writes the streamlines to the requester's buffer: by the code that the kernels of
// `track` are made of (kernel/paged_half.hpp), and so with their bits. `Groups` says what a group of 32 lanes is: a
// warp (cuda/resident_tracking_program.cu), or a host thread in tests. It keeps nothing from message to message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "examples/tracking_actors/tracking_messages.hpp"
#include "numerics/portable.hpp"
#include "ring/actor/actor_context.hpp"
#include "ring/queue/message.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/steps.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum {

constexpr std::uint32_t getters_of_actors = static_cast<std::uint32_t>(Getter::tensor) + 1u;
constexpr int failure_of_unknown_message = 1;

// The memory of one actor on the device, in words from its beginning.
struct ResidentTrackingLayout {
  std::uint32_t chunk_seeds;  // of a chunk
  std::uint32_t most_pages;   //
  std::uint32_t groups;       //
  std::uint32_t slab_words;   // of a group, for the getter that needs most
  std::uint32_t input;        // TrackingInput
  std::uint32_t counters;     // see Counter
  std::uint32_t positions;    // x y z of each seed
  std::uint32_t index;        //
  std::uint32_t directions;   // x y z of each direction
  std::uint32_t initial;      // InitialDirections
  std::uint32_t lines;        //
  std::uint32_t halves;       // HalfRecord
  std::uint32_t offsets;      // of each line that is brought back, in points
  std::uint32_t numbers;      // 0, 1, 2, ...: which line each of them is
  std::uint32_t next;         // of each page
  std::uint32_t pages;        //
  std::uint32_t slabs;        //
  std::uint32_t words;        // of an actor, a multiple of 32

  enum Counter : std::uint32_t {
    queue,
    pages_used,
    line_count,
    lines_in_all,
    written,
    written_points,
    outside,
    without
  };

  static constexpr std::uint32_t words_of(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + 3u) / 4u); }

  static ResidentTrackingLayout make(std::uint32_t chunk_seeds, std::uint32_t most_pages, std::uint32_t groups,
                                     std::uint32_t slab_words) {
    ResidentTrackingLayout layout{};
    layout.chunk_seeds = chunk_seeds;
    layout.most_pages = most_pages;
    layout.groups = groups;
    layout.slab_words = slab_words;
    const std::uint32_t most_lines = chunk_seeds * most_initial_directions;
    std::uint32_t at = 0;
    const auto take = [&](std::uint32_t words) {
      const std::uint32_t begin = at;
      at += kernel::whole_rows(words);
      return begin;
    };
    layout.input = take(words_of(sizeof(TrackingInput)));
    layout.counters = take(8);
    layout.positions = take(3 * chunk_seeds);
    layout.index = take(chunk_seeds);
    layout.directions = take(3 * most_lines);
    layout.initial = take(chunk_seeds * words_of(sizeof(InitialDirections)));
    layout.lines = take(most_lines);
    layout.halves = take(2 * most_lines * words_of(sizeof(kernel::HalfRecord)));
    layout.offsets = take(most_lines);
    layout.numbers = take(most_lines);
    layout.next = take(most_pages);
    layout.pages = take(most_pages * kernel::page_floats);
    layout.slabs = take(groups * layout.slab_words);
    layout.words = at;
    return layout;
  }
};

template <class Groups>
struct ResidentTrackingBody {
  const TrackingInput* inputs;           // by getter, with pointers into the device's memory; null fields: none
  const ResidentTrackingLayout* layout;  // on the device
  std::uint32_t* memory;                 // of this actor

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    ring::Message message;
    while (context.receive(message)) {
      if (!ring::holds<TrackChunk>(message)) return failure_of_unknown_message;
      const auto chunk = ring::payload<TrackChunk>(message);
      const auto* const request = static_cast<const TrackingRequestHead*>(context.buffer(chunk.request));
      auto* const part = static_cast<TrackedPartHead*>(context.buffer(chunk.part));
      // What was given back in the meantime is nobody's any more: the answer reaches no one who would read it.
      if (request != nullptr && part != nullptr) track(context, chunk, request, part);
      ring::Message reply = ring::make_reply(message, TrackedChunk{chunk.part});
      reply.header.flags |= ring::mark_handle;
      context.send(reply);
    }
    return 0;
  }

 private:
  using Lanes = typename Groups::Lanes;
  using Machine = typename Groups::Machine;
  using Counter = ResidentTrackingLayout::Counter;

  template <class T>
  CGL_HD T* at(std::uint32_t word) const {
    return reinterpret_cast<T*>(memory + word);
  }

  CGL_HD_GENERIC template <class Context>
  CGL_HD void track(Context& context, const TrackChunk& chunk, const TrackingRequestHead* request,
                    TrackedPartHead* part) const {
    const ResidentTrackingLayout& of = *layout;
    std::uint32_t* const counters = at<std::uint32_t>(of.counters);
    take_request(context, chunk, request);
    TrackingInput input;
    memcpy(&input, memory + of.input, sizeof input);
    float* const slab = at<float>(of.slabs) + static_cast<std::size_t>(of.slab_words) * Groups::group(context);
    const bool is_given = request->has_directions != 0u;
    kernel::SeedList seeds{at<const float>(of.positions), at<const std::uint32_t>(of.index),
                           at<float>(of.directions),      at<InitialDirections>(of.initial),
                           counters + Counter::queue,     chunk.seeds,
                           most_initial_directions};
    kernel::run_seeds<Lanes, Machine>(input, kernel::slab_at(slab, kernel::slab_layout(input, true)), seeds);
    context.sync();
    if (is_given) {
      for (std::uint32_t i = context.lane(); i < chunk.seeds; i += context.lanes()) {
        const float* const given = directions_of(request) + 3u * static_cast<std::size_t>(chunk.first_seed + i);
        float* const own = seeds.directions + 3u * static_cast<std::size_t>(seeds.stride) * i;
        for (std::uint32_t axis = 0; axis < 3u; ++axis) own[axis] = given[axis];
        if (seeds.initial[i].seed_reason == 0u) seeds.initial[i].count = 1u;
      }
      context.sync();
    }
    if (context.lane() == 0u) list_lines(chunk, seeds);
    context.sync();
    const std::uint32_t lines = counters[Counter::line_count];
    kernel::HalfList halves{at<const std::uint32_t>(of.lines), nullptr, at<kernel::HalfRecord>(of.halves),
                            counters + Counter::queue, input.plan.one_sided != 0u ? lines : 2u * lines};
    const kernel::PageStore store{at<float>(of.pages), at<std::uint32_t>(of.next), counters + Counter::pages_used,
                                  of.most_pages};
    for (std::uint32_t i = context.lane(); i < 2u * lines; i += context.lanes()) {
      halves.halves[i].reason = kernel::unfinished_half;
    }
    context.sync();
    kernel::run_halves<Lanes, Machine, kernel::AnySteps>(
        input, kernel::slab_at(slab, kernel::slab_layout(input, false)), seeds, halves, store);
    context.sync();
    if (context.lane() == 0u) write_head(input, chunk, seeds, halves, part);
    context.sync();
    const kernel::CompactionList output{at<const std::uint32_t>(of.numbers), at<const std::uint32_t>(of.offsets),
                                        reinterpret_cast<float*>(lines_of(part) + counters[Counter::written]),
                                        counters[Counter::written]};
    for (std::uint32_t which = Groups::group(context); which < output.count; which += Groups::groups(context)) {
      kernel::compact_line(input, seeds, halves, store, output, which, Groups::lane_of_group(context),
                           Groups::lanes_of_group());
    }
    // What the next message uses is not touched before all are done; send() waits for all as well.
    context.sync();
  }

  // Copies plan and seeds to the device's own memory: a read over the bus takes as long as a step.
  CGL_HD_GENERIC template <class Context>
  CGL_HD void take_request(Context& context, const TrackChunk& chunk, const TrackingRequestHead* request) const {
    const ResidentTrackingLayout& of = *layout;
    const auto* const from = reinterpret_cast<const std::uint32_t*>(inputs + request->plan.getter);
    const auto* const plan = reinterpret_cast<const std::uint32_t*>(&request->plan);
    static_assert(offsetof(TrackingInput, plan) == 0 && sizeof(TrackingPlan) % 4u == 0);
    for (std::uint32_t i = context.lane(); i < sizeof(TrackingInput) / 4u; i += context.lanes()) {
      memory[of.input + i] = i < sizeof(TrackingPlan) / 4u ? plan[i] : from[i];
    }
    for (std::uint32_t i = context.lane(); i < 8u; i += context.lanes()) memory[of.counters + i] = 0u;
    const float* const positions = positions_of(request) + 3u * static_cast<std::size_t>(chunk.first_seed);
    for (std::uint32_t i = context.lane(); i < 3u * chunk.seeds; i += context.lanes()) {
      at<float>(of.positions)[i] = positions[i];
    }
    for (std::uint32_t i = context.lane(); i < chunk.seeds; i += context.lanes()) {
      memory[of.index + i] = chunk.first_seed + i;
    }
    context.sync();
  }

  // Called by one lane: finds which lines these seeds have, and those of them that are wanted now.
  CGL_HD void list_lines(const TrackChunk& chunk, const kernel::SeedList& seeds) const {
    std::uint32_t* const counters = at<std::uint32_t>(layout->counters);
    std::uint32_t* const lines = at<std::uint32_t>(layout->lines);
    std::uint32_t all = 0, count = 0, outside = 0, without = 0;
    for (std::uint32_t entry = 0; entry < seeds.count; ++entry) {
      const InitialDirections found = seeds.initial[entry];
      if (found.seed_reason != 0u) {
        ++outside;
        continue;
      }
      if (found.count == 0u) ++without;
      for (std::uint32_t d = 0; d < found.count; ++d, ++all) {
        if (all >= chunk.first_line && count < chunk.most_lines) lines[count++] = (entry << kernel::direction_bits) | d;
      }
    }
    counters[Counter::queue] = 0;
    counters[Counter::pages_used] = 0;
    counters[Counter::line_count] = count;
    counters[Counter::lines_in_all] = all;
    counters[Counter::outside] = outside;
    counters[Counter::without] = without;
  }

  // Called by one lane: lists the lines that have ended, from the first one on, as far as the buffer goes.
  CGL_HD void write_head(const TrackingInput& input, const TrackChunk& chunk, const kernel::SeedList& seeds,
                         const kernel::HalfList& list, TrackedPartHead* part) const {
    std::uint32_t* const counters = at<std::uint32_t>(layout->counters);
    const bool one_sided = input.plan.one_sided != 0u;
    std::uint32_t lines = 0, points = 0;
    std::uint64_t steps = 0;
    for (; lines < counters[Counter::line_count]; ++lines) {
      const kernel::HalfRecord& along = list.halves[2u * lines];
      const kernel::HalfRecord& against = list.halves[2u * lines + 1u];
      if (along.reason == kernel::unfinished_half) break;
      if (!one_sided && against.reason == kernel::unfinished_half) break;
      const std::uint32_t before = one_sided ? 0u : against.points;
      const std::uint32_t all = before + 1u + along.points;
      if (tracked_part_bytes(lines + 1u, std::uint64_t{points} + all) > chunk.part.bytes) break;
      at<std::uint32_t>(layout->offsets)[lines] = points;
      at<std::uint32_t>(layout->numbers)[lines] = lines;
      lines_of(part)[lines] = {seeds.index[list.lines[lines] >> kernel::direction_bits], all, before,
                               (one_sided ? 0u : against.reason) | along.reason << 8u};
      points += all;
      steps += along.steps + (one_sided ? 0u : against.steps);
    }
    counters[Counter::written] = lines;
    *part = {chunk.first_seed,
             chunk.seeds,
             lines,
             points,
             counters[Counter::lines_in_all],
             counters[Counter::outside],
             counters[Counter::without],
             0u,
             steps};
  }
};

}  // namespace cingulum
