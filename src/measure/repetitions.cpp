#include "measure/repetitions.hpp"

#include <algorithm>
#include <ctime>

namespace cingulum::measure {

double value_at(std::span<const double> sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {value_at(values, 0.5), value_at(values, 0.1), value_at(values, 0.9), values.size()};
}

Percentiles percentiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {value_at(values, 0.5), value_at(values, 0.99), value_at(values, 0.999),
          values.front(),        values.back(),          values.size()};
}

double processor_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Spread as_rate(const Spread& seconds, std::uint64_t bytes) {
  const auto rate = [&](double s) { return static_cast<double>(bytes) / s * 1e-9; };
  return {rate(seconds.median), rate(seconds.high), rate(seconds.low), seconds.repetitions};
}

}  // namespace cingulum::measure
