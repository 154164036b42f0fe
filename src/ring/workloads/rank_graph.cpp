#include "ring/workloads/rank_graph.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/interrupt.hpp"
#include "ring/workloads/meeting.hpp"

namespace cingulum::ring {
namespace {

struct Degrees {
  std::vector<std::uint32_t> out;  // of each node
  std::vector<std::uint32_t> in;
  bool edges_are_sorted = true;  // by source
};

Result<Degrees> count_degrees(std::uint32_t nodes, std::span<const Edge> edges) {
  Degrees degrees{std::vector<std::uint32_t>(nodes), std::vector<std::uint32_t>(nodes)};
  std::uint32_t last_source = 0;
  for (const Edge& edge : edges) {
    if (edge.source >= nodes || edge.target >= nodes) {
      return fail(ErrorKind::invalid_argument, "the edge {} -> {} leaves a graph of {} nodes", edge.source, edge.target,
                  nodes);
    }
    degrees.edges_are_sorted = degrees.edges_are_sorted && edge.source >= last_source;
    last_source = edge.source;
    ++degrees.out[edge.source];
    ++degrees.in[edge.target];
  }
  return degrees;
}

// By source, those of one source in the order in which they came.
std::vector<Edge> sorted_by_source(std::span<const Edge> edges, const std::vector<std::uint32_t>& out_degree) {
  std::vector<std::uint32_t> next(out_degree.size());
  std::exclusive_scan(out_degree.begin(), out_degree.end(), next.begin(), 0U);
  std::vector<Edge> sorted(edges.size());
  for (const Edge& edge : edges) sorted[next[edge.source]++] = edge;
  return sorted;
}

// Places of the nodes with few sources, by their number within each window, the most first; then the long rows.
std::vector<std::uint32_t> assign_places(const std::vector<std::uint32_t>& in_degree, GraphHeader& header) {
  std::vector<std::uint32_t> place_of(in_degree.size());
  std::vector<std::uint32_t> window;
  std::uint32_t place = 0;
  const auto place_window = [&] {
    std::array<std::uint32_t, most_columns + 1> next = {};  // place of the next node with so many sources
    for (const std::uint32_t node : window) ++next[in_degree[node]];
    for (std::uint32_t degree = most_columns + 1; degree-- > 0;) {
      const std::uint32_t count = std::exchange(next[degree], place);
      place += count;
    }
    for (const std::uint32_t node : window) place_of[node] = next[in_degree[node]]++;
    window.clear();
  };
  std::vector<std::uint32_t> long_nodes;
  for (std::uint32_t node = 0; node < in_degree.size(); ++node) {
    if (in_degree[node] > most_columns) {
      long_nodes.push_back(node);
    } else {
      window.push_back(node);
      if (window.size() == places_per_window) place_window();
    }
  }
  place_window();
  header.sliced_nodes = place;
  header.slices = (place + places_per_slice - 1) / places_per_slice;
  header.long_rows = long_nodes.size();
  place = static_cast<std::uint32_t>(header.slices * places_per_slice);
  for (const std::uint32_t node : long_nodes) place_of[node] = place++;
  header.places = place;
  return place_of;
}

// Where the sources of each slice and of each long row begin, as the buffer has it.
struct SourceRows {
  std::vector<std::uint32_t> slice_columns;
  std::vector<std::uint64_t> long_starts;
  std::uint64_t sliced_entries = 0;  // with padding
};

Result<SourceRows> lay_out_rows(const RankGraph& graph, const std::vector<std::uint32_t>& in_degree,
                                std::size_t edge_count) {
  const std::uint64_t first_long_place = graph.header.slices * places_per_slice;
  SourceRows rows;
  rows.slice_columns.resize(graph.header.slices + 1);
  rows.long_starts.resize(graph.header.long_rows + 1);
  for (std::size_t node = 0; node < in_degree.size(); ++node) {
    const std::uint32_t place = graph.place_of[node];
    if (place < first_long_place) {
      std::uint32_t& width = rows.slice_columns[place / places_per_slice + 1];
      width = std::max(width, in_degree[node]);
    } else {
      rows.long_starts[place - first_long_place + 1] = in_degree[node];
    }
  }
  std::uint64_t column_count = 0;
  for (std::uint32_t& column : rows.slice_columns) column = static_cast<std::uint32_t>(column_count += column);
  rows.sliced_entries = column_count * places_per_slice;
  if (rows.sliced_entries > 0xffffffffU) {
    return fail(ErrorKind::invalid_argument, "a graph of {} nodes and {} edges is too uneven: {} entries with padding",
                in_degree.size(), edge_count, rows.sliced_entries);
  }
  std::partial_sum(rows.long_starts.begin(), rows.long_starts.end(), rows.long_starts.begin());
  return rows;
}

// Sets the offsets of the header and makes the buffer, with the header and the rows in it.
void make_buffer(const SourceRows& rows, std::uint32_t workers, RankGraph& graph) {
  GraphHeader& header = graph.header;
  std::uint64_t end = sizeof(GraphHeader);
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t begin = (end + 127) / 128 * 128;
    end = begin + bytes;
    return begin;
  };
  header.slice_columns = take(4 * rows.slice_columns.size());
  header.sources = take(4 * rows.sliced_entries);
  header.long_starts = take(8 * rows.long_starts.size());
  header.long_sources = take(4 * rows.long_starts.back());
  header.weights = take(8 * (header.places + 1));
  header.ranks = take(8 * (header.places + 1));
  header.handed_on = take(0);
  header.handed_on_stride = (8 * (header.places + 1) + 127) / 128 * 16;  // in numbers, each half on a line of its own
  take(2 * 8 * header.handed_on_stride);
  header.workers = workers;
  header.shares = take(workers * sizeof(RankShare));
  header.meeting = take(workers * sizeof(MeetingLine));
  graph.bytes.resize(end);
  std::byte* const buffer = graph.bytes.data();
  std::memcpy(buffer, &header, sizeof(header));
  std::memcpy(buffer + header.slice_columns, rows.slice_columns.data(), 4 * rows.slice_columns.size());
  std::memcpy(buffer + header.long_starts, rows.long_starts.data(), 8 * rows.long_starts.size());
}

void write_weights(const std::vector<std::uint32_t>& out_degree, double damping, RankGraph& graph) {
  auto* const weights = reinterpret_cast<double*>(graph.bytes.data() + graph.header.weights);
  for (std::size_t node = 0; node < out_degree.size(); ++node) {
    // In two roundings, as the matrix of the comparison is made: 1 / degree, then times damping.
    const std::uint32_t degree = out_degree[node];
    weights[graph.place_of[node]] = degree == 0 ? 0 : damping * (1.0 / static_cast<double>(degree));
  }
}

// `edges` by source.
void write_sources(std::span<const Edge> edges, const SourceRows& rows, RankGraph& graph) {
  const GraphHeader& header = graph.header;
  auto* const sources = reinterpret_cast<std::uint32_t*>(graph.bytes.data() + header.sources);
  auto* const long_sources = reinterpret_cast<std::uint32_t*>(graph.bytes.data() + header.long_sources);
  std::fill_n(sources, rows.sliced_entries, static_cast<std::uint32_t>(header.places));
  const auto first_long_place = static_cast<std::uint32_t>(header.slices * places_per_slice);
  // Where the next source of a place goes.
  std::vector<std::uint32_t> next(header.places);
  for (std::uint32_t place = 0; place < first_long_place; ++place) {
    next[place] = rows.slice_columns[place / places_per_slice] * places_per_slice + place % places_per_slice;
  }
  for (std::uint32_t row = 0; row < header.long_rows; ++row) {
    next[first_long_place + row] = static_cast<std::uint32_t>(rows.long_starts[row]);
  }
  for (const Edge& edge : edges) {
    const std::uint32_t place = graph.place_of[edge.target];
    const std::uint32_t source = graph.place_of[edge.source];
    if (place < first_long_place) {
      sources[next[place]] = source;
      next[place] += places_per_slice;
    } else {
      long_sources[next[place]++] = source;
    }
  }
}

// `bounds` of `parts` ranges of about equal cost; `cost_before(i)` is that of all before i.
template <class CostBefore>
std::vector<std::uint32_t> split_evenly(std::uint32_t count, std::uint32_t parts, CostBefore&& cost_before) {
  std::vector<std::uint32_t> bounds = {0};
  for (std::uint32_t part = 1; part < parts; ++part) {
    const std::uint64_t wanted = cost_before(count) * part / parts;
    std::uint32_t low = bounds.back();
    std::uint32_t high = count;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      cost_before(middle) < wanted ? low = middle + 1 : high = middle;
    }
    bounds.push_back(low);
  }
  bounds.push_back(count);
  return bounds;
}

void write_shares(const SourceRows& rows, std::uint32_t workers, RankGraph& graph) {
  const GraphHeader& header = graph.header;
  // A place costs about as much as four of its edges.
  const std::vector<std::uint32_t> slice_bounds =
      split_evenly(static_cast<std::uint32_t>(header.slices), workers,
                   [&](std::uint32_t i) { return rows.slice_columns[i] + std::uint64_t{4} * i; });
  const std::vector<std::uint32_t> row_bounds = split_evenly(static_cast<std::uint32_t>(header.long_rows), workers,
                                                             [&](std::uint32_t i) { return rows.long_starts[i]; });
  for (std::uint32_t i = 0; i < workers; ++i) {
    graph.shares.push_back({slice_bounds[i], slice_bounds[i + 1], row_bounds[i], row_bounds[i + 1]});
  }
  std::memcpy(graph.bytes.data() + header.shares, graph.shares.data(), workers * sizeof(RankShare));
}

}  // namespace

Result<RankGraph> build_rank_graph(std::uint32_t nodes, std::span<const Edge> edges, double damping,
                                   std::uint32_t workers) {
  // Padding included, entries have 32-bit numbers: a slice is at most as wide as the longest of its rows.
  constexpr std::uint64_t most_edges = 3'000'000'000;
  if (nodes == 0 || edges.size() > most_edges) {
    return fail(ErrorKind::invalid_argument, "a graph of {} nodes and {} edges: 1 node at least, {} edges at most",
                nodes, edges.size(), most_edges);
  }
  CGL_TRY_ASSIGN(const Degrees degrees, count_degrees(nodes, edges));
  CGL_TRY(check_interrupt());
  std::vector<Edge> own_edges;
  if (!degrees.edges_are_sorted) {
    own_edges = sorted_by_source(edges, degrees.out);
    edges = own_edges;
  }
  CGL_TRY(check_interrupt());
  RankGraph graph;
  graph.header.nodes = nodes;
  graph.header.teleport = (1 - damping) / static_cast<double>(nodes);
  graph.place_of = assign_places(degrees.in, graph.header);
  CGL_TRY(check_interrupt());
  CGL_TRY_ASSIGN(const SourceRows rows, lay_out_rows(graph, degrees.in, edges.size()));
  make_buffer(rows, workers, graph);
  write_weights(degrees.out, damping, graph);
  CGL_TRY(check_interrupt());
  write_sources(edges, rows, graph);
  write_shares(rows, workers, graph);
  return graph;
}

}  // namespace cingulum::ring
