// The range in which most values of an image lie, for the window that a viewer begins with (OME-Zarr's omero): exact
// percentiles in bounded memory. Values become whole numbers of the same order, of which 16 bits are counted in each
// pass over the elements: one pass for 8 and 16 bits, two for 32, four for 64. Counts are whole numbers, so that the
// result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <optional>

#include "base/cancel.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "zarr/element_source.hpp"

namespace cingulum::zarr {

struct ValueWindow {
  double smallest = 0, largest = 0;
  double low = 0, high = 0;  // at the two shares asked for
};

struct ValueWindowOptions {
  double low_share = 0.01;
  double high_share = 0.999;
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  CancelToken cancel = {};
  Progress* progress = nullptr;  // advanced by elements, in each pass
};

// Passes over the elements that find_value_window makes; 0 where values of this type have no order.
[[nodiscard]] int value_window_passes(ElementType type);

// Among the finite values the one at index floor(share * (count - 1)) in ascending order. Absent where no value is
// finite, or values have no order (complex numbers). `tile` is what is read at once by each thread.
[[nodiscard]] Result<std::optional<ValueWindow>> find_value_window(const ElementSource& source, const Shape& tile,
                                                                   const ValueWindowOptions& options);

}  // namespace cingulum::zarr
