// In which order wired actors are drained: each before those that it sends to, so that nothing is still to come when an
// inbox is closed. Called by Runtime::shutdown.
#pragma once

#include <cstddef>
#include <vector>

namespace cingulum::ring {

// Actors by number that can reach each other, or one alone.
using DrainGroup = std::vector<std::size_t>;

// `sends_to[i]`: the numbers of the actors that i is wired to. No group sends to an earlier one.
[[nodiscard]] std::vector<DrainGroup> drain_order(const std::vector<std::vector<std::size_t>>& sends_to);

}  // namespace cingulum::ring
