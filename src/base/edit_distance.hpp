// The nearest of some names to one that was mistyped, for messages of the form "unknown verb 'devcies'; did you mean
// 'devices'?". Called by the settings and the command line. It does not decide what happens then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace cingulum {

// Insertions, deletions, replacements and swaps of neighbours, one each (optimal string alignment). Bytes, not letters.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before_previous(width);
  std::vector<std::size_t> previous(width);
  std::vector<std::size_t> current(width);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
    }
    before_previous.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

// The candidate that `name` was probably meant to be, or an empty string when none is near: at most one edit per three
// characters (and one for short names), or `name` is the beginning of it. The first of equals wins.
template <class Names>
[[nodiscard]] std::string nearest_name(std::string_view name, const Names& candidates) {
  // Longer names are not typing mistakes, and the cost is quadratic.
  constexpr std::size_t longest = 256;
  if (name.empty() || name.size() > longest) return {};
  const std::size_t allowed = std::max<std::size_t>(1, name.size() / 3);
  std::size_t best_distance = allowed + 1;
  std::string_view best;
  for (const auto& candidate_like : candidates) {
    const std::string_view candidate = candidate_like;
    if (candidate.size() > longest) continue;
    std::size_t distance = edit_distance(name, candidate);
    if (name.size() >= 2 && candidate.starts_with(name)) distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

// "; did you mean 'devices'?", or nothing.
template <class Names>
[[nodiscard]] std::string did_you_mean(std::string_view name, const Names& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?";
}

}  // namespace cingulum
