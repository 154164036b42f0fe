// How every bench measures: repetitions after a warm-up that does not count, in elapsed and in processor time, reported
// by their median and spread. Called by `cingulum bench`, `cingulum ring bench` and the programs of bench/; knows
// nothing of what is measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/elapsed.hpp"
#include "base/result.hpp"

namespace cingulum::measure {

// The value below which this share of the sorted values lies: the one at floor(share * (n - 1)). There must be one.
[[nodiscard]] double value_at(std::span<const double> sorted, double share);

struct Spread {
  double median = 0;
  double low = 0;   // 10th percentile
  double high = 0;  // 90th percentile
  std::size_t repetitions = 0;
};

// Zeros where there are no values.
[[nodiscard]] Spread spread_of(std::vector<double> values);

// Percentiles of many single events.
struct Percentiles {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double min = 0;
  double max = 0;
  std::size_t samples = 0;
};
[[nodiscard]] Percentiles percentiles_of(std::vector<double> values);

// The processor's time of all threads of this program.
[[nodiscard]] double processor_seconds();

// Each repetition by the clock and, since other programs may share the cores, by the processor's time of all threads.
struct Seconds {
  std::vector<double> elapsed;
  std::vector<double> processor;
};

// `body` is run `warm_up` times for nothing, then as often as is counted. One that returns a Status may fail: the
// measurement ends with its first failure.
template <class Body>
[[nodiscard]] auto measure_repetitions(std::int64_t warm_up, std::int64_t repetitions, Body&& body) {
  constexpr bool may_fail = !std::is_void_v<decltype(body())>;
  using Measured = std::conditional_t<may_fail, Result<Seconds>, Seconds>;
  Seconds seconds;
  for (std::int64_t i = -warm_up; i < repetitions; ++i) {
    const double processor = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    if constexpr (may_fail) {
      if (Status done = body(); !done) return Measured(tl::make_unexpected(std::move(done.error())));
    } else {
      body();
    }
    const double elapsed = seconds_since(start);
    if (i < 0) continue;
    seconds.elapsed.push_back(elapsed);
    seconds.processor.push_back(processor_seconds() - processor);
  }
  return Measured(std::move(seconds));
}

// Measures elapsed seconds alone.
template <class Body>
[[nodiscard]] Spread measure_seconds(std::int64_t warm_up, std::int64_t repetitions, Body&& body) {
  return spread_of(measure_repetitions(warm_up, repetitions, std::forward<Body>(body)).elapsed);
}

// A rate in GB/s from times: the fastest times are the highest rates.
[[nodiscard]] Spread as_rate(const Spread& seconds, std::uint64_t bytes);

}  // namespace cingulum::measure
