// A histogram of latencies: log-linear buckets, 16 to the octave (6 % wide), 0 ns to 2^40 ns. One thread records, any
// thread reads a snapshot; counters are relaxed words, no lock.
#pragma once

#include <array>
#include <cstdint>

#include "ring/queue/atomics.hpp"

namespace cingulum::ring {

struct LatencySummary {
  std::uint64_t count = 0;
  std::uint64_t min_ns = 0;
  std::uint64_t mean_ns = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t p999_ns = 0;
  std::uint64_t max_ns = 0;
};

class LatencyHistogram {
 public:
  static constexpr std::uint32_t sub_buckets = 16;
  static constexpr std::uint32_t bucket_count = 16 + 37 * sub_buckets;

  [[nodiscard]] static std::uint32_t bucket_of(std::uint64_t ns);
  // The largest value of a bucket.
  [[nodiscard]] static std::uint64_t upper_bound_ns(std::uint32_t bucket);

  void record(std::uint64_t ns);
  [[nodiscard]] LatencySummary summary() const;
  [[nodiscard]] std::array<std::uint64_t, bucket_count> buckets() const;

 private:
  std::array<std::uint64_t, bucket_count> counts_ = {};
  std::uint64_t total_ns_ = 0;
  std::uint64_t min_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace cingulum::ring
