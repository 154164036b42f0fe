// PageRank by actors that keep the graph (ring/workloads/rank_layout.hpp): each owns some of its slices and long rows,
// and for every step sums what the nodes before theirs hand on (L. Page et al., The PageRank Citation Ranking, 1999,
// with the mass of nodes without an edge ignored, as the workload has it). The graph lies in one buffer that all actors
// read; ranks are written by their owners only, what is handed on is double-buffered. Between two steps the actors wait
// for each other where they are (ring/workloads/meeting.hpp): one message of the host is good for many steps. The sums
// are sequential, over the sources of a node in ascending order, as SciPy's sparse product does them: the ranks are the
// same bits. Padding adds +0.0, which changes none.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/lane_sums.hpp"
#include "ring/workloads/meeting.hpp"
#include "ring/workloads/rank_step.hpp"

namespace cingulum::ring {

struct RankStart {
  static constexpr const char* message_name = "RankStart";
  BufferHandle graph;
  RankShare share;
  std::uint32_t actor = 0;  // the first is 0
  std::uint32_t actors = 0;
};

// To all actors alike: steps first_step up to end_step, or until no rank changes by `tolerance`. The first actor
// answers for all.
struct RankSteps {
  static constexpr const char* message_name = "RankSteps";
  BufferHandle graph;
  std::uint32_t first_step = 0;
  std::uint32_t end_step = 0;
  double tolerance = 0;
  std::uint64_t rounds_before = 0;  // meetings of earlier runs on this graph, each of one more than its steps
};

// The answer to both messages. It hands nothing over: the actors see each other's writes by their meetings, the host
// reads the graph when they have ended.
struct RankDone {
  static constexpr const char* message_name = "RankDone";
  double difference = 0;    // the largest change of a rank in the last step
  std::uint32_t steps = 0;  // that were done
  // Where the first actor's time went: in its share of the sums, and at the meetings with the others.
  std::uint64_t sum_ns = 0;
  std::uint64_t meet_ns = 0;
};

struct PageRankBody {
  struct State {
    RankShare share;
    std::uint32_t actor;
    std::uint32_t actors;
    double strands[strand_count + lanes_per_group];
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    State& state = context.template state<State>();
    Message message;
    while (context.receive(message)) {
      const bool starts = holds<RankStart>(message);
      if (!starts && !holds<RankSteps>(message)) return failure_unknown_message;
      // Both begin with the graph's handle.
      const BufferHandle handle = starts ? payload<RankStart>(message).graph : payload<RankSteps>(message).graph;
      auto* const graph = static_cast<unsigned char*>(context.buffer(handle));
      if (graph == nullptr) return failure_stale_buffer;
      RankDone done;
      if (starts) {
        const auto start = payload<RankStart>(message);
        const RankShare share = start.share;
        if (share.first_slice > share.end_slice || share.end_slice > graph_header(graph).slices ||
            share.first_long_row > share.end_long_row || share.end_long_row > graph_header(graph).long_rows) {
          return failure_bad_graph;
        }
        context.sync();
        if (context.lane() == 0) {
          state.share = share;
          state.actor = start.actor;
          state.actors = start.actors;
        }
        context.sync();
        begin(context, graph, share);
      } else if (!take_steps(context, graph, payload<RankSteps>(message), done)) {
        return 0;
      }
      if (starts || state.actor == 0) context.send(make_reply(message, done));
    }
    return 0;
  }

 private:
  static constexpr std::uint32_t heartbeat_interval = 16384;  // quads that a single lane works on between two

  // What step `step` reads.
  CGL_HD static double* from(unsigned char* graph, std::uint32_t step) {
    return graph_array<double>(graph, graph_header(graph).handed_on) +
           (step & 1u) * graph_header(graph).handed_on_stride;
  }

  CGL_HD_GENERIC template <class Context>
  CGL_HD static void begin(Context& context, unsigned char* graph, const RankShare& share) {
    const GraphHeader& head = graph_header(graph);
    const double rank = 1.0 / static_cast<double>(head.nodes);
    double* const ranks = graph_array<double>(graph, head.ranks);
    double* const handed_on = from(graph, 0);
    const double* const weights = graph_array<double>(graph, head.weights);
    const std::uint64_t end = std::uint64_t{share.end_slice} * places_per_slice;
    for (std::uint64_t place = std::uint64_t{share.first_slice} * places_per_slice + context.lane(); place < end;
         place += context.lanes()) {
      // A place without a node has the rank that it keeps.
      ranks[place] = place < head.sliced_nodes ? rank : head.teleport;
      handed_on[place] = weights[place] * rank;
    }
    const std::uint64_t long_place = head.slices * places_per_slice;
    for (std::uint64_t row = share.first_long_row + context.lane(); row < share.end_long_row; row += context.lanes()) {
      ranks[long_place + row] = rank;
      handed_on[long_place + row] = weights[long_place + row] * rank;
    }
  }

  // False: told to stop.
  CGL_HD_GENERIC template <class Context>
  CGL_HD static bool take_steps(Context& context, unsigned char* graph, const RankSteps& steps, RankDone& done) {
    State& state = context.template state<State>();
    const RankShare share = state.share;
    const GraphHeader head = graph_header(graph);
    auto* const meeting = graph_array<MeetingLine>(graph, head.meeting);
    // The first ranks of all are there: the first round.
    double nothing = 0;
    const std::uint64_t first_round = steps.rounds_before + 1;
    if (steps.first_step == 0 &&
        !meet(context, meeting, state.actors, state.actor, first_round, state.strands, nothing)) {
      return false;
    }
    std::uint64_t now = context.time_ns();
    for (std::uint32_t step = steps.first_step; step < steps.end_step; ++step) {
      const RankStep one_step = {graph, from(graph, step), from(graph, step + 1)};
      const std::uint32_t lane = context.lane();
      const std::uint32_t lanes = context.lanes();
      double largest = 0;
      const std::uint32_t end = share.end_slice * quads_per_slice;
      for (std::uint32_t first = share.first_slice * quads_per_slice; first < end;) {
        const std::uint32_t until = lanes > 1 || end - first < heartbeat_interval ? end : first + heartbeat_interval;
        if (lanes == 1) context.heartbeat();
        largest = Maximum{}(largest, one_step.quads(first + lane, until, lanes));
        first = until;
      }
      for (std::uint32_t row = share.first_long_row + lane; row < share.end_long_row; row += lanes) {
        if (lanes == 1) context.heartbeat();
        largest = Maximum{}(largest, one_step.long_row(row));
      }
      done.difference = largest_over_lanes(context, state.strands, largest);
      const std::uint64_t summed = context.time_ns();
      const std::uint64_t round = first_round + 1 + step;
      if (!meet(context, meeting, state.actors, state.actor, round, state.strands, done.difference)) {
        return false;
      }
      done.sum_ns += summed - now;
      now = context.time_ns();
      done.meet_ns += now - summed;
      ++done.steps;
      if (done.difference < steps.tolerance) break;
    }
    return true;
  }
};

}  // namespace cingulum::ring
