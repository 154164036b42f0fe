// The tests of lane sum, choices and mirror sum, written once and run for each kind of lanes that a host has:
// lanes_portable.test.cpp and lanes_avx2.test.cpp define TestedLanes and CGL_LANES_TEST(name) and include this. The
// truths are written from the contract, one lane after the other, without the primitives.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "numerics/choose.hpp"
#include "numerics/lane_elementary.hpp"
#include "numerics/lane_rotation.hpp"
#include "numerics/lane_sum.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/random.hpp"

namespace cingulum::numerics {
namespace {

using Slots = std::vector<float>;

std::uint32_t size_of(const Slots& slots) {
  return static_cast<std::uint32_t>(slots.size());
}

auto rows_of(const Slots& slots) {
  return [&slots](std::uint32_t row) { return TestedLanes::load_row(slots.data(), row, size_of(slots)); };
}

float lane_sum_by_definition(const Slots& slots) {
  float p[32];
  for (std::size_t l = 0; l < 32; ++l) {
    p[l] = l < slots.size() ? slots[l] : 0.0f;
    const std::size_t padded = (slots.size() + 31) / 32 * 32;
    for (std::size_t i = l + 32; i < padded; i += 32) p[l] = p[l] + (i < slots.size() ? slots[i] : 0.0f);
  }
  for (std::size_t s = 16; s > 0; s /= 2) {
    float next[32];
    for (std::size_t l = 0; l < 32; ++l) next[l] = p[l] + p[l ^ s];
    for (std::size_t l = 0; l < 32; ++l) p[l] = next[l];
  }
  return p[0];
}

std::uint32_t choose_by_definition(const Slots& slots, float u) {
  float t[32], x[32];
  for (std::size_t l = 0; l < 32; ++l) {
    t[l] = l < slots.size() ? slots[l] : 0.0f;
    for (std::size_t i = l + 32; i < slots.size(); i += 32) t[l] = t[l] + slots[i];
    x[l] = t[l];
  }
  for (std::size_t s = 1; s <= 16; s *= 2) {
    float old[32];
    for (std::size_t l = 0; l < 32; ++l) old[l] = x[l];
    for (std::size_t l = s; l < 32; ++l) x[l] = old[l - s] + old[l];
  }
  if (!(x[31] > 0)) return no_slot;
  const float threshold = u * x[31];
  std::optional<std::size_t> lane;
  for (std::size_t l = 0; l < 32 && !lane; ++l) {
    if (t[l] > 0 && x[l] > threshold) lane = l;
  }
  for (std::size_t l = 32; l > 0 && !lane; --l) {
    if (t[l - 1] > 0) lane = l - 1;
  }
  float reached = *lane == 0 ? 0.0f : x[*lane - 1];
  std::size_t last = 0;
  for (std::size_t i = *lane; i < slots.size(); i += 32) {
    reached = reached + slots[i];
    if (slots[i] > 0) last = i;
    if (slots[i] > 0 && reached > threshold) return static_cast<std::uint32_t>(i);
  }
  return static_cast<std::uint32_t>(last);
}

// Values of very different size, so that any other order of addition shows.
Slots rough_slots(std::size_t count, unsigned seed, double zeros) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  Slots slots(count);
  for (float& slot : slots) slot = unit(generator) < zeros ? 0.0f : static_cast<float>(std::exp(8 * unit(generator)));
  return slots;
}

constexpr std::size_t sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 100, 181, 321, 362, 384, 406, 501, 642, 700, 724};

CGL_LANES_TEST(sum_equals_the_definition_for_every_number_of_slots) {
  for (const std::size_t count : sizes) {
    Slots slots = rough_slots(count, static_cast<unsigned>(count), 0.1);
    for (std::size_t i = 0; i < count; i += 3) slots[i] = -slots[i];
    ASSERT_EQ(float_bits(lane_sum<TestedLanes>(size_of(slots), rows_of(slots))),
              float_bits(lane_sum_by_definition(slots)))
        << count;
  }
}

CGL_LANES_TEST(sum_of_nothing_is_positive_zero) {
  const Slots none;
  EXPECT_EQ(float_bits(lane_sum<TestedLanes>(0, rows_of(none))), 0u);
}

CGL_LANES_TEST(sum_keeps_the_sign_of_zero_as_the_definition_does) {
  for (const std::size_t count : {1u, 32u, 33u, 64u}) {
    const Slots slots(count, -0.0f);
    ASSERT_EQ(float_bits(lane_sum<TestedLanes>(size_of(slots), rows_of(slots))),
              float_bits(lane_sum_by_definition(slots)))
        << count;
  }
}

CGL_LANES_TEST(maximum_takes_the_lowest_slot_among_equals) {
  for (const std::size_t count : sizes) {
    Slots slots = rough_slots(count, 7, 0.0);
    for (float& slot : slots) slot = std::floor(slot / 500.0f);  // many ties
    std::uint32_t best = 0;
    for (std::uint32_t i = 0; i < count; ++i) best = slots[i] > slots[best] ? i : best;
    const SlotMaximum found = maximum<TestedLanes>(size_of(slots), rows_of(slots));
    ASSERT_EQ(found.slot, best) << count;
    ASSERT_EQ(found.value, slots[best]);
  }
}

CGL_LANES_TEST(maximum_of_negative_values_ignores_the_zeros_past_the_end) {
  const SlotMaximum found = maximum<TestedLanes>(40, rows_of(Slots(40, -2.0f)));
  EXPECT_EQ(found.slot, 0u);
  EXPECT_EQ(found.value, -2.0f);
}

CGL_LANES_TEST(maximum_skips_empty_slots_and_knows_when_all_are) {
  Slots slots(70, empty_slot_value);
  EXPECT_EQ(maximum<TestedLanes>(size_of(slots), rows_of(slots)).slot, no_slot);
  slots[69] = -1e30f;
  EXPECT_EQ(maximum<TestedLanes>(size_of(slots), rows_of(slots)).slot, 69u);
  EXPECT_EQ(maximum<TestedLanes>(0, rows_of(Slots{})).slot, no_slot);
}

// A field has nothing behind its last row.
CGL_LANES_TEST(maximum_asks_for_the_rows_that_there_are_and_no_more) {
  for (const std::size_t count : sizes) {
    const Slots slots(count, 1.0f);
    std::vector<std::uint32_t> asked;
    maximum<TestedLanes>(size_of(slots), [&](std::uint32_t row) {
      asked.push_back(row);
      return rows_of(slots)(row);
    });
    std::vector<std::uint32_t> rows((count + 31) / 32);
    for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
    EXPECT_EQ(asked, rows) << count;
  }
}

CGL_LANES_TEST(maximum_treats_both_zeros_as_equal) {
  Slots slots(64, -0.0f);
  slots[1] = 0.0f;
  const SlotMaximum found = maximum<TestedLanes>(size_of(slots), rows_of(slots));
  EXPECT_EQ(found.slot, 0u);
  EXPECT_EQ(float_bits(found.value), float_bits(-0.0f));
}

CGL_LANES_TEST(choice_equals_the_definition_for_many_weights_and_draws) {
  for (const std::size_t count : sizes) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Slots slots = rough_slots(count, seed, seed % 4 == 0 ? 0.9 : 0.3);
      for (const float u : {0.0f, 0x1p-24f, 0.1f, 0.25f, 0.5f, 0.75f, 0.999f, 0x1.fffffep-1f}) {
        ASSERT_EQ(choose_by_weight<TestedLanes>(size_of(slots), u, rows_of(slots)), choose_by_definition(slots, u))
            << count << " slots, seed " << seed << ", u " << u;
      }
    }
  }
}

CGL_LANES_TEST(choice_never_falls_on_a_slot_of_weight_zero) {
  std::mt19937 generator(11);
  std::uniform_int_distribution<std::uint32_t> word;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const Slots slots = rough_slots(1 + seed % 362, seed, 0.8);
    const std::uint32_t chosen =
        choose_by_weight<TestedLanes>(size_of(slots), uniform_from_word(word(generator)), rows_of(slots));
    if (chosen == no_slot) {
      for (const float weight : slots) ASSERT_EQ(weight, 0.0f);
    } else {
      ASSERT_LT(chosen, slots.size());
      ASSERT_GT(slots[chosen], 0.0f) << "seed " << seed;
    }
  }
}

CGL_LANES_TEST(there_is_no_choice_among_zeros) {
  EXPECT_EQ(choose_by_weight<TestedLanes>(100, 0.5f, rows_of(Slots(100, 0.0f))), no_slot);
  EXPECT_EQ(choose_by_weight<TestedLanes>(0, 0.5f, rows_of(Slots{})), no_slot);
}

CGL_LANES_TEST(the_only_weight_is_always_chosen) {
  for (std::size_t at = 0; at < 100; ++at) {
    Slots slots(100, 0.0f);
    slots[at] = 1e-3f;
    for (const float u : {0.0f, 0.5f, 0x1.fffffep-1f}) {
      ASSERT_EQ(choose_by_weight<TestedLanes>(100, u, rows_of(slots)), at);
    }
  }
}

// Ones beside 2^24 are lost or kept according to the tree that adds them, so x[l] can be below x[l - 1].
CGL_LANES_TEST(choice_survives_a_scan_that_is_not_monotone) {
  std::mt19937 generator(5);
  int falls = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Slots slots(32);
    for (float& slot : slots) {
      const std::uint32_t kind = generator() % 4;
      slot = kind == 0 ? 0.0f : kind == 1 ? 0x1p24f : kind == 2 ? 1.0f : 0x1.8p0f;
    }
    float x[32];
    for (std::size_t l = 0; l < 32; ++l) x[l] = slots[l];
    for (std::size_t s = 1; s <= 16; s *= 2) {
      for (std::size_t l = 31; l >= s; --l) x[l] = x[l - s] + x[l];
    }
    for (std::size_t l = 1; l < 32; ++l) {
      if (!(x[l] < x[l - 1])) continue;
      ++falls;
      // Thresholds on and around the fall.
      const float u = x[l] / x[31] < 1.0f ? x[l] / x[31] : 0x1.fffffep-1f;
      const std::uint32_t chosen = choose_by_weight<TestedLanes>(32, u, rows_of(slots));
      ASSERT_EQ(chosen, choose_by_definition(slots, u));
      ASSERT_GT(slots[chosen], 0.0f);
    }
  }
  EXPECT_GT(falls, 0) << "no scan fell: the test does not test what it says";
}

CGL_LANES_TEST(choices_follow_their_weights) {
  const Slots slots{1, 0, 2, 3, 0, 4};
  std::vector<int> count(slots.size());
  constexpr std::uint32_t draws = 100000;
  for (std::uint32_t i = 0; i < draws; ++i) {
    const float u = uniform_from_word(philox4x32_10({{i, 0, 0, 0}}, {8, 8}).word[0]);
    ++count[choose_by_weight<TestedLanes>(size_of(slots), u, rows_of(slots))];
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const double share = static_cast<double>(slots[i]) / 10.0;
    EXPECT_NEAR(count[i], draws * share, 4 * std::sqrt(draws * share * (1 - share)) + 1e-9);
  }
}

CGL_LANES_TEST(mirror_sum_gives_the_series_at_the_four_mirror_images) {
  for (const int degree : {0, 2, 4, 8, 12}) {
    constexpr HarmonicConvention convention = HarmonicConvention::descoteaux07_legacy;
    const HarmonicBasis basis{convention, degree, false};
    const auto count = static_cast<std::uint32_t>(coefficient_count(degree, false));
    std::vector<std::uint32_t> order(count);
    sort_by_mirror_class(convention, degree, order.data());
    const MirrorClassSizes sizes_of_class = mirror_class_sizes(degree);
    std::vector<float> sorted(count), plain(count);
    for (std::uint32_t j = 0; j < count; ++j) {
      plain[order[j]] = static_cast<float>(std::cos(3.0 * j));
      sorted[j] = plain[order[j]];
    }
    constexpr std::uint32_t orbits = 93, groups = 3;
    std::vector<float> matrix(std::size_t{32} * count * groups);
    std::vector<Vec3d> first(orbits);
    for (std::uint32_t o = 0; o < orbits; ++o) {
      const double z = (o + 0.5) / orbits, phi = 0.37 * o - std::floor(0.37 * o / (M_PI / 2)) * (M_PI / 2);
      first[o] = {std::sqrt(1 - z * z) * std::cos(phi), std::sqrt(1 - z * z) * std::sin(phi), z};
      double values[largest_coefficient_count];
      evaluate_harmonics(basis, first[o], values);
      for (std::uint32_t j = 0; j < count; ++j) {
        matrix[mirror_matrix_index(o, j, count)] = static_cast<float>(values[order[j]]);
      }
    }
    std::vector<float> found(128 * groups);
    for (std::uint32_t group = 0; group < groups; ++group) {
      const auto members =
          mirror_sum<TestedLanes>(sizes_of_class, matrix.data() + std::size_t{32} * count * group, sorted.data());
      for (std::uint32_t q = 0; q < 4; ++q) TestedLanes::store(&found[128 * group + 32 * q], members.member[q]);
    }
    for (std::uint32_t o = 0; o < orbits; ++o) {
      const Vec3d v = first[o];
      const Vec3d member[4] = {v, {v.x, v.y, -v.z}, {v.x, -v.y, v.z}, {-v.x, v.y, v.z}};
      for (std::uint32_t q = 0; q < 4; ++q) {
        double values[largest_coefficient_count], truth = 0;
        evaluate_harmonics(basis, member[q], values);
        for (std::uint32_t j = 0; j < count; ++j) truth += static_cast<double>(plain[j]) * values[j];
        ASSERT_NEAR(found[mirror_slot(o, q)], truth, 2e-5) << "degree " << degree << " orbit " << o << " member " << q;
      }
    }
  }
}

CGL_LANES_TEST(mirror_sum_adds_each_class_in_sequence) {
  const MirrorClassSizes of_class = mirror_class_sizes(8);
  const Slots matrix = rough_slots(45 * 32, 3, 0.1), coefficients = rough_slots(45, 4, 0.1);
  const auto members = mirror_sum<TestedLanes>(of_class, matrix.data(), coefficients.data());
  for (std::uint32_t l = 0; l < 32; ++l) {
    float sums[4];
    std::size_t j = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t end = j + (k == 0 ? 15 : 10);
      sums[k] = coefficients[j] * matrix[32 * j + l];
      for (++j; j < end; ++j) sums[k] = sums[k] + coefficients[j] * matrix[32 * j + l];
    }
    const float a = sums[0] + sums[1], b = sums[0] - sums[1], c = sums[2] + sums[3], d = sums[2] - sums[3];
    ASSERT_EQ(TestedLanes::get(members.member[0], l), a + c);
    ASSERT_EQ(TestedLanes::get(members.member[1], l), a - c);
    ASSERT_EQ(TestedLanes::get(members.member[2], l), b + d);
    ASSERT_EQ(TestedLanes::get(members.member[3], l), b - d);
  }
}

// Every primitive that works lane by lane, against the scalar operation it stands for.
CGL_LANES_TEST(operations_on_single_lanes_equal_the_scalar_ones) {
  using Lanes = TestedLanes;
  std::mt19937 generator(8);
  for (int round = 0; round < 50; ++round) {
    float a[32], b[32], table[64];
    std::uint32_t word[32], index[32], words[64];
    std::uniform_real_distribution<float> number(-100.0f, 100.0f);
    for (std::uint32_t l = 0; l < 32; ++l) {
      a[l] = l % 7 == 0 ? -0.0f : number(generator);
      b[l] = l % 5 == 0 ? a[l] : (l % 7 == 1 ? 0.0f : number(generator));
      word[l] = static_cast<std::uint32_t>(generator());
      index[l] = static_cast<std::uint32_t>(generator() % 64u);
    }
    for (std::uint32_t i = 0; i < 64; ++i) {
      table[i] = number(generator);
      words[i] = static_cast<std::uint32_t>(generator());
    }
    std::uint16_t float16s[66];  // finite, every fourth subnormal
    for (std::uint32_t i = 0; i < 66; ++i) {
      float16s[i] = static_cast<std::uint16_t>(generator() & (i % 4 == 0 ? 0x83ffu : 0xffffu));
      if ((float16s[i] & 0x7c00u) == 0x7c00u) float16s[i] = 0x8001u;
    }
    const auto fa = Lanes::load(a), fb = Lanes::load(b);
    const auto to_word = [](const std::uint32_t* from) {
      float bits[32];
      for (std::uint32_t l = 0; l < 32; ++l) bits[l] = bits_float(from[l] & 0x3fffffffu);
      return Lanes::bits_of(Lanes::load(bits));
    };
    const auto w = to_word(word), v = to_word(words), at = to_word(index);
    for (std::uint32_t l = 0; l < 32; ++l) {
      const std::uint32_t x = word[l] & 0x3fffffffu, y = words[l] & 0x3fffffffu;
      const auto bits = [&](const Lanes::Float& f) { return float_bits(Lanes::get(f, l)); };
      ASSERT_EQ(bits(Lanes::divide(fa, fb)) & 0x7fffffffu, float_bits(a[l] / b[l]) & 0x7fffffffu);
      ASSERT_EQ(bits(Lanes::square_root(Lanes::magnitude(fa))), float_bits(root(absolute(a[l]))));
      ASSERT_EQ(bits(Lanes::floor_of_lanes(fa)), float_bits(floor_of(a[l])));
      ASSERT_EQ(bits(Lanes::magnitude(fa)), float_bits(absolute(a[l])));
      ASSERT_EQ(bits(Lanes::greater_of(fa, fb)), float_bits(a[l] > b[l] ? a[l] : b[l]));
      ASSERT_EQ(bits(Lanes::lesser_of(fa, fb)), float_bits(a[l] < b[l] ? a[l] : b[l]));
      ASSERT_EQ(bits(Lanes::gather(table, at)), float_bits(table[index[l]]));
      ASSERT_EQ(Lanes::get(Lanes::gather(words, at), l), words[index[l]]);
      const auto column = Lanes::bits_and(at, Lanes::broadcast(7u));
      const auto row = Lanes::template shift_right<3>(at);
      ASSERT_EQ(bits(Lanes::gather_number(table, row, 8u, column, true)), float_bits(table[index[l]]));
      ASSERT_EQ(bits(Lanes::gather_number(table, row, 8u, column, false)), float_bits(table[index[l]]));
      ASSERT_EQ(bits(Lanes::load_float16(float16s)), float_bits(float16_to_float(float16s[l])));
      ASSERT_EQ(bits(Lanes::gather_float16(float16s, row, 8u, column, true)),
                float_bits(float16_to_float(float16s[index[l]])));
      ASSERT_EQ(bits(Lanes::gather_float16(float16s, row, 8u, column, false)),
                float_bits(float16_to_float(float16s[index[l]])));
      ASSERT_EQ(bits(Lanes::map(fa, [](float value) { return value * 3.0f; })), float_bits(a[l] * 3.0f));
      ASSERT_EQ(float_bits(Lanes::own(fa, l)), float_bits(a[l]));
      ASSERT_EQ(Lanes::get(Lanes::add(w, v), l), x + y);
      ASSERT_EQ(Lanes::get(Lanes::subtract(w, v), l), x - y);
      ASSERT_EQ(Lanes::get(Lanes::multiply(w, v), l), x * y);
      ASSERT_EQ(Lanes::get(Lanes::high_product_with(Lanes::multiply(w, v), 0xd2511f53u), l),
                high_product(x * y, 0xd2511f53u));
      ASSERT_EQ(Lanes::get(Lanes::bits_and(w, v), l), x & y);
      ASSERT_EQ(Lanes::get(Lanes::bits_or(w, v), l), x | y);
      ASSERT_EQ(Lanes::get(Lanes::bits_xor(w, v), l), x ^ y);
      ASSERT_EQ(Lanes::get(Lanes::template shift_left<5>(w), l), x << 5);
      ASSERT_EQ(Lanes::get(Lanes::template shift_right<5>(Lanes::multiply(w, v)), l), (x * y) >> 5);
      ASSERT_EQ(bits(Lanes::float_of_bits(w)), x);
      ASSERT_EQ(Lanes::get(Lanes::float_of_integer(Lanes::multiply(w, v)), l),
                static_cast<float>(static_cast<std::int32_t>(x * y)));
      ASSERT_EQ(Lanes::get(Lanes::integer_of_float(fa), l),
                static_cast<std::uint32_t>(static_cast<std::int32_t>(a[l])));
      ASSERT_EQ(((Lanes::ballot(Lanes::at_least(fa, fb)) >> l) & 1u) != 0u, a[l] >= b[l]);
    }
    ASSERT_EQ(Lanes::ballot(Lanes::mask_of_bits(word[0])), word[0]);
    std::uint32_t asked = 0;
    ASSERT_EQ(Lanes::filter(word[0],
                            [&](std::uint32_t lane) {
                              asked |= 1u << lane;
                              return lane % 3 == 0;
                            }),
              word[0] & 0x49249249u);
    ASSERT_EQ(asked, word[0]);
  }
}

template <class Lanes>
void expect_any_finds_each_single_lane_and_nothing_else() {
  const auto mask_of = [](std::uint64_t bits) {
    float numbers[32] = {};
    for (std::uint32_t l = 0; l < Lanes::width; ++l) numbers[l] = (bits >> l & 1u) != 0u ? 1.0f : -1.0f;
    return Lanes::greater(Lanes::load(numbers), Lanes::broadcast(0.0f));
  };
  EXPECT_FALSE(Lanes::any(mask_of(0u)));
  for (std::uint32_t l = 0; l < Lanes::width; ++l) EXPECT_TRUE(Lanes::any(mask_of(std::uint64_t{1} << l))) << l;
}

CGL_LANES_TEST(any_finds_each_single_lane_and_nothing_else) {
  expect_any_finds_each_single_lane_and_nothing_else<TestedLanes>();
  expect_any_finds_each_single_lane_and_nothing_else<TestedLanes::Narrow>();
}

CGL_LANES_TEST(adding_from_below_keeps_the_bits_of_lanes_without_a_lane_below) {
  using Lanes = TestedLanes;
  const Slots slots = rough_slots(32, 5, 0.0);
  const auto check = [&]<std::uint32_t distance>() {
    Slots a = slots;
    for (std::size_t l = 0; l < distance; ++l) a[l] = -0.0f;
    const auto sum = Lanes::template add_from_below<distance>(Lanes::load(a.data()));
    for (std::uint32_t l = 0; l < 32; ++l) {
      const float truth = l >= distance ? a[l - distance] + a[l] : a[l];
      ASSERT_EQ(float_bits(Lanes::get(sum, l)), float_bits(truth)) << distance << " " << l;
    }
  };
  check.template operator()<1>();
  check.template operator()<2>();
  check.template operator()<4>();
  check.template operator()<8>();
  check.template operator()<16>();
}

CGL_LANES_TEST(logarithm_sine_and_cosine_have_the_bits_of_the_scalar_functions) {
  using Lanes = TestedLanes;
  std::mt19937 generator(11);
  for (int round = 0; round < 20000; ++round) {
    float x[32];
    for (std::uint32_t l = 0; l < 32; ++l) {
      const auto word = static_cast<std::uint32_t>(generator());
      // All bit patterns, and numbers of the size that occurs.
      x[l] = l % 2 == 0 ? bits_float(word) : (static_cast<float>(word >> 8) * 0x1p-24f - 0.5f) * 20.0f;
    }
    const auto logarithms = lane_logarithm<Lanes>(Lanes::load(x));
    const auto circle = lane_sine_cosine<Lanes>(Lanes::load(x));
    for (std::uint32_t l = 0; l < 32; ++l) {
      const SineCosine<float> truth = sine_cosine(x[l]);
      ASSERT_EQ(float_bits(Lanes::get(logarithms, l)), float_bits(logarithm(x[l]))) << x[l];
      ASSERT_EQ(float_bits(Lanes::get(circle.cosine, l)), float_bits(truth.cosine)) << x[l];
      ASSERT_EQ(float_bits(Lanes::get(circle.sine, l)), float_bits(truth.sine)) << x[l];
    }
  }
}

CGL_LANES_TEST(each_lane_of_a_mask_is_visited_with_its_own_number_and_no_other) {
  using Lanes = TestedLanes::Narrow;
  float numbers[32];
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t l = 0; l < 32; ++l)
    numbers[l] = (l % 3 == 0) != (l % 8 == 7) ? 100.0f + static_cast<float>(l) : -1.0f;
  for (std::uint32_t l = 0; l < Lanes::width; ++l) {
    if (numbers[l] > 0) chosen.push_back(l);
  }
  const auto values = Lanes::load(numbers);
  std::vector<std::uint32_t> visited;
  Lanes::each_lane(Lanes::greater(values, Lanes::broadcast(0.0f)), [&](std::uint32_t lane) {
    visited.push_back(lane);
    EXPECT_EQ(Lanes::own(values, lane), 100.0f + static_cast<float>(lane));
  });
  EXPECT_EQ(visited, chosen);
}

CGL_LANES_TEST(philox_gives_each_lane_its_block) {
  using Lanes = TestedLanes;
  const DrawCounter counter{77u, DrawPurpose::step, 3u, 1u, 12u, 4u};
  const PhiloxKey key = philox_key(0x123456789abcdefull);
  const PhiloxBlock first = counter_words(counter, 0u);
  const auto blocks = lane_philox4x32_10<Lanes>(
      {{Lanes::broadcast(first.word[0]), Lanes::broadcast(first.word[1]), Lanes::broadcast(first.word[2]),
        Lanes::add(Lanes::broadcast(first.word[3]), Lanes::slots_of_row(0u))}},
      key.low, key.high);
  for (std::uint32_t l = 0; l < 32; ++l) {
    const PhiloxBlock truth = random_block(key, counter, l);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(Lanes::get(blocks.word[i], l), truth.word[i]);
  }
}

CGL_LANES_TEST(frames_are_propagated_with_the_bits_of_the_scalar_function) {
  using Lanes = TestedLanes::Narrow;
  std::mt19937 generator(21);
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  for (int round = 0; round < 300; ++round) {
    const Frame frame = straighten(normalise(Vec3{number(generator), number(generator), number(generator)}),
                                   {number(generator), number(generator), number(generator)});
    float k1[32], k2[32];
    for (std::uint32_t l = 0; l < 32; ++l) {
      k1[l] = l % 4 == 3 ? 1e-5f * number(generator) : 4.0f * number(generator);
      k2[l] = l % 4 == 3 ? 0.0f : 4.0f * number(generator);
    }
    const auto arc = lane_arc<Lanes>(Lanes::load(k1), Lanes::load(k2), 0.3f);
    auto step = lane_propagate<Lanes>(spread<Lanes>(frame), arc);
    step = lane_propagate<Lanes>(step.frame, arc);
    for (std::uint32_t l = 0; l < Lanes::width; ++l) {
      const FrameStep once = propagate_frame(frame, k1[l], k2[l], 0.3f);
      const FrameStep truth = propagate_frame(once.frame, k1[l], k2[l], 0.3f);
      const auto expect_equal = [&](const LaneVec3<Lanes>& found, Vec3 wanted) {
        ASSERT_EQ(float_bits(Lanes::get(found.x, l)), float_bits(wanted.x));
        ASSERT_EQ(float_bits(Lanes::get(found.y, l)), float_bits(wanted.y));
        ASSERT_EQ(float_bits(Lanes::get(found.z, l)), float_bits(wanted.z));
      };
      expect_equal(step.displacement, truth.displacement);
      expect_equal(step.frame.tangent, truth.frame.tangent);
      expect_equal(step.frame.normal, truth.frame.normal);
      expect_equal(step.frame.binormal, truth.frame.binormal);
    }
  }
}

}  // namespace
}  // namespace cingulum::numerics
