#include "formats/volume_array.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace cingulum::volume_array_tests {
namespace {

constexpr std::array<std::size_t, 4> shape = {5, 4, 3, 37};
constexpr std::size_t voxels = 5 * 4 * 3;

// Numbers in memory by an order of the axes (the first fastest), every `spread`-th place, and backwards where negative.
struct Layout {
  std::array<std::size_t, 4> order;
  std::int64_t spread;
};
constexpr Layout layouts[] = {
    {{0, 1, 2, 3}, 1},   // Fortran's order
    {{3, 2, 1, 0}, 1},   // C's order: volumes side by side
    {{1, 3, 0, 2}, 1},   // neither
    {{0, 1, 2, 3}, 3},   // strides
    {{3, 2, 1, 0}, -2},  // from the end
};

template <class T>
struct Laid {
  std::vector<T> memory;
  VolumeArray array;
  std::vector<float> plain;  // x fastest, volume after volume
};

template <class T>
Laid<T> lay_out(const Layout& layout, unsigned seed) {
  Laid<T> laid;
  std::array<std::int64_t, 4> steps = {};
  std::int64_t step = layout.spread;
  for (const std::size_t axis : layout.order) {
    steps[axis] = step;
    step *= static_cast<std::int64_t>(shape[axis]);
  }
  const auto size = static_cast<std::size_t>(std::abs(step));
  laid.memory.assign(size, T(99));
  T* const first = layout.spread > 0 ? laid.memory.data() : laid.memory.data() + size - 1;
  std::mt19937_64 random(seed);
  for (std::size_t volume = 0; volume < shape[3]; ++volume) {
    for (std::size_t voxel = 0; voxel < voxels; ++voxel) {
      const std::size_t at[4] = {voxel % shape[0], voxel / shape[0] % shape[1], voxel / (shape[0] * shape[1]), volume};
      std::int64_t place = 0;
      for (std::size_t axis = 0; axis < 4; ++axis) place += static_cast<std::int64_t>(at[axis]) * steps[axis];
      // All digits of integers, so that a rounding on the way through another type would show.
      const T number = std::is_floating_point_v<T> ? static_cast<T>(std::normal_distribution<double>()(random))
                                                   : static_cast<T>(random());
      first[place] = number;
      laid.plain.push_back(static_cast<float>(number));
    }
  }
  laid.array = VolumeArray(first, element_type_of<T>(), shape, steps);
  return laid;
}

template <class T>
void expect_to_be_read_rounded_once() {
  for (const Layout& layout : layouts) {
    const Laid<T> laid = lay_out<T>(layout, 7);
    ASSERT_EQ(laid.array.voxels(), voxels);
    ASSERT_EQ(laid.array.volumes(), shape[3]);
    for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, voxels}, {3, 9}, {19, 22}, {59, 1}}) {
      for (std::size_t volume = 0; volume < shape[3]; ++volume) {
        std::vector<float> read(count);
        laid.array.read(volume, first, read);
        const auto truth = std::span(laid.plain).subspan(volume * voxels + first, count);
        ASSERT_TRUE(std::equal(read.begin(), read.end(), truth.begin())) << first << ' ' << volume;
      }
    }
    const std::vector<std::uint32_t> some = {0, 4, 5, 18, 20, 39, 40, 59};
    std::vector<float> records(some.size() * shape[3]);
    laid.array.read_records(some, records);
    for (std::size_t i = 0; i < some.size(); ++i) {
      for (std::size_t volume = 0; volume < shape[3]; ++volume) {
        ASSERT_EQ(records[i * shape[3] + volume], laid.plain[volume * voxels + some[i]]) << some[i] << ' ' << volume;
      }
    }
    EXPECT_EQ(laid.array.hash({}).value(), hash_hex(std::as_bytes(std::span(laid.plain))));
  }
}

TEST(volume_array, numbers_are_read_rounded_once_however_they_lie) {
  expect_to_be_read_rounded_once<float>();
  expect_to_be_read_rounded_once<double>();
  expect_to_be_read_rounded_once<std::int8_t>();
  expect_to_be_read_rounded_once<std::uint8_t>();
  expect_to_be_read_rounded_once<std::int16_t>();
  expect_to_be_read_rounded_once<std::uint16_t>();
  expect_to_be_read_rounded_once<std::int32_t>();
  expect_to_be_read_rounded_once<std::uint32_t>();
  expect_to_be_read_rounded_once<std::int64_t>();
  expect_to_be_read_rounded_once<std::uint64_t>();
}

TEST(volume_array, plain_numbers_are_told_from_those_that_lie_otherwise) {
  const Laid<float> plain = lay_out<float>(layouts[0], 1);
  EXPECT_EQ(plain.array.as_they_lie().data(), plain.memory.data());
  EXPECT_EQ(plain.array.as_they_lie().size(), plain.memory.size());
  for (const Layout& layout : std::span(layouts).subspan(1)) {
    EXPECT_TRUE(lay_out<float>(layout, 1).array.as_they_lie().empty());
  }
  EXPECT_TRUE(lay_out<double>(layouts[0], 1).array.as_they_lie().empty());
  EXPECT_EQ(VolumeArray(plain.memory, voxels).as_they_lie().data(), plain.memory.data());
  EXPECT_TRUE(VolumeArray().empty());
}

TEST(volume_array, what_is_beyond_float32_is_infinite_and_a_number_may_be_shared_by_all_places) {
  const double large = 1e300;
  const VolumeArray array(&large, element_type_of<double>(), shape, {0, 0, 0, 0});
  std::vector<float> read(voxels);
  array.read(36, 0, read);
  for (const float value : read) EXPECT_EQ(value, std::numeric_limits<float>::infinity());
}

TEST(volume_array, a_hash_that_is_not_wanted_any_more_ends) {
  const Laid<double> laid = lay_out<double>(layouts[1], 1);
  CancelSource source;
  source.cancel();
  const auto hash = laid.array.hash(source.token());
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().kind(), ErrorKind::interrupted);
}

}  // namespace
}  // namespace cingulum::volume_array_tests
