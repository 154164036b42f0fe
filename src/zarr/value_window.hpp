// The range in which most values of an image lie, for the window that a viewer begins with (OME-Zarr's omero): exact
// percentiles in bounded memory. Values become whole numbers of the same order, of which 16 bits are counted in each
// pass over the elements: one pass for 8 and 16 bits, two for 32, four for 64. Counts are whole numbers, so that the
// result does not depend on the order of elements or the number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

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

// Passes over the elements that a search makes; 0 where values of this type have no order (complex numbers).
[[nodiscard]] int value_window_passes(ElementType type);

// Passes over elements that come in any order and any number of pieces. Among the finite values it finds those at the
// index floor(share * (count - 1)) in ascending order. one caller at a time, but for count()
class ValueWindowSearch {
 public:
  // The type has an order.
  explicit ValueWindowSearch(ElementType type, double low_share = 0.01, double high_share = 0.999);

  struct Counts {
    std::array<std::vector<std::uint64_t>, 2> digits;  // the second while the two searches have gone apart
    std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t largest = 0;
    std::uint64_t finite = 0;
  };
  [[nodiscard]] Counts no_counts() const;
  // any thread
  void count(std::span<const std::byte> elements, Counts& counts) const;
  void add(const Counts& counts);
  // All elements were counted: whether another pass is needed.
  [[nodiscard]] bool end_pass();
  // After the last pass; absent where no value is finite.
  [[nodiscard]] std::optional<ValueWindow> found() const;

 private:
  // The value looked for at one share: the digits that are known, and its place among the values that have them.
  struct Search {
    double share = 0;
    std::uint64_t prefix = 0;
    std::uint64_t rank = 0;
  };
  [[nodiscard]] bool apart() const { return searches_[0].prefix != searches_[1].prefix; }
  [[nodiscard]] unsigned shift() const;
  [[nodiscard]] bool key_of(const std::byte* element, std::uint64_t& key) const;
  [[nodiscard]] double value_of(std::uint64_t key) const;

  ElementType type_;
  std::uint64_t sign_;
  int passes_;
  int pass_ = 0;
  std::array<Search, 2> searches_;
  Counts counts_;  // of this pass
  Counts first_;   // extremes and number, of the first pass
};

struct ValueWindowOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  CancelToken cancel = {};
  Progress* progress = nullptr;  // advanced by elements, in each pass
};
// The window of all elements of a source; absent also where values have no order. `tile` is what a thread reads at
// once.
[[nodiscard]] Result<std::optional<ValueWindow>> find_value_window(const ElementSource& source, const Shape& tile,
                                                                   const ValueWindowOptions& options);

}  // namespace cingulum::zarr
