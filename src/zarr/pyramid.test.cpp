#include "zarr/pyramid.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "zarr/chunk_boxes.hpp"
#include "zarr/element_source.hpp"
#include "zarr/level_file.hpp"
#include "zarr/row_major.hpp"
#include "zarr/value_window.hpp"

namespace cingulum::zarr::pyramid_tests {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<T> level(const std::vector<T>& values, const Shape& shape, const Shape& coarser, Downsampling how,
                     const Region& box) {
  const MemorySource source(shape, element_type_of<T>(), bytes_of(values));
  std::vector<T> result(elements_of(box.shape));
  EXPECT_TRUE(downsample(source, coarser, how, box, std::as_writable_bytes(std::span(result))));
  return result;
}
template <class T>
std::vector<T> level(const std::vector<T>& values, const Shape& shape, const Shape& coarser,
                     Downsampling how = Downsampling::mean) {
  return level(values, shape, coarser, how, Region{Shape(coarser.size()), coarser});
}

TEST(Pyramid, even_sizes_are_means_of_pairs_rounded_to_even) {
  EXPECT_EQ(level<std::int32_t>({1, 2, 2, 3, -1, -2, 7, 7}, {8}, {4}), (std::vector<std::int32_t>{2, 2, -2, 7}));
  EXPECT_EQ(level<std::uint8_t>({255, 255, 254, 255}, {4}, {2}), (std::vector<std::uint8_t>{255, 254}));
  EXPECT_EQ(level<float>({1, 2, 3, 4, 5, 6, 7, 9}, {2, 4}, {1, 2}), (std::vector<float>{3.5F, 5.75F}));
}

TEST(Pyramid, odd_sizes_count_what_is_covered) {
  // 3 elements as 2: each covers one and a half.
  EXPECT_EQ(level<double>({3, 6, 12}, {3}, {2}), (std::vector<double>{(2 * 3.0 + 6) / 3, (6 + 2 * 12.0) / 3}));
}

TEST(Pyramid, a_ramp_stays_a_ramp_and_constants_stay) {
  for (const std::uint64_t size : {1U, 2U, 3U, 7U, 16U, 31U}) {
    std::vector<double> ramp(size), flat(size, 5.25);
    for (std::size_t i = 0; i < size; ++i) ramp[i] = static_cast<double>(i);
    const std::uint64_t half = size - size / 2;
    const auto coarse = level(ramp, {size}, {half});
    for (std::size_t o = 0; o < half; ++o) {
      // The mean over what it covers of a function that is i over element i; at half-pixel centres where size is even.
      if (size % 2 == 0) {
        EXPECT_DOUBLE_EQ(coarse[o], 2.0 * static_cast<double>(o) + 0.5);
      }
    }
    EXPECT_EQ(level(flat, {size}, {half}), std::vector<double>(half, 5.25));
  }
}

TEST(Pyramid, largest_integers_are_not_passed) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(level<std::int64_t>({most, most}, {2}, {1})[0], most);
}

TEST(Pyramid, nearest_takes_an_element_that_is_there) {
  EXPECT_EQ(level<std::uint16_t>({1, 2, 3, 4, 5}, {5}, {3}, Downsampling::nearest),
            (std::vector<std::uint16_t>{1, 3, 5}));
}

TEST(Pyramid, a_box_of_a_level_is_that_part_of_the_whole) {
  const Shape shape = {5, 7, 9}, coarser = {3, 4, 5};
  std::vector<float> values(elements_of(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 2654435761U) % 1000);
  const std::vector<float> all = level(values, shape, coarser);
  const Region box{{1, 2, 3}, {2, 2, 2}};
  const std::vector<float> part = level(values, shape, coarser, Downsampling::mean, box);
  std::vector<float> expected(8);
  const Shape start(3);
  copy_box(box.shape, 4, bytes_of(all).data(), coarser, box.origin, std::as_writable_bytes(std::span(expected)).data(),
           box.shape, start);
  EXPECT_EQ(part, expected);
}

TEST(Pyramid, sizes_are_halved_rounded_up_until_a_chunk) {
  const std::vector<bool> halved = {false, true, true};
  const auto shapes = pyramid_shapes({6, 100, 30}, halved, std::nullopt, {1, 16, 16});
  EXPECT_EQ(shapes, (std::vector<Shape>{{6, 100, 30}, {6, 50, 15}, {6, 25, 8}, {6, 13, 4}}));
  EXPECT_EQ(pyramid_shapes({6, 4, 1}, halved, 9, {1, 1, 1}).size(), 3U);
  EXPECT_EQ(pyramid_shapes({6, 100, 30}, halved, 1, {1, 1, 1}).size(), 1U);
}

TEST(LevelFile, tiles_come_back_as_boxes) {
  const Shape shape = {5, 6, 7}, tile = {2, 4, 3};
  std::vector<std::uint16_t> values(elements_of(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  auto file = LevelFile::create(FileLayer::system(), ::testing::TempDir() + "level", shape, tile,
                                element_type_of<std::uint16_t>());
  ASSERT_TRUE(file) << file.error().message();
  const MemorySource source(shape, element_type_of<std::uint16_t>(), bytes_of(values));
  const ChunkBoxes tiles(shape, tile, {}, {}, 2, 0);
  EXPECT_EQ(tiles.count(), 3U * 2U * 3U);
  for (std::uint64_t i = 0; i < tiles.count(); ++i) {
    const Region box = tiles.at(i);
    std::vector<std::byte> elements(elements_of(box.shape) * 2);
    ASSERT_TRUE(source.read(box, elements));
    ASSERT_TRUE((*file)->write_tile(box.origin, elements));
  }
  for (const Region& box : {Region{{0, 0, 0}, shape}, Region{{1, 3, 2}, {3, 2, 4}}, Region{{4, 5, 6}, {1, 1, 1}}}) {
    std::vector<std::byte> expected(elements_of(box.shape) * 2), found(expected.size());
    ASSERT_TRUE(source.read(box, expected));
    ASSERT_TRUE((*file)->read(box, found));
    EXPECT_EQ(found, expected);
  }
}

TEST(ChunkBoxes, cover_an_array_once_in_whole_chunks) {
  const Shape shape = {50, 61, 7}, chunks = {8, 16, 4};
  const Shape source_chunks = {1, 61, 7}, origin = {3, 0, 0};
  for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{20000}, std::uint64_t{1} << 40U}) {
    const ChunkBoxes boxes(shape, chunks, source_chunks, origin, 4, memory);
    std::vector<int> seen(elements_of(shape));
    for (std::uint64_t i = 0; i < boxes.count(); ++i) {
      const Region box = boxes.at(i);
      EXPECT_LE(elements_of(box.shape), boxes.most_elements());
      for (std::size_t d = 0; d < 3; ++d) {
        EXPECT_EQ(box.origin[d] % chunks[d], 0U);
        EXPECT_TRUE(box.shape[d] % chunks[d] == 0 || box.origin[d] + box.shape[d] == shape[d]);
      }
      for_each_row_of(box.shape, [&](std::span<const std::uint64_t> index) {
        for (std::uint64_t x = 0; x < box.shape[2]; ++x) {
          ++seen[((box.origin[0] + index[0]) * 61 + box.origin[1] + index[1]) * 7 + box.origin[2] + x];
        }
      });
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
  EXPECT_EQ(ChunkBoxes(shape, chunks, {}, {}, 4, std::uint64_t{1} << 40U).count(), 1U);
  // Room for two chunks more: grown where whole chunks of the source are read once.
  EXPECT_EQ(ChunkBoxes(shape, chunks, source_chunks, origin, 4, 8 * 61 * 7 * 4).at(0).shape, (Shape{8, 61, 7}));
}

TEST(ValueWindow, finds_what_sorting_finds) {
  for (const std::size_t count : {1U, 2U, 1000U}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = (static_cast<float>((i * 7919U) % 4001U) - 2000.0F) * 0.37F;
    }
    std::vector<float> with_others = values;
    with_others.push_back(std::numeric_limits<float>::quiet_NaN());
    with_others.push_back(-std::numeric_limits<float>::infinity());
    const MemorySource source({with_others.size()}, element_type_of<float>(), bytes_of(with_others));
    const auto window = find_value_window(source, {100}, {});
    ASSERT_TRUE(window && *window);
    std::sort(values.begin(), values.end());
    EXPECT_EQ((*window)->smallest, values.front());
    EXPECT_EQ((*window)->largest, values.back());
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(count - 1))];
    };
    EXPECT_EQ((*window)->low, at(0.01));
    EXPECT_EQ((*window)->high, at(0.999));
  }
}

TEST(ValueWindow, no_finite_value_has_no_window) {
  const std::vector<double> values = {std::numeric_limits<double>::quiet_NaN()};
  const MemorySource source({1}, element_type_of<double>(), bytes_of(values));
  const auto window = find_value_window(source, {1}, {});
  ASSERT_TRUE(window);
  EXPECT_FALSE(*window);
}

}  // namespace
}  // namespace cingulum::zarr::pyramid_tests
