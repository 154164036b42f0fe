#include "dmri/series/signal_floor.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/quantity.hpp"
#include "base/shared_pieces.hpp"

namespace cingulum {
namespace {

constexpr double largest_floor = 1e30;
constexpr double share_worth_a_warning = 0.01;

constexpr std::size_t voxels_at_once = 4096;

}  // namespace

Result<SignalFloor> parse_signal_floor(std::string_view text) {
  std::string_view number = trim(text);
  SignalFloor floor{.value = 0, .share_of_b0 = number.ends_with('%')};
  if (floor.share_of_b0) number.remove_suffix(1);
  const Result<double> value = parse_real(trim(number));
  const double largest = floor.share_of_b0 ? 100 : largest_floor;
  if (!value || !(*value > 0) || *value > largest) {
    return fail_argument("min_signal",
                         "{} '{}': accepted is a number above 0 in units of the data, or a share of the median b0 such "
                         "as 0.1%",
                         argument_name("min_signal"), text);
  }
  floor.value = floor.share_of_b0 ? *value / 100 : *value;
  return floor;
}

std::string signal_floor_text(const SignalFloor& floor) {
  return floor.share_of_b0 ? fmt::format("{}%", floor.value * 100) : fmt::format("{}", floor.value);
}

std::vector<std::uint32_t> volumes_for_floor(std::span<const double> b_values, double b0_threshold) {
  std::vector<std::uint32_t> volumes;
  if (b_values.empty()) return volumes;
  const double highest = std::max(b0_threshold, *std::min_element(b_values.begin(), b_values.end()));
  for (std::size_t i = 0; i < b_values.size(); ++i) {
    if (b_values[i] <= highest) volumes.push_back(static_cast<std::uint32_t>(i));
  }
  return volumes;
}

Result<double> settle_signal_floor(const SignalFloor& floor, const DwiSignals& signals,
                                   std::span<const std::uint32_t> b0, ThreadPool* pool) {
  if (!floor.share_of_b0) return floor.value;
  std::vector<double> means(b0.empty() ? 0 : signals.voxels.size());
  share_pieces(pool, means.size(), voxels_at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t voxel = begin; voxel < end; ++voxel) {
      const std::span<const float> record = signals.record(voxel);
      double sum = 0;
      for (const std::uint32_t volume : b0) sum += static_cast<double>(record[volume]);
      means[voxel] = sum / static_cast<double>(b0.size());
    }
  });
  std::erase_if(means, [](double mean) { return !(mean > 0); });
  if (means.empty()) {
    return fail_argument(
        "min_signal",
        "{} {} is a share of the median b0, and no voxel of the mask has a b0 signal above zero; give it "
        "in units of the data",
        argument_name("min_signal"), signal_floor_text(floor));
  }
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  return floor.value * *middle;
}

std::string warning_of_raised_signals(const DwiSignals& signals, double floor, ThreadPool* pool) {
  std::atomic<std::size_t> raised_by_all = 0;
  share_pieces(pool, signals.voxels.size(), voxels_at_once, [&](std::size_t begin, std::size_t end) {
    const auto piece = std::span(signals.values).subspan(begin * signals.volumes, (end - begin) * signals.volumes);
    raised_by_all += static_cast<std::size_t>(
        std::count_if(piece.begin(), piece.end(), [floor](float value) { return static_cast<double>(value) < floor; }));
  });
  const std::size_t raised = raised_by_all;
  const double share =
      static_cast<double>(raised) / static_cast<double>(std::max<std::size_t>(1, signals.values.size()));
  if (!(share > share_worth_a_warning)) return {};
  return fmt::format(
      "{} signals, {:.1f} % of those in the mask, lie below {:.4g} and are raised to it: mind the mask, "
      "the units of the series and {}",
      format_count(raised), 100 * share, floor, argument_name("min_signal"));
}

}  // namespace cingulum
