#include "formats/streamline_seeker.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t line_count = 100;

// Lines of 0 to 6 points, none like another, with a number for each line and each point where the format has them.
std::filesystem::path write_numbered_lines(const TemporaryFolder& folder, TractogramFormat format, bool deflated) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = testing::example_reference();
  layout.deflated = deflated;
  const bool fields = format != TractogramFormat::tck;
  if (fields) {
    layout.point_fields = {{.name = "p", .type = testing::float_type, .columns = 2}};
    layout.streamline_fields = {{.name = "s", .type = testing::float_type, .columns = 1}};
  }
  TractogramBatch batch;
  std::vector<float> of_points, of_lines;
  for (std::uint64_t line = 0; line < line_count; ++line) {
    for (std::uint64_t i = 0; i < (line * 5) % 7; ++i) {
      const auto number = static_cast<float>(10 * line + i);
      batch.positions.insert(batch.positions.end(), {number, 0.5f * number, -number});
      of_points.insert(of_points.end(), {number, -number});
    }
    of_lines.push_back(static_cast<float>(line));
    batch.offsets.push_back(batch.positions.size() / 3);
  }
  if (fields) {
    batch.point_data = {testing::bytes_of(of_points)};
    batch.streamline_data = {testing::bytes_of(of_lines)};
  }
  const std::filesystem::path path = folder / fmt::format("lines.{}", tractogram_format_name(format));
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(path, layout, {.force = true, .sync = false}));
    CGL_TRY(writer->append(batch));
    return writer->commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return path;
}

class Seeking : public ::testing::TestWithParam<std::pair<TractogramFormat, bool>> {};

TEST_P(Seeking, every_streamline_is_what_it_is_from_front_to_back) {
  const TemporaryFolder folder;
  const auto path = write_numbered_lines(folder, GetParam().first, GetParam().second);
  ASSERT_OK_AND_ASSIGN(const Tractogram whole, read_tractogram(path));
  ASSERT_EQ(whole.streamlines.streamline_count(), line_count);
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(path));
  StreamlineSeeker& seeker = seeker_of(*reader);
  TractogramBatch one;
  for (std::uint64_t i = 0; i < 3 * line_count; ++i) {
    const std::uint64_t line = i * 37 % line_count;  // far to and fro, each three times
    ASSERT_OK(seeker.seek(line));
    ASSERT_OK_AND_ASSIGN(const bool more, reader->next(one, 1, true));
    ASSERT_TRUE(more);
    const auto there = whole.streamlines.streamline(line);
    const auto here = one.streamline(0);
    ASSERT_TRUE(std::equal(there.begin(), there.end(), here.begin(), here.end())) << line;
    if (one.streamline_data.empty()) continue;
    float number = -1;
    std::memcpy(&number, one.streamline_data[0].data(), sizeof number);
    EXPECT_EQ(number, static_cast<float>(line));
    if (here.empty()) continue;
    std::memcpy(&number, one.point_data[0].data(), sizeof number);
    EXPECT_EQ(number, static_cast<float>(10 * line));
  }
}

TEST_P(Seeking, the_end_is_known_and_nothing_is_behind_it) {
  const TemporaryFolder folder;
  const auto path = write_numbered_lines(folder, GetParam().first, GetParam().second);
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(path));
  StreamlineSeeker& seeker = seeker_of(*reader);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t count, seeker.count());
  EXPECT_EQ(count, line_count);
  ASSERT_OK(seeker.seek(line_count));
  TractogramBatch batch;
  ASSERT_OK_AND_ASSIGN(const bool more, reader->next(batch, 1000, true));
  EXPECT_FALSE(more);
  EXPECT_TRUE(testing::fails_with(seeker.seek(line_count + 1), ErrorKind::not_found, "no streamline 101"));
  // And back again, after the end.
  ASSERT_OK(seeker.seek(0));
  ASSERT_OK_AND_ASSIGN(const bool again, reader->next(batch, 1000000, true));
  EXPECT_TRUE(again);
  EXPECT_EQ(batch.streamline_count(), line_count);
}

INSTANTIATE_TEST_SUITE_P(Formats, Seeking,
                         ::testing::Values(std::pair(TractogramFormat::trx, false),
                                           std::pair(TractogramFormat::trx, true),
                                           std::pair(TractogramFormat::trk, false),
                                           std::pair(TractogramFormat::tck, false)));

TEST(SeekingInTck, counts_what_is_in_the_file_and_not_what_its_header_says) {
  const TemporaryFolder folder;
  const auto path = write_numbered_lines(folder, TractogramFormat::tck, false);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string text(200, '\0');
  file.read(text.data(), 200);
  const std::size_t at = text.find("count: ");
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(text.find("100", at)));
  file.write("777", 3);
  file.close();
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(path));
  EXPECT_EQ(reader->layout().streamline_count, 777);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t count, seeker_of(*reader).count());
  EXPECT_EQ(count, line_count);
}

}  // namespace
}  // namespace cingulum
