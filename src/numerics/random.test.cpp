#include "numerics/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace cingulum::numerics {
namespace {

constexpr DrawCounter example{
    .index = 7, .purpose = DrawPurpose::step, .initial_direction = 3, .half = 1, .step = 41, .attempt = 5};

TEST(Random, counter_words_are_laid_out_as_the_contract_says) {
  const PhiloxBlock words = counter_words(example, 9);
  EXPECT_EQ(words.word[0], 7u);
  EXPECT_EQ(words.word[1], 0x02000007u);
  EXPECT_EQ(words.word[2], 41u);
  EXPECT_EQ(words.word[3], 0x00050009u);
}

TEST(Random, purposes_have_the_numbers_of_the_contract) {
  EXPECT_EQ(static_cast<int>(DrawPurpose::seed_position), 0);
  EXPECT_EQ(static_cast<int>(DrawPurpose::initial_direction), 1);
  EXPECT_EQ(static_cast<int>(DrawPurpose::step), 2);
  EXPECT_EQ(static_cast<int>(DrawPurpose::phantom_noise), 3);
  EXPECT_EQ(static_cast<int>(DrawPurpose::score), 4);
  EXPECT_EQ(static_cast<int>(DrawPurpose::shuffle), 5);
  EXPECT_EQ(static_cast<int>(DrawPurpose::oct_texture), 6);
  EXPECT_EQ(static_cast<int>(DrawPurpose::oct_speckle), 7);
  EXPECT_EQ(static_cast<int>(DrawPurpose::oct_placement), 8);
  EXPECT_EQ(static_cast<int>(DrawPurpose::first_free), 128);
}

TEST(Random, draw_d_is_word_d_mod_4_of_block_d_div_4) {
  const PhiloxKey key = philox_key(1234567890123u);
  for (std::uint32_t draw = 0; draw < 40; ++draw) {
    const PhiloxBlock block = philox4x32_10(counter_words(example, draw / 4), key);
    EXPECT_EQ(random_word(key, example, draw), block.word[draw % 4]);
  }
}

TEST(Random, uniforms_are_multiples_of_two_to_minus_24_below_one) {
  EXPECT_EQ(uniform_from_word(0xffu), 0.0f);
  EXPECT_EQ(uniform_from_word(0x100u), 0x1p-24f);
  EXPECT_EQ(uniform_from_word(0xffffffffu), 0x1.fffffep-1f);
  EXPECT_EQ(uniform64_from_word(0xffffffffu), 0x1.fffffep-1);
}

TEST(Random, integers_below_n_fill_their_range_evenly) {
  EXPECT_EQ(integer_from_word(0xffffffffu, 7u), 6u);
  EXPECT_EQ(integer_from_word(0u, 7u), 0u);
  constexpr std::uint32_t n = 10;
  constexpr int draws = 100000;
  std::vector<int> count(n);
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    DrawCounter counter = example;
    counter.index = draw / 40000;
    ++count[integer_from_word(random_word(philox_key(1), counter, draw % 40000), n)];
  }
  // Chi-square with 9 degrees of freedom; 27.9 is passed with probability 0.001 (the seed is fixed).
  double chi_square = 0;
  for (const int c : count) chi_square += (c - draws / 10.0) * (c - draws / 10.0) / (draws / 10.0);
  EXPECT_LT(chi_square, 27.9);
}

TEST(Random, normal_variates_follow_the_box_muller_formula) {
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const PhiloxBlock block = random_block(philox_key(99), example, i);
    const double u1 = ((block.word[0] >> 8) + 1.0) / 16777216.0;
    const double u2 = (block.word[1] >> 8) / 16777216.0;
    const double radius = std::sqrt(-2 * std::log(u1));
    const double first = radius * std::cos(2 * M_PI * u2);
    const double second = radius * std::sin(2 * M_PI * u2);
    const NormalPair<float> single = normals_from_words(block.word[0], block.word[1]);
    const NormalPair<double> wide = normals64_from_words(block.word[0], block.word[1]);
    ASSERT_NEAR(single.first, first, 4e-6);
    ASSERT_NEAR(single.second, second, 4e-6);
    ASSERT_NEAR(wide.first, first, 1e-14);
    ASSERT_NEAR(wide.second, second, 1e-14);
  }
}

TEST(Random, normal_variates_have_the_moments_of_the_normal_distribution) {
  double sum = 0, square = 0, cube = 0, fourth = 0;
  constexpr int pairs = 200000;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    DrawCounter counter = example;
    counter.index = i;
    const PhiloxBlock block = random_block(philox_key(5), counter, 0);
    const NormalPair<float> pair = normals_from_words(block.word[0], block.word[1]);
    for (const double x : {static_cast<double>(pair.first), static_cast<double>(pair.second)}) {
      sum += x;
      square += x * x;
      cube += x * x * x;
      fourth += x * x * x * x;
    }
  }
  constexpr double n = 2.0 * pairs;
  // Four standard errors of each moment.
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(cube / n, 0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(fourth / n, 3, 4 * std::sqrt(96 / n));
}

TEST(Random, the_extreme_words_give_finite_normal_variates) {
  const NormalPair<float> widest = normals_from_words(0u, 0u);
  EXPECT_NEAR(widest.first, std::sqrt(48 * std::log(2.0)), 1e-6);
  EXPECT_EQ(widest.second, 0.0f);
  const NormalPair<float> narrowest = normals_from_words(0xffffffffu, 0xffffffffu);
  EXPECT_EQ(narrowest.first, 0.0f);
  EXPECT_EQ(narrowest.second, 0.0f);
}

// The definition of the contract, written with 64-bit products and no high words.
std::uint64_t pick_by_definition(PhiloxKey key, std::uint32_t gradient, std::uint64_t count) {
  const std::uint32_t lane = gradient % 32, row = gradient / 32;
  const PhiloxBlock x = philox4x32_10(counter_words(example, lane + 32 * (row / 5)), key);
  const std::uint32_t i = row % 5;
  if (i < 4) return ((x.word[i] >> 8) * count) >> 24;
  std::uint64_t joined = 0;
  for (const std::uint32_t word : x.word) joined = joined * 256 + word % 256;
  return (joined * count) >> 32;
}

TEST(Random, bootstrap_picks_follow_the_definition_for_any_number_of_gradients) {
  const PhiloxKey key = philox_key(0xfeedfacecafebeefu);
  for (const std::uint32_t count : {7u, 64u, 150u, 256u, 257u, 300u, 1000u}) {
    std::set<std::uint32_t> seen;
    for (std::uint32_t gradient = 0; gradient < count; ++gradient) {
      const std::uint32_t pick = bootstrap_pick_of_gradient(key, example, gradient, count);
      ASSERT_EQ(pick, pick_by_definition(key, gradient, count)) << gradient << " of " << count;
      ASSERT_LT(pick, count);
      seen.insert(pick);
    }
    EXPECT_GT(seen.size(), count / 2);
  }
}

TEST(Random, a_bootstrap_pick_never_reaches_the_count) {
  const PhiloxBlock ones{{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}};
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(bootstrap_pick(ones, i, 300u), 299u);
}

}  // namespace
}  // namespace cingulum::numerics
