#include "tract/field/given_peaks.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace cingulum {
namespace given_peaks_tests {

// Which of the peaks of one voxel stay; those that do are untouched.
std::vector<std::size_t> kept(const std::vector<float>& peaks, const PeakSelection& selection) {
  std::vector<float> values = peaks;
  keep_peaks(values, peaks.size() / 3, selection);
  std::vector<std::size_t> stay;
  for (std::size_t i = 0; i < peaks.size(); i += 3) {
    if (values[i] == 0 && values[i + 1] == 0 && values[i + 2] == 0) continue;
    EXPECT_TRUE(std::equal(values.begin() + static_cast<std::ptrdiff_t>(i),
                           values.begin() + static_cast<std::ptrdiff_t>(i) + 3,
                           peaks.begin() + static_cast<std::ptrdiff_t>(i)));
    stay.push_back(i / 3);
  }
  return stay;
}

using Places = std::vector<std::size_t>;

// Along z 0.5, along x 2, along y 1, and 0.25 between x and y.
const std::vector<float> four = {0, 0, 0.5f, -2, 0, 0, 0, 1, 0, 0.1767767f, 0.1767767f, 0};

TEST(given_peaks, a_rule_of_zero_does_nothing) {
  EXPECT_EQ(kept(four, {}), (Places{0, 1, 2, 3}));
}

TEST(given_peaks, the_relative_threshold_is_of_the_longest_and_equal_stays) {
  EXPECT_EQ(kept(four, {.relative_threshold = 0.25}), (Places{0, 1, 2}));
  EXPECT_EQ(kept(four, {.relative_threshold = 0.26}), (Places{1, 2}));
  EXPECT_EQ(kept(four, {.relative_threshold = 1}), (Places{1}));
}

TEST(given_peaks, the_absolute_threshold_is_a_length_and_may_leave_none) {
  EXPECT_EQ(kept(four, {.absolute_threshold = 0.5}), (Places{0, 1, 2}));
  EXPECT_EQ(kept(four, {.relative_threshold = 0.1, .absolute_threshold = 0.75}), (Places{1, 2}));
  EXPECT_EQ(kept(four, {.absolute_threshold = 3}), Places{});
}

TEST(given_peaks, the_longer_of_two_that_are_near_stays_either_way_round) {
  EXPECT_EQ(kept(four, {.min_separation_deg = 44}), (Places{0, 1, 2, 3}));
  EXPECT_EQ(kept(four, {.min_separation_deg = 46}), (Places{0, 1, 2}));
  const std::vector<float> opposite = {1, 0, 0, -0.5f, -0.2f, 0};
  EXPECT_EQ(kept(opposite, {.min_separation_deg = 30}), (Places{0}));
  // A peak that went keeps nobody away: the third is 27 degrees from it, and 72 from the first.
  const std::vector<float> near = {1, 0, 0, 0.2f, 0.2f, 0, 0.05f, 0.15f, 0};
  EXPECT_EQ(kept(near, {.min_separation_deg = 50}), (Places{0, 2}));
}

TEST(given_peaks, every_voxel_has_a_longest_of_its_own_and_what_is_not_finite_goes) {
  std::vector<float> values = {1, 0, 0, 0, 0.1f, 0, 0.1f, 0, 0, 0, 0, 0.1f};
  keep_peaks(values, 2, {.relative_threshold = 0.5});
  EXPECT_EQ(values, (std::vector<float>{1, 0, 0, 0, 0, 0, 0.1f, 0, 0, 0, 0, 0.1f}));
  std::vector<float> odd = {std::numeric_limits<float>::infinity(), 0, 0, 0.5f, 0, 0};
  keep_peaks(odd, 2, {.relative_threshold = 0.5});
  EXPECT_EQ(odd, (std::vector<float>{0, 0, 0, 0.5f, 0, 0}));
}

}  // namespace given_peaks_tests
}  // namespace cingulum
