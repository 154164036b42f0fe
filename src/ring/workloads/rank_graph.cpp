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

}  // namespace

Result<RankGraph> build_rank_graph(std::uint32_t nodes, std::span<const Edge> edges, double damping,
                                   std::uint32_t workers) {
  // Padding included, entries have 32-bit numbers: a slice is at most as wide as the longest of its rows.
  constexpr std::uint64_t most_edges = 3'000'000'000;
  if (nodes == 0 || edges.size() > most_edges) {
    return fail(ErrorKind::invalid_argument, "a graph of {} nodes and {} edges: 1 node at least, {} edges at most",
                nodes, edges.size(), most_edges);
  }
  std::vector<std::uint32_t> out_degree(nodes);
  std::vector<std::uint32_t> in_degree(nodes);
  bool is_sorted = true;
  std::uint32_t last_source = 0;
  for (const Edge& edge : edges) {
    if (edge.source >= nodes || edge.target >= nodes) {
      return fail(ErrorKind::invalid_argument, "the edge {} -> {} leaves a graph of {} nodes", edge.source, edge.target,
                  nodes);
    }
    is_sorted = is_sorted && edge.source >= last_source;
    last_source = edge.source;
    ++out_degree[edge.source];
    ++in_degree[edge.target];
  }
  CGL_TRY(check_interrupt());
  std::vector<Edge> own_edges;
  if (!is_sorted) {
    own_edges = sorted_by_source(edges, out_degree);
    edges = own_edges;
  }
  CGL_TRY(check_interrupt());

  RankGraph graph;
  GraphHeader& header = graph.header;
  header.nodes = nodes;
  header.teleport = (1 - damping) / static_cast<double>(nodes);
  graph.place_of = assign_places(in_degree, header);
  CGL_TRY(check_interrupt());

  const auto slices = static_cast<std::uint32_t>(header.slices);
  const auto long_rows = static_cast<std::uint32_t>(header.long_rows);
  const auto first_long_place = static_cast<std::uint32_t>(header.slices * places_per_slice);
  std::vector<std::uint32_t> columns(std::size_t{slices} + 1);
  std::vector<std::uint64_t> long_starts(std::size_t{long_rows} + 1);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint32_t place = graph.place_of[node];
    if (place < first_long_place) {
      std::uint32_t& width = columns[place / places_per_slice + 1];
      width = std::max(width, in_degree[node]);
    } else {
      long_starts[place - first_long_place + 1] = in_degree[node];
    }
  }
  std::uint64_t column_count = 0;
  for (std::uint32_t& column : columns) column = static_cast<std::uint32_t>(column_count += column);
  if (column_count * places_per_slice > 0xffffffffU) {
    return fail(ErrorKind::invalid_argument, "a graph of {} nodes and {} edges is too uneven: {} entries with padding",
                nodes, edges.size(), column_count * places_per_slice);
  }
  std::partial_sum(long_starts.begin(), long_starts.end(), long_starts.begin());

  std::uint64_t end = sizeof(GraphHeader);
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t begin = (end + 127) / 128 * 128;
    end = begin + bytes;
    return begin;
  };
  header.slice_columns = take(4 * columns.size());
  header.sources = take(4 * column_count * places_per_slice);
  header.long_starts = take(8 * long_starts.size());
  header.long_sources = take(4 * long_starts.back());
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
  std::memcpy(buffer + header.slice_columns, columns.data(), 4 * columns.size());
  std::memcpy(buffer + header.long_starts, long_starts.data(), 8 * long_starts.size());
  auto* const weights = reinterpret_cast<double*>(buffer + header.weights);
  auto* const sources = reinterpret_cast<std::uint32_t*>(buffer + header.sources);
  auto* const long_sources = reinterpret_cast<std::uint32_t*>(buffer + header.long_sources);
  std::fill_n(sources, column_count * places_per_slice, static_cast<std::uint32_t>(header.places));
  // Where the next source of a place goes.
  std::vector<std::uint32_t> next(header.places);
  for (std::uint32_t place = 0; place < first_long_place; ++place) {
    next[place] = columns[place / places_per_slice] * places_per_slice + place % places_per_slice;
  }
  for (std::uint32_t row = 0; row < long_rows; ++row) {
    next[first_long_place + row] = static_cast<std::uint32_t>(long_starts[row]);
  }
  for (std::uint32_t node = 0; node < nodes; ++node) {
    // In two roundings, as the matrix of the comparison is made: 1 / degree, then times damping.
    const std::uint32_t degree = out_degree[node];
    weights[graph.place_of[node]] = degree == 0 ? 0 : damping * (1.0 / static_cast<double>(degree));
  }
  CGL_TRY(check_interrupt());
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

  // A place costs about as much as four of its edges.
  const std::vector<std::uint32_t> slice_bounds =
      split_evenly(slices, workers, [&](std::uint32_t i) { return columns[i] + std::uint64_t{4} * i; });
  const std::vector<std::uint32_t> row_bounds =
      split_evenly(long_rows, workers, [&](std::uint32_t i) { return long_starts[i]; });
  for (std::uint32_t i = 0; i < workers; ++i) {
    graph.shares.push_back({slice_bounds[i], slice_bounds[i + 1], row_bounds[i], row_bounds[i + 1]});
  }
  std::memcpy(buffer + header.shares, graph.shares.data(), workers * sizeof(RankShare));
  return graph;
}

}  // namespace cingulum::ring
