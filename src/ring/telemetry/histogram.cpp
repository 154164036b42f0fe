#include "ring/telemetry/histogram.hpp"

#include <algorithm>
#include <bit>

namespace cingulum::ring {

// Values below 16 have a bucket each; above, an octave [2^e, 2^(e+1)) has 16 of equal width.
std::uint32_t LatencyHistogram::bucket_of(std::uint64_t ns) {
  if (ns < sub_buckets) return static_cast<std::uint32_t>(ns);
  const auto exponent = static_cast<std::uint32_t>(std::bit_width(ns)) - 1;
  const auto within = static_cast<std::uint32_t>((ns >> (exponent - 4)) & (sub_buckets - 1));
  return std::min((exponent - 3) * sub_buckets + within, bucket_count - 1);
}

std::uint64_t LatencyHistogram::upper_bound_ns(std::uint32_t bucket) {
  if (bucket < sub_buckets) return bucket;
  const std::uint32_t exponent = bucket / sub_buckets + 3;
  const std::uint64_t within = bucket % sub_buckets;
  return ((sub_buckets + within + 1) << (exponent - 4)) - 1;
}

void LatencyHistogram::record(std::uint64_t ns) {
  std::uint64_t& count = counts_[bucket_of(ns)];
  if (max_ns_ == 0 || ns < min_ns_) HostAtomics::store_relaxed(min_ns_, ns);
  if (ns >= max_ns_) HostAtomics::store_relaxed(max_ns_, std::max<std::uint64_t>(ns, 1));
  HostAtomics::store_relaxed(total_ns_, total_ns_ + ns);
  HostAtomics::store_relaxed(count, count + 1);
}

std::array<std::uint64_t, LatencyHistogram::bucket_count> LatencyHistogram::buckets() const {
  std::array<std::uint64_t, bucket_count> counts = {};
  for (std::uint32_t i = 0; i < bucket_count; ++i) counts[i] = HostAtomics::load_relaxed(counts_[i]);
  return counts;
}

LatencySummary LatencyHistogram::summary() const {
  const auto counts = buckets();
  LatencySummary summary;
  for (const std::uint64_t count : counts) summary.count += count;
  if (summary.count == 0) return summary;
  summary.min_ns = HostAtomics::load_relaxed(min_ns_);
  summary.max_ns = HostAtomics::load_relaxed(max_ns_);
  summary.mean_ns = HostAtomics::load_relaxed(total_ns_) / summary.count;
  // The smallest bucket with at least this share of the values at or below it.
  const auto at = [&](double share) {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(summary.count - 1)) + 1;
    std::uint64_t seen = 0;
    for (std::uint32_t i = 0; i < bucket_count; ++i) {
      seen += counts[i];
      if (seen >= wanted) return std::min(upper_bound_ns(i), summary.max_ns);
    }
    return summary.max_ns;
  };
  summary.p50_ns = at(0.5);
  summary.p99_ns = at(0.99);
  summary.p999_ns = at(0.999);
  return summary;
}

}  // namespace cingulum::ring
