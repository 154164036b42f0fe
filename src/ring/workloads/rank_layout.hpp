// The layout of PageRank's graph in the buffer that its actors keep. The host makes it (ring/workloads/rank_graph.hpp),
// the actors step it (pagerank_body.hpp); compiled for both.
//
// Nodes get places in which neighbours have about as many edges: within windows of consecutive nodes they are ordered
// by their number of sources. A hundred and twenty-eight places make a slice, which stores the sources of its nodes
// column by column: all first sources, all second ones, and so on, so that lanes side by side read words side by side,
// and no lane has to read where its row begins before it reads the row. Rows that are shorter than their slice is wide
// end in sources that hand on nothing. Rows that would make a slice much too wide stand behind the slices, one after
// another.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::ring {

// A lane works on four places at a time: the numbers of their sources are one load of 16 bytes.
constexpr std::uint32_t places_per_quad = 4;
constexpr std::uint32_t quads_per_slice = 32;
constexpr std::uint32_t places_per_slice = places_per_quad * quads_per_slice;
// Ordering within a window keeps nodes whose numbers are close together in memory. Of a random graph with five edges a
// node, 3 % of the entries are padding with windows of this size.
constexpr std::uint32_t places_per_window = 128 * places_per_slice;
// A node with more sources is a long row.
constexpr std::uint32_t most_columns = 64;

struct alignas(16) SourceQuad {
  std::uint32_t of[places_per_quad];
};
struct alignas(16) RankQuad {
  double of[places_per_quad];
};

// The start of the graph's buffer; offsets are in bytes from there. Arrays by place have `places` elements, and one
// more that stays 0: what a missing source hands on.
struct GraphHeader {
  std::uint64_t nodes = 0;
  std::uint64_t sliced_nodes = 0;  // the places 0 up to this hold nodes; from there to the end of their slice, none
  std::uint64_t slices = 0;
  std::uint64_t long_rows = 0;  // in the places that follow those of the slices
  std::uint64_t places = 0;
  std::uint64_t slice_columns = 0;  // uint32[slices + 1]: the column at which a slice begins
  std::uint64_t sources = 0;        // SourceQuad[columns][quads_per_slice], places
  std::uint64_t long_starts = 0;    // uint64[long_rows + 1]: where their sources begin
  std::uint64_t long_sources = 0;   // uint32[], places
  std::uint64_t weights = 0;        // double[]: damping / edges out of the node, 0 where it has none
  std::uint64_t ranks = 0;          // double[]
  std::uint64_t handed_on = 0;      // double[2][]: weight x rank, of even and odd steps
  std::uint64_t handed_on_stride = 0;
  std::uint64_t workers = 0;  // that step it together
  std::uint64_t shares = 0;   // RankShare[workers]
  std::uint64_t meeting = 0;  // MeetingLine[workers]
  double teleport = 0;        // (1 - damping) / nodes
};

CGL_HD inline const GraphHeader& graph_header(const unsigned char* graph) {
  return *reinterpret_cast<const GraphHeader*>(graph);
}
template <class T>
CGL_HD T* graph_array(unsigned char* graph, std::uint64_t offset) {
  return reinterpret_cast<T*>(graph + offset);
}

// What one worker steps: an actor, or one of its seats.
struct RankShare {
  std::uint32_t first_slice = 0;
  std::uint32_t end_slice = 0;
  std::uint32_t first_long_row = 0;
  std::uint32_t end_long_row = 0;
};

}  // namespace cingulum::ring
