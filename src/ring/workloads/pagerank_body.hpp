// PageRank by workers that keep the graph (ring/workloads/rank_layout.hpp): each owns some of its slices and long rows,
// and for every step sums what the nodes before theirs hand on (L. Page et al., The PageRank Citation Ranking, 1999,
// with the mass of nodes without an edge ignored, as the workload has it). The graph lies in one buffer that all of
// them read; ranks are written by their owners only, what is handed on is double-buffered. Between two steps the
// workers wait for each other where they are (ring/workloads/meeting.hpp): one message of the host is good for many
// steps. A worker is an actor of its own or a seat of one: threads are the first, the blocks of a grid the second,
// which one message reaches. The sums are sequential, over the sources of a node in ascending order, as SciPy's sparse
// product does them: the ranks are the same bits. Padding adds +0.0, which changes none.
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
  std::uint32_t worker = 0;  // that the actor is, or its first seat
};

// To all actors alike: steps first_step up to end_step, or until no rank changes by `tolerance`. The first answers for
// all.
struct RankSteps {
  static constexpr const char* message_name = "RankSteps";
  BufferHandle graph;
  std::uint32_t first_step = 0;
  std::uint32_t end_step = 0;
  double tolerance = 0;
  std::uint64_t rounds_before = 0;  // meetings of earlier runs on this graph, each of one more than its steps
};

// The answer to both messages. It hands nothing over: workers see each other's writes by their meetings, the host reads
// the graph when they have ended.
struct RankDone {
  static constexpr const char* message_name = "RankDone";
  double difference = 0;    // the largest change of a rank in the last step
  std::uint32_t steps = 0;  // that were done
  // Where the first worker's time went: in its share of the sums, and at the meetings with the others.
  std::uint64_t sum_ns = 0;
  std::uint64_t meet_ns = 0;
};

struct PageRankBody {
  struct State {
    std::uint32_t first_worker;
  };
  // The values that the lanes of a worker exchange.
  struct Strands {
    double of[strand_count + lanes_per_group];
  };
  static constexpr std::uint32_t block_bytes = sizeof(Strands);

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
      const std::uint32_t first_worker = starts ? payload<RankStart>(message).worker : state.first_worker;
      const std::uint32_t worker = first_worker + context.seat();
      if (worker >= graph_header(graph).workers) return failure_bad_graph;
      const RankShare share = graph_array<const RankShare>(graph, graph_header(graph).shares)[worker];
      RankDone done;
      if (starts) {
        if (share.first_slice > share.end_slice || share.end_slice > graph_header(graph).slices ||
            share.first_long_row > share.end_long_row || share.end_long_row > graph_header(graph).long_rows) {
          return failure_bad_graph;
        }
        if (context.lane() == 0 && context.seat() == 0) state.first_worker = first_worker;
        begin(context, graph, share);
        // The answer says that every seat is ready; one that has failed lets none wait for it.
        if (!context.sync_seats()) return 0;
      } else if (!take_steps(context, graph, share, worker, payload<RankSteps>(message), done)) {
        return 0;
      }
      if (starts || worker == 0) context.send(make_reply(message, done));
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
  CGL_HD static bool take_steps(Context& context, unsigned char* graph, const RankShare& share, std::uint32_t worker,
                                const RankSteps& steps, RankDone& done) {
    double* const strands = context.template block_memory<Strands>()->of;
    const GraphHeader head = graph_header(graph);
    const auto workers = static_cast<std::uint32_t>(head.workers);
    auto* const meeting = graph_array<MeetingLine>(graph, head.meeting);
    // The first ranks of all are there: the first round.
    double nothing = 0;
    const std::uint64_t first_round = steps.rounds_before + 1;
    if (steps.first_step == 0 && !meet(context, meeting, workers, worker, first_round, strands, nothing)) return false;
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
      done.difference = largest_over_lanes(context, strands, largest);
      const std::uint64_t summed = context.time_ns();
      const std::uint64_t round = first_round + 1 + step;
      if (!meet(context, meeting, workers, worker, round, strands, done.difference)) return false;
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
