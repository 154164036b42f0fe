// The peaks of a function given on the directions of a sphere: the one rule that ODF peaks in files and the initial
// directions of every tracker follow (DIPY's peak_directions). Written for host and CUDA in
// float32; the GPU getters may spread it over lanes as long as they give the same list. Called through peaks.hpp on the
// host.
//   1. A vertex is a peak when no neighbour has a greater value and at least one has a smaller one.
//   2. Where the greatest peak is below zero there are none.
//   3. Kept are peaks with value - m >= threshold (greatest - m), m = max(0, smallest value of all vertices).
//   4. In the order of falling value, then rising slot, a peak is kept when its cosine with every kept one is at most
//      the cosine of the smallest separation; on the hemisphere the magnitude of the cosine counts.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct PeakGraph {
  std::uint32_t count;                     // vertices
  const std::uint32_t* neighbour_offsets;  // count + 1
  const std::uint32_t* neighbours;
  const numerics::Vec3* directions;
  bool is_hemisphere;  // opposite directions are one
};

struct PeakRule {
  float relative_threshold;
  float separation_cosine;
};

CGL_HD inline bool is_peak(const PeakGraph& graph, const float* values, std::uint32_t vertex) {
  const float value = values[vertex];
  bool has_smaller = false;
  for (std::uint32_t i = graph.neighbour_offsets[vertex]; i < graph.neighbour_offsets[vertex + 1]; ++i) {
    const float other = values[graph.neighbours[i]];
    if (other > value) return false;
    has_smaller = has_smaller || other < value;
  }
  return has_smaller;
}

CGL_HD inline bool is_apart(const PeakGraph& graph, const PeakRule& rule, std::uint32_t a, std::uint32_t b) {
  const float product = numerics::dot(graph.directions[a], graph.directions[b]);
  const float cosine = graph.is_hemisphere && product < 0.0f ? -product : product;
  return cosine <= rule.separation_cosine;
}

// Writes at most `capacity` (>= 1) vertices to `peaks` and returns how many. `candidates` has room for graph.count. The
// values are finite.
CGL_HD inline std::uint32_t find_peaks(const PeakGraph& graph, const PeakRule& rule, const float* values,
                                       std::uint32_t* candidates, std::uint32_t* peaks, std::uint32_t capacity) {
  float smallest = values[0];
  float greatest = 0.0f;
  std::uint32_t candidate_count = 0;
  for (std::uint32_t vertex = 0; vertex < graph.count; ++vertex) {
    smallest = values[vertex] < smallest ? values[vertex] : smallest;
    if (!is_peak(graph, values, vertex)) continue;
    greatest = candidate_count == 0u || values[vertex] > greatest ? values[vertex] : greatest;
    candidates[candidate_count++] = vertex;
  }
  if (candidate_count == 0u || greatest < 0.0f) return 0u;
  const float floor_value = smallest > 0.0f ? smallest : 0.0f;
  const float threshold = rule.relative_threshold * (greatest - floor_value);
  // Sorted by insertion; candidates come with rising slots, so equal values stay in that order.
  std::uint32_t sorted = 0;
  for (std::uint32_t i = 0; i < candidate_count; ++i) {
    const std::uint32_t vertex = candidates[i];
    if (candidate_count > 1u && !(values[vertex] - floor_value >= threshold)) continue;
    std::uint32_t place = sorted++;
    while (place > 0u && values[candidates[place - 1u]] < values[vertex]) {
      candidates[place] = candidates[place - 1u];
      --place;
    }
    candidates[place] = vertex;
  }
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < sorted && kept < capacity; ++i) {
    bool apart = true;
    for (std::uint32_t j = 0; j < kept && apart; ++j) apart = is_apart(graph, rule, candidates[i], peaks[j]);
    if (apart) peaks[kept++] = candidates[i];
  }
  return kept;
}

}  // namespace cingulum
