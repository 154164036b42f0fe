// Used by tests alone: how far a computed number lies from the true one, in units of the last place of the true one,
// and the search for the largest such error over many arguments on all cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace cingulum::numerics::testing {

// `Truth` is wider than `Computed`. True values below the smallest normal number count in that number's unit.
template <class Computed, class Truth>
double error_in_ulp(Computed computed, Truth truth) {
  const int exponent = std::max(std::ilogb(truth), std::numeric_limits<Computed>::min_exponent - 1);
  const Truth unit = std::ldexp(Truth(1), exponent - (std::numeric_limits<Computed>::digits - 1));
  return static_cast<double>(std::abs((static_cast<Truth>(computed) - truth) / unit));
}

template <class Argument>
struct LargestError {
  double ulp = 0;
  Argument argument = 0;
};

// `argument_of(i)` and `error_of(argument)` for i = 0, stride, 2 stride, ... below `end`.
template <class ArgumentOf, class ErrorOf>
auto largest_error(std::uint64_t end, std::uint64_t stride, ArgumentOf argument_of, ErrorOf error_of) {
  using Argument = decltype(argument_of(std::uint64_t{}));
  const std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<LargestError<Argument>> found(threads);
  std::vector<std::thread> workers;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      LargestError<Argument> largest;
      for (std::uint64_t i = thread * stride; i < end; i += threads * stride) {
        const Argument argument = argument_of(i);
        const double ulp = error_of(argument);
        if (!(ulp <= largest.ulp)) largest = {ulp, argument};
      }
      found[thread] = largest;
    });
  }
  for (std::thread& worker : workers) worker.join();
  return *std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.ulp < b.ulp; });
}

}  // namespace cingulum::numerics::testing
