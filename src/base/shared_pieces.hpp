// A loop over pieces that a pool's threads share; where there is no pool the caller works through them alone.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/thread_pool.hpp"

namespace cingulum {

// Calls body(begin, end) for pieces of at most `grain` that are all of `count`. Bodies touch what belongs to their
// piece alone.
template <class Body>
void share_pieces(ThreadPool* pool, std::size_t count, std::size_t grain, const Body& body) {
  if (pool != nullptr) return pool->parallel_for(count, grain, body);
  for (std::size_t first = 0; first < count; first += grain) body(first, std::min(count, first + grain));
}

}  // namespace cingulum
