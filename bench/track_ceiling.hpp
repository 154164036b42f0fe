// What bounds tracking on this machine: how fast all threads read the field from memory in order, how many operations
// they reach on registers, and what a step needs of both.
#pragma once

#include <algorithm>

#include "base/thread_pool.hpp"
#include "tract/field/field.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum::bench {

// Rates of all threads, from processor time.
[[nodiscard]] double read_bytes_per_second(const Field& field, ThreadPool& pool);
[[nodiscard]] double operations_per_second(int threads);

// The mean number of stored records that a point's eight corners have and the eight of the point before did not: what a
// step must bring from memory if nothing but the last step's records is still at hand.
[[nodiscard]] double new_records_per_point(const Field& field, const StreamlineBatch& batch);

}  // namespace cingulum::bench
