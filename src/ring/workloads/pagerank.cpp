#include "ring/workloads/pagerank.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>

#include "base/interrupt.hpp"
#include "ring/workloads/pagerank_body.hpp"

namespace cingulum::ring {
namespace {

constexpr Nanoseconds sweep_limit = std::chrono::seconds(120);
constexpr Nanoseconds look_after_others = std::chrono::milliseconds(200);

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

// Sends to all, then waits for all.
template <class MakeMessage>
Status ask_all(Runtime& runtime, const std::vector<ActorHandle>& actors, MakeMessage&& message_for) {
  std::vector<PendingReply> pending;
  pending.reserve(actors.size());
  for (std::size_t i = 0; i < actors.size(); ++i) {
    CGL_TRY_ASSIGN(PendingReply reply, runtime.request_later(*actors[i], message_for(i)));
    pending.push_back(std::move(reply));
  }
  for (PendingReply& reply : pending) {
    CGL_TRY_ASSIGN(const Message answer, reply.wait(sweep_limit));
    if (!holds<RankDone>(answer)) return fail(ErrorKind::corrupt, "a rank actor answered with another message");
  }
  return {};
}

// The answer of the first actor, which waits for all others; one of them that fails keeps it from coming.
Result<RankDone> wait_for_steps(const std::vector<ActorHandle>& actors) {
  for (auto waited = Nanoseconds(0); waited < sweep_limit; waited += look_after_others) {
    const auto answer = actors[0]->receive(look_after_others);
    if (answer && !holds<RankDone>(*answer)) {
      return fail(ErrorKind::corrupt, "a rank actor answered with another message");
    }
    if (answer) return payload<RankDone>(*answer);
    if (answer.error().kind() != ErrorKind::timed_out) return tl::make_unexpected(answer.error());
    for (const ActorHandle& actor : actors) {
      if (actor->state() == ActorState::active) continue;
      return fail(ErrorKind::invalid_state, "actor '{}' went while the others waited for it: {}", actor->name(),
                  actor->telemetry().last_failure);
    }
  }
  return fail(ErrorKind::timed_out, "steps of {} actors took longer than {} s", actors.size(),
              std::chrono::duration_cast<std::chrono::seconds>(sweep_limit).count());
}

Status iterate(WorkloadPlace& place, const std::vector<ActorHandle>& actors, BufferHandle graph,
               std::uint64_t edge_count, const PageRankOptions& options, std::uint64_t rounds_before,
               PageRankRun& run) {
  // As many steps a message as keep Ctrl-C waiting for no longer than a blink: of two slow processors, of a device.
  const std::uint64_t visits_a_message = place.waiting_takes_a_processor() ? 20'000'000 : 400'000'000;
  const auto steps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(visits_a_message / std::max<std::uint64_t>(edge_count, 1), 1, 1000));
  while (run.steps < options.max_steps && !run.converged) {
    CGL_TRY(check_interrupt());
    const Message message = make_buffer_message(
        RankSteps{graph, run.steps, std::min(options.max_steps, run.steps + steps), options.tolerance, rounds_before});
    for (const ActorHandle& actor : actors) CGL_TRY(actor->send(message));
    CGL_TRY_ASSIGN(const RankDone done, wait_for_steps(actors));
    run.difference = done.difference;
    run.steps += done.steps;
    run.sum_s += 1e-9 * static_cast<double>(done.sum_ns);
    run.meet_s += 1e-9 * static_cast<double>(done.meet_ns);
    run.converged = run.difference < options.tolerance;
  }
  return {};
}

std::uint32_t workers_worth_it(const WorkloadPlace& place, std::uint64_t edges, std::uint32_t nodes) {
  // A worker with few edges costs more in meetings than it saves; on a device it goes through them faster.
  const std::uint64_t fewest_edges = place.waiting_takes_a_processor() ? 2000 : 25'000;
  const std::uint64_t worth = std::max<std::uint64_t>(1, (edges + nodes) / fewest_edges);
  const auto workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(place.useful_workers(), worth));
  // Steps that are over before their requester stops spinning leave it a processor of its own.
  constexpr std::uint64_t long_step_edges = 100'000;
  const bool leave_one = place.waiting_takes_a_processor() && workers > 1 && workers == place.useful_workers() &&
                         edges / workers < long_step_edges;
  return leave_one ? workers - 1 : workers;
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
  result.workers = options.workers != 0 ? options.workers : workers_worth_it(place, edges.size(), nodes);
  CGL_TRY_ASSIGN(const RankGraph graph, build_rank_graph(nodes, edges, options.damping, result.workers));
  result.build_s = watch.lap();
  ActorOptions small_rings;  // one message at a time
  small_rings.seats = place.has_seats() ? result.workers : 1;
  small_rings.inbox_capacity = 16;
  small_rings.outbox_capacity = 16;
  // Steps on a device take less than the host's way to sleep and back.
  if (!place.waiting_takes_a_processor()) small_rings.waiting.mode = WaitMode::spin;
  std::vector<ActorHandle> actors;
  // Those who are left wait for the one that has failed: they are told to stop, not to finish.
  const auto stop_actors = [&] {
    for (const ActorHandle& actor : actors) {
      static_cast<void>(place.runtime().terminate(actor->name(), Termination::discard()));
    }
  };
  for (std::uint32_t worker = 0; worker < result.workers; worker += small_rings.seats) {
    auto actor = place.start(fmt::format("pagerank-{}", worker), WorkloadBody::pagerank, Traffic::answers, small_rings);
    if (!actor) {
      stop_actors();
      return tl::make_unexpected(std::move(actor.error()));
    }
    actors.push_back(std::move(*actor));
  }
  watch.lap();
  Status status;
  const auto kept = place.keep(graph.bytes);
  if (!kept) status = tl::make_unexpected(kept.error());
  // The first run finds code and memory that were not used before: it is not what is measured, unless it takes long.
  constexpr double long_run_s = 0.5;
  double total_s = 0;
  std::uint64_t rounds = 0;
  for (std::uint32_t run = 0; status && run < std::max(options.runs, 1u) && total_s < long_run_s; ++run) {
    status = ask_all(place.runtime(), actors, [&](std::size_t i) {
      return make_buffer_message(RankStart{*kept, static_cast<std::uint32_t>(i) * small_rings.seats});
    });
    const double started_s = watch.lap();
    if (run == 0) result.keep_s = started_s;
    if (!status) break;
    PageRankRun one;
    status = iterate(place, actors, *kept, edges.size(), options, rounds, one);
    rounds += 1 + one.steps;
    one.iterate_s = watch.lap();
    total_s += one.iterate_s;
    if (run == 0 || one.iterate_s < result.fastest.iterate_s) result.fastest = one;
  }
  stop_actors();
  CGL_TRY(status);
  std::vector<double> by_place(graph.header.places);
  CGL_TRY(place.fetch(*kept, graph.header.ranks, std::as_writable_bytes(std::span(by_place))));
  result.ranks.resize(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) result.ranks[node] = by_place[graph.place_of[node]];
  CGL_TRY(place.release(*kept));
  return result;
}

}  // namespace cingulum::ring
