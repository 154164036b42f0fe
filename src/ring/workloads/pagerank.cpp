#include "ring/workloads/pagerank.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>

#include "base/interrupt.hpp"
#include "ring/workloads/pagerank_body.hpp"

namespace cingulum::ring {
namespace {

constexpr Nanoseconds sweep_limit = std::chrono::seconds(120);

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// The buffer that pagerank_body.hpp describes. Sources of a node ascend: edges are sorted by source, then by target,
// each time keeping the order of equals.
Result<std::vector<std::byte>> build_graph(std::uint32_t nodes, std::span<const Edge> edges, double damping,
                                           std::uint32_t actors) {
  if (nodes == 0 || edges.size() >= 0xffffffffU) {
    return fail(ErrorKind::invalid_argument,
                "a graph of {} nodes and {} edges: 1 node at least, 2^32 - 2 edges at most", nodes, edges.size());
  }
  for (const Edge& edge : edges) {
    if (edge.source < nodes && edge.target < nodes) continue;
    return fail(ErrorKind::invalid_argument, "the edge {} -> {} leaves a graph of {} nodes", edge.source, edge.target,
                nodes);
  }
  GraphHeader header;
  header.nodes = nodes;
  header.edges = edges.size();
  header.teleport = (1 - damping) / static_cast<double>(nodes);
  const auto aligned = [](std::uint64_t bytes) { return (bytes + 127) / 128 * 128; };
  header.row_starts = aligned(sizeof(GraphHeader));
  header.sources = aligned(header.row_starts + 4 * (header.nodes + 1));
  header.weights = aligned(header.sources + 4 * header.edges);
  header.ranks = aligned(header.weights + 8 * header.nodes);
  header.handed_on = aligned(header.ranks + 8 * header.nodes);
  header.meeting = aligned(header.handed_on + 16 * header.nodes);
  std::vector<std::byte> graph(static_cast<std::size_t>(header.meeting + actors * sizeof(MeetingLine)));
  std::memcpy(graph.data(), &header, sizeof(header));
  auto* const row_starts = reinterpret_cast<std::uint32_t*>(graph.data() + header.row_starts);
  auto* const sources = reinterpret_cast<std::uint32_t*>(graph.data() + header.sources);
  auto* const weights = reinterpret_cast<double*>(graph.data() + header.weights);

  std::vector<std::uint32_t> next(std::size_t{nodes} + 1);
  for (const Edge& edge : edges) ++next[edge.source + 1];
  for (std::uint32_t node = 0; node < nodes; ++node) {
    // In two roundings, as the matrix of the comparison is made: 1 / degree, then times damping.
    const std::uint32_t degree = next[node + 1];
    weights[node] = degree == 0 ? 0 : damping * (1.0 / static_cast<double>(degree));
    next[node + 1] += next[node];
  }
  CGL_TRY(check_interrupt());
  std::vector<Edge> by_source(edges.size());
  for (const Edge& edge : edges) by_source[next[edge.source]++] = edge;
  CGL_TRY(check_interrupt());
  for (const Edge& edge : edges) ++row_starts[edge.target + 1];
  for (std::uint32_t node = 0; node < nodes; ++node) row_starts[node + 1] += row_starts[node];
  std::copy_n(row_starts, nodes, next.begin());
  CGL_TRY(check_interrupt());
  for (const Edge& edge : by_source) sources[next[edge.target]++] = edge.source;
  return graph;
}

// Ranges of nodes with about as many edges each.
std::vector<std::uint32_t> split_nodes(const std::vector<std::byte>& graph, std::uint32_t parts) {
  GraphHeader header;
  std::memcpy(&header, graph.data(), sizeof(header));
  const auto* const starts = reinterpret_cast<const std::uint32_t*>(graph.data() + header.row_starts);
  const auto nodes = static_cast<std::uint32_t>(header.nodes);
  std::vector<std::uint32_t> bounds = {0};
  for (std::uint32_t part = 1; part < parts; ++part) {
    // A node costs about as much as four edges.
    const std::uint64_t wanted = (header.edges + 4 * header.nodes) * part / parts;
    std::uint32_t low = bounds.back();
    std::uint32_t high = nodes;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      starts[middle] + std::uint64_t{4}* middle < wanted ? low = middle + 1 : high = middle;
    }
    bounds.push_back(low);
  }
  bounds.push_back(nodes);
  return bounds;
}

// Sends to all, then waits for all: what the last of them has answered, as all have.
template <class MakeMessage>
Result<RankDone> ask_all(Runtime& runtime, const std::vector<ActorHandle>& actors, MakeMessage&& message_for) {
  std::vector<PendingReply> pending;
  pending.reserve(actors.size());
  for (std::size_t i = 0; i < actors.size(); ++i) {
    CGL_TRY_ASSIGN(PendingReply reply, runtime.request_later(*actors[i], message_for(i)));
    pending.push_back(std::move(reply));
  }
  RankDone done;
  for (PendingReply& reply : pending) {
    CGL_TRY_ASSIGN(const Message answer, reply.wait(sweep_limit));
    if (!holds<RankDone>(answer)) return fail(ErrorKind::corrupt, "a rank actor answered with another message");
    done = payload<RankDone>(answer);
  }
  return done;
}

Status iterate(WorkloadPlace& place, const std::vector<ActorHandle>& actors, BufferHandle graph,
               std::uint64_t edge_count, const PageRankOptions& options, PageRankResult& result) {
  // As many steps a message as keep Ctrl-C waiting for no longer than a blink: of two slow processors, of a device.
  const std::uint64_t visits_a_message = place.asker_is_among_them() ? 20'000'000 : 400'000'000;
  const auto steps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(visits_a_message / std::max<std::uint64_t>(edge_count, 1), 1, 1000));
  while (result.steps < options.max_steps && !result.converged) {
    CGL_TRY(check_interrupt());
    const RankSteps message{graph, result.steps, std::min(options.max_steps, result.steps + steps), options.tolerance};
    CGL_TRY_ASSIGN(const RankDone done,
                   ask_all(place.runtime(), actors, [&](std::size_t) { return make_buffer_message(message); }));
    result.difference = done.difference;
    result.steps += done.steps;
    result.converged = result.difference < options.tolerance;
  }
  return {};
}

}  // namespace

Result<std::vector<Edge>> random_edges(std::uint32_t nodes, std::uint64_t count, std::uint64_t seed) {
  const std::uint64_t most = std::uint64_t{nodes} * (nodes - 1);
  if (nodes < 2 || count > most / 2 + 1) {
    return fail(ErrorKind::invalid_argument, "{} edges between {} nodes: at most {} are drawn", count, nodes,
                nodes < 2 ? 0 : most / 2 + 1);
  }
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return (random() >> 32U) * n >> 32U; };
  std::vector<std::uint64_t> drawn;
  while (drawn.size() < count) {
    drawn.reserve(count);
    for (std::uint64_t missing = count - drawn.size(); missing > 0; --missing) {
      if (missing % 65536 == 0) CGL_TRY(check_interrupt());
      const std::uint64_t source = below(nodes);
      const std::uint64_t target = below(nodes);
      if (source != target) drawn.push_back(source << 32U | target);
    }
    CGL_TRY(check_interrupt());
    std::sort(drawn.begin(), drawn.end());
    CGL_TRY(check_interrupt());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  }
  std::vector<Edge> edges;
  edges.reserve(drawn.size());
  for (const std::uint64_t key : drawn) {
    edges.push_back({static_cast<std::uint32_t>(key >> 32U), static_cast<std::uint32_t>(key)});
  }
  return edges;
}

Result<PageRankResult> run_pagerank(WorkloadPlace& place, std::uint32_t nodes, std::span<const Edge> edges,
                                    const PageRankOptions& options) {
  PageRankResult result;
  Stopwatch watch;
  // An actor with few edges costs more in messages than it saves; on a device it goes through them faster.
  const std::uint64_t fewest_edges = place.asker_is_among_them() ? 2000 : 25'000;
  const std::uint64_t worth = std::max<std::uint64_t>(1, (edges.size() + nodes) / fewest_edges);
  result.actors = options.actors != 0
                      ? options.actors
                      : static_cast<std::uint32_t>(std::min<std::uint64_t>(place.useful_actors(), worth));
  // Steps that are over before their asker stops to spin leave him a processor of his own.
  constexpr std::uint64_t long_step_edges = 100'000;
  if (options.actors == 0 && place.asker_is_among_them() && result.actors > 1 &&
      result.actors == place.useful_actors() && edges.size() / result.actors < long_step_edges) {
    --result.actors;
  }
  CGL_TRY_ASSIGN(const std::vector<std::byte> graph, build_graph(nodes, edges, options.damping, result.actors));
  result.build_s = watch.lap();
  ActorOptions small_rings;  // one message at a time
  small_rings.inbox_capacity = 16;
  small_rings.outbox_capacity = 16;
  std::vector<ActorHandle> actors;
  // Those who are left wait for the one that has failed: they are told to stop, not to finish.
  const auto stop_actors = [&] {
    for (const ActorHandle& actor : actors) {
      static_cast<void>(place.runtime().terminate(actor->name(), Termination::discard()));
    }
  };
  for (std::uint32_t i = 0; i < result.actors; ++i) {
    auto actor = place.start(fmt::format("pagerank-{}", i), WorkloadBody::pagerank, Traffic::answers, small_rings);
    if (!actor) {
      stop_actors();
      return tl::make_unexpected(std::move(actor.error()));
    }
    actors.push_back(std::move(*actor));
  }
  watch.lap();
  Status status;
  const auto kept = place.keep(graph);
  if (!kept) status = tl::make_unexpected(kept.error());
  if (status) {
    const std::vector<std::uint32_t> bounds = split_nodes(graph, result.actors);
    status = ask_all(place.runtime(), actors, [&](std::size_t i) {
               return make_buffer_message(
                   RankStart{*kept, bounds[i], bounds[i + 1], static_cast<std::uint32_t>(i), result.actors});
             }).map([](const RankDone&) {});
    result.keep_s = watch.lap();
  }
  if (status) {
    status = iterate(place, actors, *kept, edges.size(), options, result);
    result.iterate_s = watch.lap();
  }
  stop_actors();
  CGL_TRY(status);
  GraphHeader header;
  std::memcpy(&header, graph.data(), sizeof(header));
  result.ranks.resize(nodes);
  CGL_TRY(place.fetch(*kept, header.ranks, std::as_writable_bytes(std::span(result.ranks))));
  CGL_TRY(place.release(*kept));
  return result;
}

}  // namespace cingulum::ring
