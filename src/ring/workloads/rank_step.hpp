// One step of PageRank over some places of the graph: the sums, the new ranks, what they hand on. Called by every lane
// of the actors (pagerank_body.hpp) for places of its own. These are functions of their own so that nothing of the
// actor occupies the registers that they need.
#pragma once

#include "ring/workloads/lane_sums.hpp"
#include "ring/workloads/rank_layout.hpp"

namespace cingulum::ring {

struct RankStep {
  unsigned char* graph;
  const double* handed_on;
  double* to_hand_on;

  // A lane fetches all that is handed on in so many columns before it adds the first, and meanwhile the sources of the
  // columns that follow: the more is under way at once, the less it waits for memory.
  static constexpr std::uint32_t columns_at_once = 4;
  static constexpr std::uint32_t long_row_at_once = 16;

  // The quads first, first + stride, ... before `end`, counted through all slices. Answers how much a rank changed at
  // most.
  CGL_HD __attribute__((noinline)) double quads(std::uint32_t first, std::uint32_t end, std::uint32_t stride) const {
    const GraphHeader& head = graph_header(graph);
    const auto* const columns = graph_array<const std::uint32_t>(graph, head.slice_columns);
    const auto* const sources = graph_array<const SourceQuad>(graph, head.sources);
    const auto* const weights = graph_array<const RankQuad>(graph, head.weights);
    auto* const ranks = graph_array<RankQuad>(graph, head.ranks);
    const double teleport = head.teleport;
    // The source of a missing column is the place that hands on nothing: one word for the whole warp, whose lanes are
    // all in one slice.
    const auto nowhere = static_cast<std::uint32_t>(head.places);
    double largest = 0;
    for (std::uint32_t quad = first; quad < end; quad += stride) {
      const std::uint32_t slice = quad / quads_per_slice;
      const std::uint32_t end_column = columns[slice + 1];
      const RankQuad before = ranks[quad];
      const RankQuad weight = weights[quad];
      double sums[places_per_quad] = {};
      const std::uint32_t column = columns[slice];
      add_columns(sources + std::uint64_t{column} * quads_per_slice + quad % quads_per_slice, end_column - column,
                  nowhere, sums);
      RankQuad after, to;
      for (std::uint32_t p = 0; p < places_per_quad; ++p) {
        after.of[p] = teleport + sums[p];
        to.of[p] = weight.of[p] * after.of[p];
        const double change = after.of[p] - before.of[p];
        largest = Maximum{}(largest, change < 0 ? -change : change);
      }
      ranks[quad] = after;
      reinterpret_cast<RankQuad*>(to_hand_on)[quad] = to;
    }
    return largest;
  }

  CGL_HD __attribute__((noinline)) double long_row(std::uint32_t row) const {
    const GraphHeader& head = graph_header(graph);
    const auto* const starts = graph_array<const std::uint64_t>(graph, head.long_starts) + row;
    const auto* const sources = graph_array<const std::uint32_t>(graph, head.long_sources);
    const std::uint64_t place = head.slices * places_per_slice + row;
    double sum = 0;
    const std::uint64_t end = starts[1];
    for (std::uint64_t first = starts[0]; first < end; first += long_row_at_once) {
      double came[long_row_at_once];
      for (std::uint32_t i = 0; i < long_row_at_once; ++i) {
        came[i] = first + i < end ? handed_on[sources[first + i]] : 0.0;
      }
      for (std::uint32_t i = 0; i < long_row_at_once; ++i) sum += came[i];
    }
    double& rank = graph_array<double>(graph, head.ranks)[place];
    const double after = head.teleport + sum;
    const double change = after - rank;
    rank = after;
    to_hand_on[place] = graph_array<const double>(graph, head.weights)[place] * after;
    return change < 0 ? -change : change;
  }

 private:
  struct SourceColumns {
    SourceQuad column[columns_at_once];
  };
  // Loads the sources of columns_at_once columns, of which `left` are there. No load has a condition, since few of them
  // could be under way then: what lies past the last column is read there, and never used.
  CGL_HD static SourceColumns load_sources(const SourceQuad* sources, std::uint32_t left) {
    SourceColumns loaded;
    for (std::uint32_t c = 0; c < columns_at_once; ++c) {
      loaded.column[c] = sources[(c < left ? c : left - 1) * quads_per_slice];
    }
    return loaded;
  }

  // Adds what comes from the columns of a quad's rows, in their order.
  CGL_HD void add_columns(const SourceQuad* sources, std::uint32_t left, [[maybe_unused]] std::uint32_t nowhere,
                          double* sums) const {
#if defined(__CUDA_ARCH__)
    if (left == 0) return;
    SourceColumns next = load_sources(sources, left);
    for (;;) {
      const SourceColumns now = next;
      sources += columns_at_once * quads_per_slice;
      const bool is_last = left <= columns_at_once;
      if (!is_last) next = load_sources(sources, left - columns_at_once);
      double came[columns_at_once][places_per_quad];
      for (std::uint32_t c = 0; c < columns_at_once; ++c) {
        for (std::uint32_t p = 0; p < places_per_quad; ++p) {
          came[c][p] = handed_on[c < left ? now.column[c].of[p] : nowhere];
        }
      }
      for (std::uint32_t c = 0; c < columns_at_once; ++c) {
        for (std::uint32_t p = 0; p < places_per_quad; ++p) sums[p] += came[c][p];
      }
      if (is_last) return;
      left -= columns_at_once;
    }
#else
    for (std::uint32_t c = 0; c < left; ++c) {
      const SourceQuad from = sources[std::uint64_t{c} * quads_per_slice];
      for (std::uint32_t p = 0; p < places_per_quad; ++p) sums[p] += handed_on[from.of[p]];
    }
#endif
  }
};

}  // namespace cingulum::ring
