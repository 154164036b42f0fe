// A loop over indices that a pool shares where there is one. Bodies touch what belongs to their index alone.
#pragma once

#include <cstddef>

#include "base/thread_pool.hpp"

namespace cingulum::oct {

template <class Body>
void for_each_index(ThreadPool* pool, std::size_t count, const Body& body) {
  const auto piece = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  };
  if (pool != nullptr) {
    pool->parallel_for(count, 1, piece);
  } else {
    piece(0, count);
  }
}

}  // namespace cingulum::oct
