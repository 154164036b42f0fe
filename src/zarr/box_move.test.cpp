#include "zarr/box_move.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace cingulum::zarr {
namespace {

namespace box_move_tests {

std::vector<std::byte> random_bytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xffU);
  return bytes;
}

// Element by element, byte by byte, by the meaning of the members.
void plain_scatter(const BoxMove& move, const std::byte* chunk, std::byte* place) {
  std::vector<std::uint64_t> at(move.rank, 0);
  for (std::uint64_t n = 0; n < move.element_count(); ++n) {
    std::uint64_t index = move.chunk_offset;
    auto offset = static_cast<std::int64_t>(move.place_offset);
    for (std::uint32_t d = 0; d < move.rank; ++d) {
      index += at[d] * move.chunk_stride[d];
      offset += static_cast<std::int64_t>(at[d]) * move.place_stride[d];
    }
    for (std::uint32_t b = 0; b < move.element_bytes; ++b) {
      const std::uint32_t number = b / move.swapped_bytes;
      const std::uint32_t from = number * move.swapped_bytes + (move.swapped_bytes - 1 - b % move.swapped_bytes);
      place[offset + b] =
          move.shuffled != 0 ? chunk[from * move.chunk_elements + index] : chunk[index * move.element_bytes + from];
    }
    for (std::uint32_t d = move.rank; d-- > 0;) {
      if (++at[d] < move.extent[d]) break;
      at[d] = 0;
    }
  }
}

struct RandomMove {
  BoxMove move;
  std::size_t chunk_bytes = 0, place_bytes = 0;
};

// A box of a chunk whose dimensions lie in any order, to a place whose dimensions lie in any order.
RandomMove random_move(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return random() % n; };
  constexpr std::array<std::uint32_t, 5> sizes = {1, 2, 4, 8, 16};
  RandomMove made;
  BoxMove& move = made.move;
  move.element_bytes = sizes[below(5)];
  const std::uint32_t choice = static_cast<std::uint32_t>(below(3));
  move.swapped_bytes = choice == 1 && move.element_bytes < 16   ? move.element_bytes
                       : choice == 2 && move.element_bytes >= 4 ? move.element_bytes / 2
                                                                : 1;
  move.shuffled = below(3) == 0 ? 1 : 0;
  const std::uint32_t rank = static_cast<std::uint32_t>(below(5));
  std::vector<std::uint64_t> chunk_shape(rank), place_shape(rank), chunk_begin(rank), place_begin(rank);
  std::vector<MoveDimension> dimensions(rank);
  for (std::uint32_t d = 0; d < rank; ++d) {
    dimensions[d].extent = 1 + below(d == 0 ? 70 : 9);
    chunk_begin[d] = below(3);
    place_begin[d] = below(3);
    chunk_shape[d] = chunk_begin[d] + dimensions[d].extent + below(3);
    place_shape[d] = place_begin[d] + dimensions[d].extent + below(3);
  }
  std::vector<std::uint32_t> order(rank);
  std::iota(order.begin(), order.end(), 0U);
  std::uint64_t elements = 1;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::uint32_t d : order) {
    dimensions[d].chunk_stride = elements;
    move.chunk_offset += chunk_begin[d] * elements;
    elements *= chunk_shape[d];
  }
  std::uint64_t stride = move.element_bytes;
  if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
  for (const std::uint32_t d : order) {
    dimensions[d].place_stride = static_cast<std::int64_t>(stride);
    move.place_offset += place_begin[d] * stride;
    stride *= place_shape[d];
  }
  move.chunk_elements = elements;
  made.chunk_bytes = static_cast<std::size_t>(elements * move.element_bytes);
  made.place_bytes = static_cast<std::size_t>(stride);
  move.rank = static_cast<std::uint32_t>(join_dimensions(dimensions));
  for (std::uint32_t d = 0; d < move.rank; ++d) {
    move.extent[d] = dimensions[d].extent;
    move.chunk_stride[d] = dimensions[d].chunk_stride;
    move.place_stride[d] = dimensions[d].place_stride;
  }
  return made;
}

TEST(BoxMoves, scatter_puts_every_element_where_its_strides_say) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const RandomMove made = random_move(seed);
    const auto chunk = random_bytes(made.chunk_bytes, seed);
    auto expected = random_bytes(made.place_bytes, seed + 1);
    auto found = expected;
    plain_scatter(made.move, chunk.data(), expected.data());
    scatter(made.move, chunk.data(), found.data());
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(BoxMoves, gather_is_the_inverse_of_scatter_and_leaves_the_rest_of_the_chunk) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const RandomMove made = random_move(seed);
    const auto chunk = random_bytes(made.chunk_bytes, seed);
    std::vector<std::byte> place(made.place_bytes);
    scatter(made.move, chunk.data(), place.data());
    // Where the box is, what was scattered comes back; elsewhere the other chunk's bytes stay.
    auto other = random_bytes(made.chunk_bytes, seed + 7);
    const auto before = other;
    gather(made.move, place.data(), other.data());
    auto again = random_bytes(made.place_bytes, seed + 9);
    auto expected = again;
    scatter(made.move, chunk.data(), expected.data());
    scatter(made.move, other.data(), again.data());
    ASSERT_EQ(again, expected) << "seed " << seed;
    std::size_t changed = 0;
    for (std::size_t i = 0; i < other.size(); ++i) changed += other[i] != before[i] ? 1U : 0U;
    ASSERT_LE(changed, made.move.element_count() * made.move.element_bytes) << "seed " << seed;
  }
}

TEST(BoxMoves, filling_writes_the_element_in_the_box_alone) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    RandomMove made = random_move(seed);
    made.move.swapped_bytes = 1;
    made.move.shuffled = 0;
    const auto element = random_bytes(made.move.element_bytes, seed + 3);
    std::vector<std::byte> chunk(made.chunk_bytes);
    for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = element[i % element.size()];
    auto expected = random_bytes(made.place_bytes, seed);
    auto found = expected;
    plain_scatter(made.move, chunk.data(), expected.data());
    fill_box(made.move, element, found.data());
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(BoxMoves, dimensions_that_lie_behind_each_other_are_joined) {
  std::vector<MoveDimension> dimensions = {{4, 60, 240}, {1, 1000, 7}, {3, 20, 80}, {20, 1, 4}};
  ASSERT_EQ(join_dimensions(dimensions), 1U);
  EXPECT_EQ(dimensions[0].extent, 240U);
  EXPECT_EQ(dimensions[0].chunk_stride, 1U);
  EXPECT_EQ(dimensions[0].place_stride, 4);
}

TEST(BoxMoves, dimensions_with_a_gap_on_one_side_stay_apart) {
  std::vector<MoveDimension> dimensions = {{3, 20, 96}, {20, 1, 4}};
  EXPECT_EQ(join_dimensions(dimensions), 2U);
  dimensions = {{3, 21, 80}, {20, 1, 4}};
  EXPECT_EQ(join_dimensions(dimensions), 2U);
}

}  // namespace box_move_tests
}  // namespace
}  // namespace cingulum::zarr
