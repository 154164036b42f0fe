#include "view/shown_lines.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::view {
namespace {

struct ReadMessage {
  std::uint32_t lines = 0, points = 0;
  std::vector<std::uint32_t> offsets, places;
  std::vector<float> positions;
};

ReadMessage read_message(const std::vector<std::byte>& bytes) {
  ReadMessage result;
  const std::byte* at = bytes.data() + 12;
  const auto take = [&](auto& into, std::size_t count) {
    into.resize(count);
    std::memcpy(into.data(), at, count * sizeof(into[0]));
    at += count * sizeof(into[0]);
  };
  std::vector<std::uint32_t> counts;
  take(counts, 2);
  result.lines = counts[0];
  result.points = counts[1];
  take(result.offsets, result.lines + 1);
  take(result.positions, 3 * std::size_t{result.points});
  take(result.places, result.lines);
  return result;
}

// 3000 lines of 200 points: straight, so that two points of each are shown, but for every tenth, which has a corner.
std::filesystem::path write_lines(const TemporaryFolder& folder, TractogramFormat format, const char* name) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = testing::example_reference();
  TractogramBatch batch;
  for (int line = 0; line < 3000; ++line) {
    for (int i = 0; i < 200; ++i) {
      const auto t = static_cast<float>(i) * 0.04f;
      const bool corner = line % 10 == 0 && i > 100;
      batch.positions.insert(batch.positions.end(),
                             {corner ? 4.0f : t, static_cast<float>(line % 50), corner ? t - 4.0f : 0.0f});
    }
    batch.offsets.push_back(batch.positions.size() / 3);
  }
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / name, layout, {.sync = false}));
    CGL_TRY(writer->append(batch));
    return writer->commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return folder / name;
}

TEST(ShownLines, a_file_comes_in_batches_and_ends_with_an_empty_one) {
  const TemporaryFolder folder;
  auto pool = ThreadPool::create(2).value();
  for (const auto& [format, name] :
       {std::pair(TractogramFormat::trx, "a.trx"), std::pair(TractogramFormat::trk, "a.trk"),
        std::pair(TractogramFormat::tck, "a.tck")}) {
    const auto path = write_lines(folder, format, name);
    ShownLines shown(pool.get());
    std::uint64_t first = 0;
    int batches = 0;
    while (true) {
      ASSERT_OK_AND_ASSIGN(const auto bytes, shown.message(path, first));
      const ReadMessage read = read_message(bytes);
      if (read.lines == 0) break;
      ++batches;
      for (std::uint32_t i = 0; i < read.lines; ++i) {
        const std::uint64_t line = first + i;
        EXPECT_EQ(read.places[i], line);
        EXPECT_EQ(read.offsets[i + 1] - read.offsets[i], line % 10 == 0 ? 3U : 2U) << line;
        EXPECT_NEAR(read.positions[3 * read.offsets[i] + 1], static_cast<float>(line % 50), 1e-3f);
      }
      first += read.lines;
    }
    EXPECT_EQ(first, 3000U) << name;
    EXPECT_GT(batches, 1);
  }
}

TEST(ShownLines, begins_again_and_refuses_what_is_no_beginning) {
  const TemporaryFolder folder;
  const auto path = write_lines(folder, TractogramFormat::trx, "a.trx");
  ShownLines shown(nullptr);
  ASSERT_OK_AND_ASSIGN(const auto once, shown.message(path, 0));
  const std::uint64_t second = read_message(once).lines;
  ASSERT_OK_AND_ASSIGN(const auto next, shown.message(path, second));
  ASSERT_OK_AND_ASSIGN(const auto again, shown.message(path, 0));
  EXPECT_EQ(again, once);
  // Another page that stands further on: read over.
  ShownLines other(nullptr);
  ASSERT_OK_AND_ASSIGN(const auto skipped, other.message(path, second));
  EXPECT_EQ(skipped, next);
  EXPECT_TRUE(testing::fails_with(shown.message(path, second + 1), ErrorKind::not_found, "no batch begins"));
  EXPECT_TRUE(testing::fails_with(shown.message(path, 5000), ErrorKind::not_found, "no batch begins"));
  ASSERT_OK(shown.message(path, 0));
  EXPECT_FALSE(shown.message(folder / "none.trx", 0));
}

}  // namespace
}  // namespace cingulum::view
