// What simulated tiles are made of on the CPU: draws and exponentials of many numbers at once.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "numerics/elementary.hpp"
#include "numerics/pack.hpp"
#include "oct/cpu/draw_rows.hpp"
#include "oct/cpu/pack_exponential.hpp"

namespace cingulum::oct {
namespace simulated_rows_tests {

std::vector<numerics::SimdLevel> levels_here() {
  std::vector<numerics::SimdLevel> levels;
  for (const auto level : {numerics::SimdLevel::baseline, numerics::SimdLevel::avx2, numerics::SimdLevel::avx512}) {
    if (level <= numerics::best_simd_level()) levels.push_back(level);
  }
  return levels;
}

TEST(OctDraws, blocks_of_many_counters_are_those_of_each_on_every_instruction_set) {
  const numerics::PhiloxKey key = numerics::philox_key(0xfedcba9876543210u);
  const numerics::DrawCounter others{77, numerics::DrawPurpose::oct_speckle, 5, 1, 0xfffffff0u, 3};
  std::array<std::uint32_t, draws_at_once> index{};
  for (std::uint32_t i = 0; i < index.size(); ++i) index[i] = i * 0x9e3779b9u + 0xffffffe0u;
  for (const numerics::SimdLevel level : levels_here()) {
    DrawnWords drawn;
    draw_blocks(key, index.data(), others, 7, drawn, level);
    for (std::size_t i = 0; i < index.size(); ++i) {
      numerics::DrawCounter counter = others;
      counter.index = index[i];
      const numerics::PhiloxBlock expected = numerics::random_block(key, counter, 7);
      for (std::size_t w = 0; w < 4; ++w) {
        ASSERT_EQ(drawn.word[w][i], expected.word[w]) << "level " << static_cast<int>(level) << ", " << i;
      }
    }
  }
}

TEST(OctDraws, exponentials_of_a_pack_have_the_bits_of_each_number) {
  std::vector<float> arguments = {0.0f, -0.0f, 88.72f, 88.73f, -87.33f, -87.34f, 128.0f, -128.0f, 1e30f, -1e30f};
  // Every kind of number, infinities and NaN among them.
  for (std::uint64_t bits = 0; bits <= UINT32_MAX; bits += 99991) {
    arguments.push_back(numerics::bits_float(static_cast<std::uint32_t>(bits)));
  }
  for (float x = -120.0f; x < 120.0f; x += 0.00731f) arguments.push_back(x);
  arguments.resize(arguments.size() / 16 * 16);
  for (const numerics::SimdLevel level : levels_here()) {
    std::vector<float> results(arguments.size());
    numerics::with_packs<float>(
        [&]<class Number>() {
          for (std::size_t i = 0; i < arguments.size(); i += static_cast<std::size_t>(Number::width)) {
            numerics::exponential(Number::load(&arguments[i])).store(&results[i]);
          }
        },
        level);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      ASSERT_EQ(numerics::float_bits(results[i]), numerics::float_bits(numerics::exponential(arguments[i])))
          << "level " << static_cast<int>(level) << ", " << arguments[i];
    }
  }
}

}  // namespace simulated_rows_tests
}  // namespace cingulum::oct
