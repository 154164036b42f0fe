// PageRank as a workload: the graph is built on the host, kept by actors (ring/workloads/pagerank_body.hpp), and
// stepped until the ranks rest. `cingulum ring run pagerank` and its comparison with SciPy call this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/rank_graph.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

// Distinct directed edges without loops. The same for the same arguments everywhere.
[[nodiscard]] Result<std::vector<Edge>> random_edges(std::uint32_t nodes, std::uint64_t count, std::uint64_t seed);

struct PageRankOptions {
  double damping = 0.85;
  double tolerance = 1e-6;  // on the largest change of a rank
  std::uint32_t max_steps = 100;
  // That share the graph: actors, or seats of one where a place has them. 0: as many as the place finds useful.
  std::uint32_t workers = 0;
  std::uint32_t runs = 3;  // from the first ranks on, of which the fastest counts; fewer when they take long
};

// All steps, from the first ranks to the last.
struct PageRankRun {
  std::uint32_t steps = 0;
  bool converged = false;
  double difference = 0;
  double iterate_s = 0;
  // Parts of iterate_s, measured by the first worker: its share of the sums, and waiting for the others.
  double sum_s = 0;
  double meet_s = 0;
};

struct PageRankResult {
  PageRankRun fastest;
  std::uint32_t workers = 0;
  double build_s = 0;  // from edges to the graph's buffer
  double keep_s = 0;   // the buffer to where the workers are, and their first ranks
  std::vector<double> ranks;
};

[[nodiscard]] Result<PageRankResult> run_pagerank(WorkloadPlace& place, std::uint32_t nodes,
                                                  std::span<const Edge> edges, const PageRankOptions& options);

}  // namespace cingulum::ring
