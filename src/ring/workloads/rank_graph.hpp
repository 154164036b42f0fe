// The graph of PageRank, built on the host from a list of edges and cut into shares of about equal work.
// ring/workloads/pagerank.cpp builds it and hands it to the actors; it does not compute ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/rank_layout.hpp"

namespace cingulum::ring {

struct Edge {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
};

struct RankGraph {
  GraphHeader header;
  std::vector<std::byte> bytes;         // the buffer, header included
  std::vector<std::uint32_t> place_of;  // of each node
  std::vector<RankShare> shares;        // of each worker, as in the buffer
};

[[nodiscard]] Result<RankGraph> build_rank_graph(std::uint32_t nodes, std::span<const Edge> edges, double damping,
                                                 std::uint32_t workers);

}  // namespace cingulum::ring
