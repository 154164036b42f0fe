#include "oct/placement/image_filters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

namespace cingulum::oct {
namespace image_filters_tests {

std::vector<double> sorted(std::vector<double> values) {
  std::ranges::sort(values);
  return values;
}

// Numbers of many sizes: beyond some thousands order statistics are found by counting.
TEST(OctImageFilters, percentiles_and_medians_are_those_of_sorted_values) {
  std::mt19937_64 random(11);
  for (const std::size_t count : {1U, 2U, 7U, 500U, 16383U, 16384U, 16385U, 60001U}) {
    std::normal_distribution<double> bell(5, 2);
    std::vector<std::vector<double>> draws(5, std::vector<double>(count));
    for (double& value : draws[0]) value = bell(random);
    for (double& value : draws[1]) value = static_cast<double>(random() % 3);  // ties
    std::ranges::fill(draws[2], -4.25);
    // Nearly all in one bin.
    for (std::size_t i = 0; i < count; ++i) draws[3][i] = i == count / 2 ? 1e12 : bell(random);
    // A span of which no number of bins is a number.
    for (std::size_t i = 0; i < count; ++i) draws[4][i] = i % 2 == 0 ? 0 : 5e-324;
    for (const std::vector<double>& values : draws) {
      const std::vector<double> in_order = sorted(values);
      const std::size_t half = count / 2;
      EXPECT_EQ(median(values), count % 2 == 1 ? in_order[half] : 0.5 * (in_order[half] + in_order[half - 1])) << count;
      const std::vector<double> shares = {0, 0.05, 0.5, 0.95, 1};
      const std::vector<double> found = percentiles(values, shares);
      for (std::size_t k = 0; k < shares.size(); ++k) {
        const double at = shares[k] * static_cast<double>(count - 1);
        const auto low = static_cast<std::size_t>(at);
        const double above = in_order[std::min(low + 1, count - 1)];
        EXPECT_EQ(found[k], in_order[low] + (at - static_cast<double>(low)) * (above - in_order[low])) << count;
        EXPECT_EQ(percentile(values, shares[k]), found[k]);
      }
    }
  }
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

// The windows written out, pixel by pixel.
TEST(OctImageFilters, a_smoothed_image_is_the_window_across_and_along) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> even(0, 1);
  const auto pool = ThreadPool::create(3);
  for (const auto& [rows, columns, sigma] : std::vector<std::tuple<std::size_t, std::size_t, double>>{
           {37, 53, 1.5}, {5, 4, 2.0}, {1, 19, 0.5}, {40, 8, 1.0}, {3, 3, 0.1}}) {
    HostImage image(rows, columns);
    for (double& value : image.values) value = even(random);
    const int radius = static_cast<int>(4 * sigma + 0.5);
    std::vector<double> taps;
    double sum = 0;
    for (int i = -radius; i <= radius; ++i) {
      taps.push_back(std::exp(-0.5 * (i * i) / (sigma * sigma)));
      sum += taps.back();
    }
    const HostImage smooth = smooth_image(image, sigma);
    EXPECT_EQ(smooth_image(image, sigma, pool->get()).values, smooth.values);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        double expected = 0;
        for (int i = -radius; i <= radius; ++i) {
          for (int j = -radius; j <= radius; ++j) {
            expected += taps[static_cast<std::size_t>(i + radius)] * taps[static_cast<std::size_t>(j + radius)] / sum /
                        sum *
                        image.at(mirrored_index(static_cast<std::ptrdiff_t>(r) + i, rows),
                                 mirrored_index(static_cast<std::ptrdiff_t>(c) + j, columns));
          }
        }
        ASSERT_NEAR(smooth.at(r, c), expected, 1e-12) << r << " " << c << " " << sigma;
      }
    }
  }
}

}  // namespace image_filters_tests
}  // namespace cingulum::oct
