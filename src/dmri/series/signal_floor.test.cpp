#include "dmri/series/signal_floor.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace signal_floor_tests {

// Two b0 volumes and a weighted one; the mean b0 of the voxels is 100, 0, 300, 500.
DwiSignals four_voxels() {
  DwiSignals signals;
  signals.voxels = {0, 1, 2, 3};
  signals.volumes = 3;
  for (const float value : {90.0f, 110.0f, 5.0f, 0.0f, 0.0f, 0.0f, 300.0f, 300.0f, 0.1f, 400.0f, 600.0f, 70.0f}) {
    signals.values.push_back(value);
  }
  return signals;
}

TEST(signal_floor, text_is_a_share_or_a_number_in_units_of_the_data) {
  EXPECT_EQ(parse_signal_floor("0.1%").value(), SignalFloor{});
  EXPECT_EQ(parse_signal_floor(" 2 % ").value(), (SignalFloor{0.02, true}));
  EXPECT_EQ(parse_signal_floor("1").value(), (SignalFloor{1, false}));
  EXPECT_EQ(parse_signal_floor("1e-5").value(), (SignalFloor{1e-5, false}));
  for (const char* text : {"", "%", "0", "-1", "0%", "100.5%", "1e31", "nan", "1 2"}) {
    const auto refused = parse_signal_floor(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().argument(), "min_signal");
  }
  EXPECT_EQ(signal_floor_text({0.001, true}), "0.1%");
  EXPECT_EQ(signal_floor_text({0.001, false}), "0.001");
}

TEST(signal_floor, a_share_is_of_the_median_over_voxels_with_signal) {
  const DwiSignals signals = four_voxels();
  const std::vector<std::uint32_t> b0 = {0, 1};
  EXPECT_DOUBLE_EQ(settle_signal_floor({0.5, true}, signals, b0).value(), 150);  // of 100, 300, 500
  EXPECT_DOUBLE_EQ(settle_signal_floor({0.5, false}, signals, b0).value(), 0.5);
  const std::vector<std::uint32_t> first = {0};
  EXPECT_DOUBLE_EQ(settle_signal_floor({1, true}, signals, first).value(), 300);  // of 90, 300, 400
  EXPECT_FALSE(settle_signal_floor({1, true}, signals, {}));
  DwiSignals dark = four_voxels();
  std::fill(dark.values.begin(), dark.values.end(), 0.0f);
  EXPECT_FALSE(settle_signal_floor({1, true}, dark, b0));
}

TEST(signal_floor, without_b0_the_lowest_b_value_takes_its_place) {
  const std::vector<double> some = {0, 1000, 40, 1000};
  EXPECT_EQ(volumes_for_floor(some, 50), (std::vector<std::uint32_t>{0, 2}));
  const std::vector<double> none = {2000, 1000, 1000, 3000};
  EXPECT_EQ(volumes_for_floor(none, 50), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(volumes_for_floor({}, 50).empty());
}

TEST(signal_floor, a_warning_counts_what_is_below_it) {
  const std::string said = warning_of_raised_signals(four_voxels(), 5);  // 5 itself is not raised
  EXPECT_NE(said.find("4 signals, 33.3 % of those in the mask, lie below 5 "), std::string::npos) << said;
  DwiSignals many;
  many.voxels.assign(100, 0);
  many.volumes = 10;
  many.values.assign(1000, 1.0f);
  for (std::size_t i = 0; i < 10; ++i) many.values[i] = 0;
  EXPECT_EQ(warning_of_raised_signals(many, 0.5), "");  // one in a hundred
  many.values[10] = 0;
  EXPECT_NE(warning_of_raised_signals(many, 0.5), "");
}

}  // namespace signal_floor_tests
}  // namespace cingulum
