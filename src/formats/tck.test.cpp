#include "formats/tck.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "formats/byte_order.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> tck(const std::string& header, const std::vector<float>& numbers, bool big_endian = false) {
  std::vector<std::byte> bytes(header.size() + numbers.size() * 4);
  std::memcpy(bytes.data(), header.data(), header.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store(bytes, header.size() + i * 4, big_endian ? swap_bytes(numbers[i]) : numbers[i]);
  }
  return bytes;
}

Result<Tractogram> read(std::vector<std::byte> bytes, std::vector<std::string>* warnings = nullptr) {
  CGL_TRY_ASSIGN(const auto reader, open_tck("a.tck", FileBytes::own(std::move(bytes))));
  auto result = read_tractogram(*reader, 3, false);
  if (warnings != nullptr) *warnings = reader->layout().warnings;
  return result;
}

const std::vector<float> two_streamlines = {1, 2, 3, 4,   5,   6,   nan,      nan,      nan,
                                            7, 8, 9, nan, nan, nan, infinity, infinity, infinity};

TEST(Tck, streamlines_are_read_in_both_byte_orders) {
  for (const bool big : {false, true}) {
    std::string text =
        std::string("mrtrix tracks\ndatatype: Float32") + (big ? "BE" : "LE") + "\ncount: 2\nfile: . 70\nEND\n";
    text.resize(70, ' ');
    std::vector<std::string> warnings;
    ASSERT_OK_AND_ASSIGN(const Tractogram found, read(tck(text, two_streamlines, big), &warnings));
    EXPECT_EQ(found.streamlines.offsets, (std::vector<std::uint64_t>{0, 2, 3}));
    EXPECT_EQ(found.streamlines.positions, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_TRUE(warnings.empty());
  }
}

TEST(Tck, header_lines_are_kept_in_order_and_continued_lines_repeat_their_key) {
  std::string text =
      "mrtrix tracks   \ncommand_history: a\n b c\n\nroi: seed x:y\nroi: stop z\ndatatype: Float32LE\nfile: . "
      "120\nEND\n";
  text.resize(120, ' ');
  std::vector<std::string> warnings;
  ASSERT_OK_AND_ASSIGN(const Tractogram found, read(tck(text, two_streamlines), &warnings));
  using Note = std::pair<std::string, std::string>;
  EXPECT_EQ(found.layout.notes,
            (std::vector<Note>{
                {"command_history", "a"}, {"command_history", "b c"}, {"roi", "seed x:y"}, {"roi", "stop z"}}));
}

TEST(Tck, a_wrong_count_is_a_warning) {
  std::string text = "mrtrix tracks\ndatatype: Float32LE\ncount: 3\nfile: . 70\nEND\n";
  text.resize(70, ' ');
  std::vector<std::string> warnings;
  ASSERT_OK(read(tck(text, two_streamlines), &warnings));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("counts 3 streamlines, the file has 2"), std::string::npos);
}

TEST(Tck, a_count_is_known_as_far_as_a_signed_number_reaches) {
  const auto counted = [](const std::string& count) {
    const std::string text = "mrtrix tracks\ndatatype: Float32LE\ncount: " + count + "\nEND\n";
    return open_tck("a.tck", FileBytes::own(tck(text, two_streamlines))).value()->layout().streamline_count;
  };
  EXPECT_EQ(counted("2"), 2);
  EXPECT_EQ(counted("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(counted("9223372036854775808"), -1);
}

TEST(Tck, a_batch_ends_at_the_number_that_was_asked_for_also_where_there_are_no_points) {
  std::string text = "mrtrix tracks\ndatatype: Float32LE\nfile: . 70\nEND\n";
  text.resize(70, ' ');
  const auto batches = [&](const std::vector<float>& numbers) {
    std::vector<std::size_t> sizes;
    const auto reader = open_tck("a.tck", FileBytes::own(tck(text, numbers))).value();
    TractogramBatch batch;
    while (reader->next(batch, 2, true).value()) sizes.push_back(batch.streamline_count());
    return sizes;
  };
  EXPECT_EQ(batches(two_streamlines), (std::vector<std::size_t>{1, 1})) << "the first has two points";
  std::vector<float> empty_ones(15, nan);
  empty_ones.insert(empty_ones.end(), 3, infinity);
  EXPECT_EQ(batches(empty_ones), (std::vector<std::size_t>{2, 2, 1}));
}

TEST(Tck, missing_datatype_and_offset_are_assumed_with_a_warning) {
  std::vector<std::string> warnings;
  ASSERT_OK(read(tck("mrtrix tracks\nEND\n", two_streamlines), &warnings));
  EXPECT_EQ(warnings.size(), 2U);
}

TEST(Tck, malformed_files_are_refused_with_the_reason) {
  const auto refused = [](const std::string& header, const std::vector<float>& numbers, const char* why) {
    return fails_with(read(tck(header, numbers)), ErrorKind::corrupt, why);
  };
  const std::string good = "mrtrix tracks\nEND\n";
  EXPECT_TRUE(refused("mrtrix track\nEND\n", two_streamlines, "does not begin"));
  EXPECT_TRUE(refused("mrtrix tracks or not\nEND\n", two_streamlines, "first line"));
  EXPECT_TRUE(refused("mrtrix tracks\ndatatype: Float32LE\n", {}, "no line END"));
  EXPECT_TRUE(refused("mrtrix tracks\nno colon\nEND\n", two_streamlines, "key: value"));
  EXPECT_TRUE(refused("mrtrix tracks\ndatatype: Int16\nEND\n", two_streamlines, "Int16"));
  EXPECT_TRUE(refused("mrtrix tracks\nfile: other.dat 0\nEND\n", two_streamlines, "another file"));
  EXPECT_TRUE(refused("mrtrix tracks\nfile: .\nEND\n", two_streamlines, "no offset"));
  EXPECT_TRUE(refused("mrtrix tracks\nfile: . 3\nEND\n", two_streamlines, "inside the header"));
  EXPECT_TRUE(refused("mrtrix tracks\nfile: . 18446744073709551615\nEND\n", two_streamlines, "beyond the file"));
  EXPECT_TRUE(refused("mrtrix tracks\nfile: . 99999999999999999999\nEND\n", two_streamlines, "no offset"));
  EXPECT_TRUE(refused(good, {}, "whole triplets"));
  EXPECT_TRUE(refused(good, {1, 2}, "whole triplets"));
  EXPECT_TRUE(refused(good, {1, 2, 3}, "without the end mark"));
  EXPECT_TRUE(refused(good, {1, 2, 3, nan, nan, nan}, "without the end mark"));
  EXPECT_TRUE(refused(good, {1, 2, 3, infinity, infinity, infinity}, "middle of a streamline"));
  EXPECT_TRUE(refused(good, {1, nan, 3, nan, nan, nan, infinity, infinity, infinity}, "neither a point nor a mark"));
  EXPECT_TRUE(refused(good, {infinity, infinity, infinity, 1, 2, 3}, "follow the end mark"));
}

TEST(Tck, keys_that_come_twice_or_are_none_and_counts_and_types_in_doubt_are_told) {
  const auto refused = [](const std::string& lines, const char* why) {
    return fails_with(read(tck("mrtrix tracks\n" + lines + "END\n", two_streamlines)), ErrorKind::corrupt, why);
  };
  EXPECT_TRUE(refused("datatype: Float32LE\ndatatype: Float32LE\n", "'datatype' comes twice"));
  EXPECT_TRUE(refused("file: . 90\nfile: . 90\n", "'file' comes twice"));
  EXPECT_TRUE(refused("a: b\n: c\n", "': c' has no key"));
  std::string text = "mrtrix tracks\ndatatype: Float32\ncount: many\nfile: . 80\nEND\n";
  text.resize(80, ' ');
  std::vector<std::string> warnings;
  ASSERT_OK(read(tck(text, two_streamlines), &warnings));
  EXPECT_EQ(warnings, (std::vector<std::string>{"header: the count 'many' is not a number",
                                                "header: datatype Float32 does not name a byte order; LE is assumed"}));
}

TEST(Tck, marks_are_found_wherever_they_stand_in_either_width_and_byte_order) {
  // Streamlines of 0 to 40 points, so that marks stand at every place of the blocks that are looked at together.
  std::vector<double> numbers;
  std::vector<double> positions;
  std::vector<std::uint64_t> offsets = {0};
  for (std::size_t length = 0; length <= 40; ++length) {
    for (std::size_t i = 0; i < 3 * length; ++i) positions.push_back(static_cast<double>(positions.size()) + 0.25);
    numbers.insert(numbers.end(), positions.end() - static_cast<std::ptrdiff_t>(3 * length), positions.end());
    numbers.insert(numbers.end(), 3, std::numeric_limits<double>::quiet_NaN());
    offsets.push_back(positions.size() / 3);
  }
  numbers.insert(numbers.end(), 3, std::numeric_limits<double>::infinity());
  for (const bool big : {false, true}) {
    for (const bool wide : {false, true}) {
      const std::string text =
          std::string("mrtrix tracks\ndatatype: Float") + (wide ? "64" : "32") + (big ? "BE" : "LE") + "\nEND\n";
      std::vector<std::byte> bytes(text.size() + numbers.size() * (wide ? 8 : 4));
      std::memcpy(bytes.data(), text.data(), text.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto narrow = static_cast<float>(numbers[i]);
        if (wide) {
          store(bytes, text.size() + i * 8, big ? swap_bytes(numbers[i]) : numbers[i]);
        } else {
          store(bytes, text.size() + i * 4, big ? swap_bytes(narrow) : narrow);
        }
      }
      ASSERT_OK_AND_ASSIGN(const auto reader, open_tck("a.tck", FileBytes::own(bytes)));
      EXPECT_TRUE(reader->verify());
      ASSERT_OK_AND_ASSIGN(const Tractogram found, read_tractogram(*reader, 1000, false));
      EXPECT_EQ(found.streamlines.offsets, offsets);
      if (wide) {
        EXPECT_EQ(found.streamlines.positions64, positions);
      } else {
        EXPECT_EQ(found.streamlines.positions, std::vector<float>(positions.begin(), positions.end()));
      }
      // Without its last triplet the file has no end.
      bytes.resize(bytes.size() - (wide ? 24 : 12));
      ASSERT_OK_AND_ASSIGN(const auto cut, open_tck("a.tck", FileBytes::own(std::move(bytes))));
      EXPECT_TRUE(fails_with(cut->verify(), ErrorKind::corrupt, "without the end mark"));
    }
  }
}

TEST(Tck, data_that_end_with_a_block_of_points_or_with_half_a_triplet_are_cut_off) {
  for (const std::size_t points : {15U, 16U, 17U, 32U}) {
    std::vector<float> numbers(3 * points, 1.5F);
    numbers.insert(numbers.end(), 3, infinity);
    auto bytes = tck("mrtrix tracks\nEND\n", numbers);
    bytes.resize(bytes.size() - 12);  // the mark still lies in the memory behind them
    EXPECT_TRUE(fails_with(read(std::move(bytes)), ErrorKind::corrupt, "without the end mark")) << points;
  }
  // A mark of doubles, and half of one.
  const double end = std::numeric_limits<double>::infinity();
  const std::string text = "mrtrix tracks\ndatatype: Float64LE\nEND\n";
  std::vector<std::byte> bytes(text.size() + 36);
  std::memcpy(bytes.data(), text.data(), text.size());
  for (std::size_t i = 0; i < 3; ++i) store(bytes, text.size() + i * 8, end);
  EXPECT_TRUE(fails_with(read(bytes), ErrorKind::corrupt, "are not whole triplets of 24"));
  bytes.resize(text.size() + 24);
  EXPECT_TRUE(read(bytes));
}

TEST(Tck, written_files_hold_count_notes_and_doubles) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.format = TractogramFormat::tck;
  layout.position_type = testing::double_type;
  layout.notes = {{"method", "iFOD2"}, {"roi", "seed a"}, {"roi", "stop b"}};
  ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.tck", layout, {}));
  TractogramBatch batch;
  batch.offsets = {0, 1, 1, 2};
  batch.positions64 = {0.1, 0.2, 0.3, 1e-9, 2, 3};
  ASSERT_OK(writer->append(batch));
  ASSERT_OK(writer->commit());
  EXPECT_NE(folder.content("a.tck").find("count: 00000000000000000003\n"), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(folder / "a.tck"));
  EXPECT_EQ(reader->layout().notes, layout.notes);
  EXPECT_EQ(reader->layout().streamline_count, 3);
  ASSERT_OK_AND_ASSIGN(const Tractogram found, read_tractogram(*reader, 100, false));
  EXPECT_EQ(found.streamlines.positions64, batch.positions64);
  EXPECT_EQ(found.streamlines.offsets, batch.offsets);
}

TEST(Tck, numbers_that_would_be_marks_and_notes_that_would_be_lines_are_refused) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.format = TractogramFormat::tck;
  ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.tck", layout, {}));
  TractogramBatch batch;
  batch.offsets = {0, 1};
  batch.positions = {1, nan, 2};
  EXPECT_TRUE(fails_with(writer->append(batch), ErrorKind::invalid_argument, "not finite"));
  // Finite as a double, and not as the float that would be written.
  ASSERT_OK_AND_ASSIGN(const auto narrow, TractogramWriter::create(folder / "a.tck", layout, {}));
  batch.positions.clear();
  batch.positions64 = {1, 1e300, 2};
  EXPECT_TRUE(fails_with(narrow->append(batch), ErrorKind::invalid_argument, "not finite"));
  layout.notes = {{"a", "b\nEND"}};
  EXPECT_FALSE(TractogramWriter::create(folder / "b.tck", layout, {}));
  layout.notes = {{"count", "7"}};
  EXPECT_FALSE(TractogramWriter::create(folder / "b.tck", layout, {}));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Tck, batches_whose_parts_do_not_fit_together_are_refused_and_leave_no_file) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.format = TractogramFormat::tck;
  const auto append = [&](const TractogramBatch& batch) -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.tck", layout, {}));
    return writer->append(batch);
  };
  TractogramBatch batch;
  batch.offsets = {0, 1};
  batch.positions = {1, 2, 3};
  EXPECT_TRUE(append(batch));
  batch.positions = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(fails_with(append(batch), ErrorKind::invalid_argument, "6 coordinates for 1 points"));
  batch.offsets = {0, 2};
  batch.positions64 = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(fails_with(append(batch), ErrorKind::invalid_argument, "as float and as double"));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace cingulum
