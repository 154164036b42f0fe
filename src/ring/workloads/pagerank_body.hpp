// PageRank by actors that keep the graph: each owns a range of nodes, and for every step sums what the nodes before
// them hand on (L. Page et al., The PageRank Citation Ranking, 1999, with the mass of nodes without an edge ignored, as
// the workload has it). The graph lies in one buffer that all actors read; ranks are written by their owners only, what
// is handed on is double-buffered. Between two steps the actors wait for each other where they are
// (ring/workloads/meeting.hpp): one message of the host is good for many steps. The sums run over the sources of a node
// in ascending order, as SciPy's sparse product does: the ranks are the same bits.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/lane_sums.hpp"
#include "ring/workloads/meeting.hpp"

namespace cingulum::ring {

// The start of the graph's buffer; offsets are in bytes from there.
struct GraphHeader {
  std::uint64_t nodes = 0;
  std::uint64_t edges = 0;
  std::uint64_t row_starts = 0;  // uint32[nodes + 1]: where the sources of each node begin
  std::uint64_t sources = 0;     // uint32[edges]
  std::uint64_t weights = 0;     // double[nodes]: damping / edges out of the node, 0 where it has none
  std::uint64_t ranks = 0;       // double[nodes]
  std::uint64_t handed_on = 0;   // double[2][nodes]: weight x rank, of even and odd steps
  std::uint64_t meeting = 0;     // MeetingLine[actors]
  double teleport = 0;           // (1 - damping) / nodes
};

struct RankStart {
  static constexpr const char* message_name = "RankStart";
  BufferHandle graph;
  std::uint32_t first_node = 0;  // of those that this actor owns
  std::uint32_t end_node = 0;
  std::uint32_t actor = 0;  // the first is 0
  std::uint32_t actors = 0;
};

// To all actors alike: steps first_step up to end_step, or until no rank changes by `tolerance`.
struct RankSteps {
  static constexpr const char* message_name = "RankSteps";
  BufferHandle graph;
  std::uint32_t first_step = 0;
  std::uint32_t end_step = 0;
  double tolerance = 0;
};

// The answer to both. It hands nothing over: the actors see each other's writes by their meetings, the host reads the
// graph when they have ended.
struct RankDone {
  static constexpr const char* message_name = "RankDone";
  double difference = 0;    // the largest change of a rank in the last step
  std::uint32_t steps = 0;  // that were done
};

struct PageRankBody {
  struct State {
    std::uint32_t first_node;
    std::uint32_t end_node;
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
        if (start.first_node > start.end_node || start.end_node > header(graph).nodes) return failure_bad_graph;
        context.sync();
        if (context.lane() == 0) {
          state.first_node = start.first_node;
          state.end_node = start.end_node;
          state.actor = start.actor;
          state.actors = start.actors;
        }
        context.sync();
        begin(context, graph, start.first_node, start.end_node);
      } else if (!take_steps(context, graph, payload<RankSteps>(message), done)) {
        return 0;
      }
      context.send(make_reply(message, done));
    }
    return 0;
  }

 private:
  CGL_HD static const GraphHeader& header(const unsigned char* graph) {
    return *reinterpret_cast<const GraphHeader*>(graph);
  }
  template <class T>
  CGL_HD static T* array(unsigned char* graph, std::uint64_t offset) {
    return reinterpret_cast<T*>(graph + offset);
  }
  CGL_HD static const std::uint32_t* row_starts(unsigned char* graph) {
    return array<std::uint32_t>(graph, header(graph).row_starts);
  }
  // What step `step` reads.
  CGL_HD static double* from(unsigned char* graph, std::uint32_t step) {
    return array<double>(graph, header(graph).handed_on) + (step & 1u) * header(graph).nodes;
  }

  CGL_HD_GENERIC template <class Context>
  CGL_HD static void begin(Context& context, unsigned char* graph, std::uint32_t first, std::uint32_t end) {
    const double rank = 1.0 / static_cast<double>(header(graph).nodes);
    double* const ranks = array<double>(graph, header(graph).ranks);
    const double* const weights = array<double>(graph, header(graph).weights);
    for (std::uint32_t node = first + context.lane(); node < end; node += context.lanes()) {
      ranks[node] = rank;
      from(graph, 0)[node] = weights[node] * rank;
    }
  }

  // False: told to stop.
  CGL_HD_GENERIC template <class Context>
  CGL_HD static bool take_steps(Context& context, unsigned char* graph, const RankSteps& steps, RankDone& done) {
    State& state = context.template state<State>();
    const std::uint32_t count = state.end_node - state.first_node;
    auto* const meeting = array<MeetingLine>(graph, header(graph).meeting);
    // The first ranks of all are there: the first round.
    double nothing = 0;
    if (steps.first_step == 0 && !meet(context, meeting, state.actors, state.actor, 1, state.strands, nothing)) {
      return false;
    }
    for (std::uint32_t step = steps.first_step; step < steps.end_step; ++step) {
      const NodeStep node_step{array<double>(graph, header(graph).ranks),
                               row_starts(graph),
                               array<std::uint32_t>(graph, header(graph).sources),
                               array<double>(graph, header(graph).weights),
                               from(graph, step),
                               from(graph, step + 1),
                               header(graph).teleport,
                               state.first_node};
      double largest = 0;
      for (std::uint32_t i = context.lane(); i < count; i += context.lanes()) {
        if (context.lanes() == 1 && i % 65536 == 0) context.heartbeat();  // a single lane may be at it for long
        largest = Maximum{}(largest, node_step(i));
      }
      done.difference = largest_over_lanes(context, state.strands, largest);
      if (!meet(context, meeting, state.actors, state.actor, std::uint64_t{step} + 2, state.strands, done.difference)) {
        return false;
      }
      ++done.steps;
      if (done.difference < steps.tolerance) break;
    }
    return true;
  }

  // One node's step; how much its rank changed.
  struct NodeStep {
    double* ranks;
    const std::uint32_t* starts;
    const std::uint32_t* sources;
    const double* weights;
    const double* handed_on;
    double* to_hand_on;
    double teleport;
    std::uint32_t first_node;

    CGL_HD double operator()(std::uint32_t i) const {
      const std::uint32_t node = first_node + i;
      double sum = 0;
      for (std::uint32_t edge = starts[node]; edge < starts[node + 1]; ++edge) sum += handed_on[sources[edge]];
      const double rank = teleport + sum;
      const double change = rank - ranks[node];
      ranks[node] = rank;
      to_hand_on[node] = weights[node] * rank;
      return change < 0 ? -change : change;
    }
  };
};

}  // namespace cingulum::ring
