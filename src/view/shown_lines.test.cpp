#include "view/shown_lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/tractogram.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"
#include "view/view_messages.hpp"

namespace cingulum::view {
namespace {

struct ReadMessage {
  std::uint16_t kind = 0;
  std::uint32_t lines = 0, points = 0;
  std::vector<float> corner_and_unit;
  std::vector<std::uint32_t> offsets, places;
  std::vector<std::uint16_t> numbers;
  std::vector<float> boxes;

  [[nodiscard]] float coordinate(std::size_t point, std::size_t axis) const {
    return corner_and_unit[axis] + corner_and_unit[3] * static_cast<float>(numbers[3 * point + axis]);
  }
};

ReadMessage read_message(const std::vector<std::byte>& bytes) {
  ReadMessage result;
  std::memcpy(&result.kind, bytes.data() + 4, sizeof result.kind);
  const std::byte* at = bytes.data() + 12;
  const auto take = [&](auto& into, std::size_t count) {
    into.resize(count);
    std::memcpy(into.data(), at, count * sizeof(into[0]));
    at += count * sizeof(into[0]);
  };
  std::vector<std::uint32_t> counts;
  if (result.kind == static_cast<std::uint16_t>(MessageKind::places)) {
    take(counts, 1);
    take(result.boxes, std::size_t{6} * counts[0]);
  } else {
    take(counts, 2);
    result.lines = counts[0];
    result.points = counts[1];
    take(result.corner_and_unit, 4);
    take(result.offsets, result.lines + 1);
    take(result.places, result.lines);
    take(result.numbers, 3 * std::size_t{result.points});
    if (result.points % 2 == 1) at += 2;
  }
  EXPECT_EQ(at, bytes.data() + bytes.size());
  return result;
}

// Straight lines of `points` points, so that two points of each are shown, but for every tenth, which has a corner.
// They fill a file as bundles do: neighbours in the file are neighbours in space, in y.
constexpr std::uint32_t count_of_lines = 40'000;
float place_of(std::uint64_t line) {
  return static_cast<float>(line) * 0.0025f;
}

std::filesystem::path write_lines(const TemporaryFolder& folder, TractogramFormat format, const char* name,
                                  std::uint32_t count = count_of_lines, int points = 50) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = testing::example_reference();
  TractogramBatch batch;
  for (std::uint32_t line = 0; line < count; ++line) {
    for (int i = 0; i < points; ++i) {
      const auto t = static_cast<float>(i) * 8.0f / static_cast<float>(points);
      const bool corner = line % 10 == 0 && t > 4;
      batch.positions.insert(batch.positions.end(), {corner ? 4.0f : t, place_of(line), corner ? t - 4.0f : 0.0f});
    }
    batch.offsets.push_back(batch.positions.size() / 3);
  }
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / name, layout, {.force = true, .sync = false}));
    CGL_TRY(writer->append(batch));
    return writer->commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return folder / name;
}

struct AllMessages {
  std::vector<ReadMessage> sample, rest;
  std::vector<float> boxes;
};

AllMessages all_messages(ShownLines& shown, const std::filesystem::path& path) {
  AllMessages all;
  for (std::uint64_t number = 0;; ++number) {
    const auto bytes = shown.message(path, number);
    EXPECT_TRUE(bytes) << testing::message_of(bytes);
    if (!bytes) return all;
    ReadMessage read = read_message(*bytes);
    if (read.kind == static_cast<std::uint16_t>(MessageKind::places)) {
      all.boxes = read.boxes;
      break;
    }
    EXPECT_EQ(read.kind, static_cast<std::uint16_t>(MessageKind::lines));
    all.sample.push_back(std::move(read));
  }
  for (std::size_t i = 0; i < all.boxes.size() / 6; ++i) {
    const auto bytes = shown.message(path, all.sample.size() + 1 + i);
    EXPECT_TRUE(bytes) << testing::message_of(bytes);
    if (bytes) all.rest.push_back(read_message(*bytes));
  }
  return all;
}

TEST(ShownLines, every_line_of_a_file_comes_once_and_within_half_a_unit) {
  const TemporaryFolder folder;
  auto pool = ThreadPool::create(2).value();
  for (const auto& [format, name] :
       {std::pair(TractogramFormat::trx, "a.trx"), std::pair(TractogramFormat::trk, "a.trk"),
        std::pair(TractogramFormat::tck, "a.tck")}) {
    const auto path = write_lines(folder, format, name);
    ShownLines shown(pool.get());
    const AllMessages all = all_messages(shown, path);
    EXPECT_GT(all.sample.size(), 1U);
    EXPECT_GT(all.rest.size(), 1U);
    std::vector<int> seen(count_of_lines);
    for (const auto* part : {&all.sample, &all.rest}) {
      for (const ReadMessage& read : *part) {
        ASSERT_GT(read.lines, 0U);
        const float unit = read.corner_and_unit[3];
        EXPECT_LE(unit, 100.0f / 65535 * 1.001f);  // the greatest extent of all is 100 mm
        for (std::uint32_t i = 0; i < read.lines; ++i) {
          const std::uint32_t line = read.places[i];
          ASSERT_LT(line, count_of_lines);
          ++seen[line];
          const bool has_corner = line % 10 == 0;
          ASSERT_EQ(read.offsets[i + 1] - read.offsets[i], has_corner ? 3U : 2U) << line;
          const std::size_t first = read.offsets[i], last = read.offsets[i + 1] - 1;
          const float allowed = 0.5f * unit + 2e-5f;  // and what float32 and the file's own numbers round
          EXPECT_NEAR(read.coordinate(first, 0), 0.0f, allowed);
          EXPECT_NEAR(read.coordinate(first, 1), place_of(line), allowed);
          EXPECT_NEAR(read.coordinate(last, 0), has_corner ? 4.0f : 7.84f, allowed);
          EXPECT_NEAR(read.coordinate(last, 2), has_corner ? 3.84f : 0.0f, allowed);
        }
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), count_of_lines) << name;
  }
}

TEST(ShownLines, the_first_message_is_a_sample_of_the_whole_file) {
  const TemporaryFolder folder;
  const auto path = write_lines(folder, TractogramFormat::trx, "a.trx");
  ShownLines shown(nullptr);
  ASSERT_OK_AND_ASSIGN(const auto bytes, shown.message(path, 0));
  const ReadMessage first = read_message(bytes);
  ASSERT_GT(first.lines, 1000U);
  ASSERT_LT(first.lines, 8000U);
  std::array<std::uint32_t, 10> of_tenth{};
  for (const std::uint32_t line : first.places) ++of_tenth[line / (count_of_lines / 10)];
  for (const std::uint32_t count : of_tenth) {
    EXPECT_GT(count, first.lines / 10 / 2);
    EXPECT_LT(count, first.lines / 10 * 2);
  }
}

TEST(ShownLines, the_others_lie_where_their_message_says) {
  const TemporaryFolder folder;
  const auto path = write_lines(folder, TractogramFormat::trx, "a.trx");
  ShownLines shown(nullptr);
  const AllMessages all = all_messages(shown, path);
  ASSERT_GT(all.rest.size(), 1U);
  for (std::size_t i = 0; i < all.rest.size(); ++i) {
    const float* const box = all.boxes.data() + 6 * i;
    const auto [least, greatest] = std::minmax_element(all.rest[i].places.begin(), all.rest[i].places.end());
    EXPECT_FLOAT_EQ(box[1], place_of(*least));
    EXPECT_FLOAT_EQ(box[4], place_of(*greatest));
    // Two messages of 16 000 lines are the halves of what is left, not two mixtures of all.
    EXPECT_LT(box[4] - box[1], 60.0f);
  }
}

TEST(ShownLines, a_small_file_is_its_own_sample) {
  const TemporaryFolder folder;
  for (const std::uint32_t count : {0U, 1U, 16U, 17U, 8192U}) {
    const auto path = write_lines(folder, TractogramFormat::trx, "small.trx", count, 4);
    ShownLines shown(nullptr);
    const AllMessages all = all_messages(shown, path);
    std::vector<std::uint32_t> places;
    for (const ReadMessage& read : all.sample) places.insert(places.end(), read.places.begin(), read.places.end());
    std::sort(places.begin(), places.end());
    EXPECT_EQ(places.size(), count);
    EXPECT_TRUE(std::adjacent_find(places.begin(), places.end()) == places.end());
    EXPECT_TRUE(all.boxes.empty());
    EXPECT_TRUE(testing::fails_with(shown.message(path, all.sample.size() + 1), ErrorKind::not_found, "no message"));
  }
}

TEST(ShownLines, whoever_asks_in_whatever_order_gets_the_same) {
  const TemporaryFolder folder;
  const auto path = write_lines(folder, TractogramFormat::trx, "a.trx");
  const auto other_path = write_lines(folder, TractogramFormat::tck, "other.tck", 50, 10);
  ShownLines forwards(nullptr), backwards(nullptr);
  const AllMessages all = all_messages(forwards, path);
  const std::uint64_t count = all.sample.size() + 1 + all.rest.size();
  std::vector<std::vector<std::byte>> messages;
  for (std::uint64_t number = 0; number < count; ++number) {
    ASSERT_OK_AND_ASSIGN(auto bytes, forwards.message(path, number));
    messages.push_back(std::move(bytes));
  }
  for (std::uint64_t number = count; number-- > 0;) {
    ASSERT_OK(backwards.message(other_path, 0));  // another page, another file
    ASSERT_OK_AND_ASSIGN(const auto bytes, backwards.message(path, number));
    EXPECT_EQ(bytes, messages[number]) << number;
  }
  for (const std::uint64_t number : {count, count + 1, std::uint64_t{1'000'000}, ~std::uint64_t{0}}) {
    EXPECT_TRUE(testing::fails_with(backwards.message(path, number), ErrorKind::not_found, "no message"));
  }
  ASSERT_OK(backwards.message(path, 0));
  EXPECT_FALSE(backwards.message(folder / "none.trx", 0));
}

TEST(ShownLines, a_file_that_was_written_anew_is_shown_anew) {
  const TemporaryFolder folder;
  const auto path = write_lines(folder, TractogramFormat::trx, "a.trx", 100, 4);
  const auto other_path = write_lines(folder, TractogramFormat::trx, "b.trx", 50, 4);
  ShownLines shown(nullptr);
  ASSERT_OK(shown.message(path, 0));
  write_lines(folder, TractogramFormat::trx, "a.trx", 30, 4);
  ASSERT_OK(shown.message(other_path, 0));
  ASSERT_OK_AND_ASSIGN(const auto bytes, shown.message(path, 0));
  EXPECT_EQ(read_message(bytes).lines, 30U);
}

TEST(ShownLines, what_is_no_place_is_left_out_and_moves_nothing_else) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> positions = {1, 2, 3, nan, 0, 0, 4, 5, 6, 1e30f, 0, 0, 0, -infinite, 0, 7, 8, 9};
  const std::vector<std::uint64_t> offsets = {0, 3, 5, 6};
  const std::vector<std::uint32_t> places = {0, 1, 2};
  ASSERT_OK_AND_ASSIGN(const auto bytes,
                       make_lines_message({.offsets = offsets, .positions = positions, .places = places}));
  const ReadMessage read = read_message(bytes);
  EXPECT_EQ(read.offsets, (std::vector<std::uint32_t>{0, 2, 2, 3}));
  for (std::size_t point = 0; point < 3; ++point) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      EXPECT_NEAR(read.coordinate(point, axis), static_cast<float>(3 * point + axis + 1), 1e-4f);
    }
  }
  // One place alone has no extent, and a unit all the same.
  const std::vector<float> one = {5, -6, 7};
  const std::vector<std::uint64_t> one_offsets = {0, 1};
  ASSERT_OK_AND_ASSIGN(
      const auto alone,
      make_lines_message({.offsets = one_offsets, .positions = one, .places = std::span(places).first(1)}));
  const ReadMessage read_alone = read_message(alone);
  EXPECT_EQ(read_alone.coordinate(0, 1), -6.0f);
}

}  // namespace
}  // namespace cingulum::view
