// The smallest signal that models take: smaller ones, noise around zero, count as this before logarithms and quotients.
// Given in units of the data, or as a share of the median b0, which means the same for a series in any units. Asked for
// by `cingulum fit` and `track`, settled once the signals are read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/series/dwi_signals.hpp"

namespace cingulum {

// 1/1000 of the median b0: what cuslines' 1 is in data whose b0 lies around 1000.
struct SignalFloor {
  double value = 0.001;
  bool share_of_b0 = true;

  friend bool operator==(const SignalFloor&, const SignalFloor&) = default;
};

// "1" in units of the data, "0.1%" of the median b0.
[[nodiscard]] Result<SignalFloor> parse_signal_floor(std::string_view text);
[[nodiscard]] std::string signal_floor_text(const SignalFloor& floor);

// The volumes whose median a share is of: the b0 volumes, or those of the lowest b-value where there is none, since a
// tensor can be fitted without. Places in the list.
[[nodiscard]] std::vector<std::uint32_t> volumes_for_floor(std::span<const double> b_values, double b0_threshold);

// In units of the data. The median is that of the mean b0 of each voxel, over the voxels where it is above zero; `b0`
// are places in the records. Fails where a share is asked for and there is no such voxel or volume.
[[nodiscard]] Result<double> settle_signal_floor(const SignalFloor& floor, const DwiSignals& signals,
                                                 std::span<const std::uint32_t> b0, ThreadPool* pool = nullptr);

// What there is to say where more than a hundredth of the signals lies below the floor; else empty.
[[nodiscard]] std::string warning_of_raised_signals(const DwiSignals& signals, double floor,
                                                    ThreadPool* pool = nullptr);

}  // namespace cingulum
