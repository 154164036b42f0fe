#include "report/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "report/tract_report.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

struct Line {
  std::vector<float> positions;
  std::array<std::uint8_t, 2> reasons = {1, 3};
};

std::filesystem::path write_trx(const std::filesystem::path& path, const std::vector<Line>& lines, bool reasons) {
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = ImageGeometry{{20, 20, 20}, {}};
  layout.position_type = element_type_of<float>();
  if (reasons) layout.streamline_fields = {{"end_reason", element_type_of<std::uint8_t>(), 2}};
  auto writer = TractogramWriter::create(path, layout, {});
  EXPECT_TRUE(writer.has_value()) << writer.error().message();
  TractogramBatch batch;
  if (reasons) batch.streamline_data.resize(1);
  for (const Line& line : lines) {
    batch.positions.insert(batch.positions.end(), line.positions.begin(), line.positions.end());
    batch.offsets.push_back(batch.positions.size() / 3);
    if (reasons) {
      for (const std::uint8_t code : line.reasons) batch.streamline_data[0].push_back(std::byte{code});
    }
  }
  EXPECT_TRUE((*writer)->append(batch).has_value());
  EXPECT_TRUE((*writer)->commit().has_value());
  return path;
}

TractogramSurvey survey_of(const std::filesystem::path& path, SurveyOptions options = {}, int threads = 1) {
  auto survey = survey_tractogram(path, options, **ThreadPool::create(threads));
  EXPECT_TRUE(survey.has_value()) << survey.error().message();
  return std::move(*survey);
}

// Straight lines of the given lengths.
std::vector<Line> lines_of(const std::vector<float>& lengths) {
  std::vector<Line> lines;
  for (const float length : lengths) lines.push_back({{0, 0, 0, length, 0, 0}});
  return lines;
}

TEST(Survey, quantiles_are_those_of_the_sorted_lengths) {
  const TemporaryFolder folder;
  for (const std::size_t count : {1U, 2U, 3U, 4U, 7U, 100U, 1001U}) {
    std::vector<float> lengths;
    for (std::size_t i = 0; i < count; ++i) lengths.push_back(static_cast<float>((i * 7919) % 1009) * 0.173F);
    const auto path = write_trx(folder / (std::to_string(count) + ".trx"), lines_of(lengths), false);
    const TractogramSurvey survey = survey_of(path, {}, 2);
    std::sort(lengths.begin(), lengths.end());
    const auto quantile = [&](double q) {
      const double place = q * static_cast<double>(count - 1);
      const auto below = static_cast<std::size_t>(place);
      const double low = lengths[below];
      const double high = lengths[std::min(below + 1, count - 1)];
      return low + (high - low) * (place - static_cast<double>(below));
    };
    EXPECT_DOUBLE_EQ(survey.lengths.median_mm, quantile(0.5)) << count;
    EXPECT_DOUBLE_EQ(survey.lengths.lower_quartile_mm, quantile(0.25)) << count;
    EXPECT_DOUBLE_EQ(survey.lengths.upper_quartile_mm, quantile(0.75)) << count;
    EXPECT_FLOAT_EQ(static_cast<float>(survey.lengths.smallest_mm), lengths.front());
    EXPECT_FLOAT_EQ(static_cast<float>(survey.lengths.largest_mm), lengths.back());
    std::uint64_t in_bins = 0;
    for (const std::uint64_t bin : survey.histogram.counts) in_bins += bin;
    EXPECT_EQ(in_bins, count);
    EXPECT_LE(survey.histogram.counts.size(), 51U);
  }
}

TEST(Survey, histogram_bins_begin_with_their_lower_end) {
  const TemporaryFolder folder;
  const TractogramSurvey survey = survey_of(write_trx(folder / "a.trx", lines_of({0, 9.5F, 10, 45, 80}), false));
  EXPECT_EQ(survey.histogram.bin_mm, 2);
  EXPECT_EQ(survey.histogram.counts[0], 1U);
  EXPECT_EQ(survey.histogram.counts[4], 1U);
  EXPECT_EQ(survey.histogram.counts[5], 1U);
  EXPECT_EQ(survey.histogram.counts[22], 1U);
  EXPECT_EQ(survey.histogram.counts[40], 1U);
}

TEST(Survey, end_reasons_of_both_ends_are_counted) {
  const TemporaryFolder folder;
  std::vector<Line> lines = lines_of({1, 2, 3});
  lines[2].reasons = {4, 3};
  const TractogramSurvey survey = survey_of(write_trx(folder / "a.trx", lines, true));
  ASSERT_TRUE(survey.end_reasons.has_value());
  EXPECT_EQ(survey.end_reasons->start[1], 2U);
  EXPECT_EQ(survey.end_reasons->start[4], 1U);
  EXPECT_EQ(survey.end_reasons->end[3], 3U);
  EXPECT_FALSE(survey_of(write_trx(folder / "b.trx", lines, false)).end_reasons.has_value());
}

TEST(Survey, every_kth_streamline_is_drawn) {
  const TemporaryFolder folder;
  std::vector<float> lengths;
  for (int i = 0; i < 100; ++i) lengths.push_back(static_cast<float>(i + 1));
  const auto path = write_trx(folder / "a.trx", lines_of(lengths), false);
  const TractogramSurvey survey = survey_of(path, {.max_drawn = 30});
  EXPECT_EQ(survey.drawn_every, 4U);
  ASSERT_EQ(survey.drawn.streamline_count(), 25U);
  EXPECT_EQ(survey.drawn.positions[6 * 24 + 3], 97);
  EXPECT_EQ(survey_of(path, {.max_drawn = 100}).drawn.streamline_count(), 100U);
  EXPECT_EQ(survey_of(path, {.max_drawn_points = 20}).drawn.point_count(), 20U);
}

TEST(Survey, streamlines_that_are_not_finite_are_counted_and_left_out) {
  const TemporaryFolder folder;
  std::vector<Line> lines = lines_of({4, 6});
  lines.push_back({{0, 0, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0}});
  lines.push_back({{0, 0, 0, std::numeric_limits<float>::infinity(), 0, 0}});
  const TractogramSurvey survey = survey_of(write_trx(folder / "a.trx", lines, false));
  EXPECT_EQ(survey.streamlines, 4U);
  EXPECT_EQ(survey.not_finite, 2U);
  EXPECT_DOUBLE_EQ(survey.lengths.mean_mm, 5);
  EXPECT_DOUBLE_EQ(survey.lengths.median_mm, 5);
  EXPECT_EQ(survey.drawn.streamline_count(), 2U);
  EXPECT_EQ(survey.box.high.x, 6);
  EXPECT_EQ(survey.density->counts()[0], 2U);
  ASSERT_EQ(survey.warnings.size(), 1U);
  EXPECT_TRUE(survey.warnings[0].starts_with("2 streamlines have coordinates that are not finite"));
}

TEST(Survey, streamlines_without_points_are_counted_and_not_drawn) {
  const TemporaryFolder folder;
  std::vector<Line> lines = lines_of({4});
  lines.push_back({{}});
  lines.push_back({{1, 1, 1}});
  const TractogramSurvey survey = survey_of(write_trx(folder / "a.trx", lines, false));
  EXPECT_EQ(survey.streamlines, 3U);
  EXPECT_EQ(survey.points, 3U);
  EXPECT_EQ(survey.drawn.streamline_count(), 2U);
  EXPECT_EQ(survey.lengths.smallest_mm, 0);
  EXPECT_EQ(survey.histogram.counts.front(), 2U);
}

TEST(Survey, lengths_beyond_float_are_kept_finite) {
  const TemporaryFolder folder;
  const TractogramSurvey survey =
      survey_of(write_trx(folder / "a.trx", {{{-3e38F, 0, 0, 3e38F, 0, 0, -3e38F, 3e38F, 0}}}, false));
  EXPECT_GT(survey.lengths.median_mm, 1e38);
  EXPECT_EQ(survey.histogram.counts.back(), 1U);
}

TEST(Survey, an_absent_file_is_an_error_with_its_name) {
  const auto survey = survey_tractogram("no-such.trx", {}, **ThreadPool::create(1));
  ASSERT_FALSE(survey.has_value());
  EXPECT_NE(survey.error().message().find("no-such.trx"), std::string::npos);
}

TEST(TractReport, an_empty_tractogram_has_a_page) {
  const TemporaryFolder folder;
  for (const std::vector<Line>& lines : {std::vector<Line>{}, std::vector<Line>{{{}}}}) {
    const auto path = write_trx(folder / ("empty" + std::to_string(lines.size()) + ".trx"), lines, false);
    const auto report = make_report({.tracks = path}, **ThreadPool::create(1));
    ASSERT_TRUE(report.has_value()) << report.error().message();
    EXPECT_NE(report->page.find("There is no streamline to draw."), std::string::npos);
    EXPECT_EQ(report->summary["streamlines"], lines.size());
  }
}

TEST(TractReport, the_page_does_not_depend_on_the_number_of_threads) {
  const TemporaryFolder folder;
  std::vector<Line> lines;
  for (int i = 0; i < 100; ++i) {
    Line line;
    for (int k = 0; k < 10; ++k) {
      line.positions.push_back(static_cast<float>((i * 37 + k * 11) % 19));
      line.positions.push_back(static_cast<float>((i * 53 + k * 5) % 17));
      line.positions.push_back(static_cast<float>(k));
    }
    lines.push_back(line);
  }
  const auto path = write_trx(folder / "a.trx", lines, true);
  const ReportRequest request = {.tracks = path, .picture_pixels = 120};
  const auto one = make_report(request, **ThreadPool::create(1));
  const auto eight = make_report(request, **ThreadPool::create(8));
  ASSERT_TRUE(one.has_value() && eight.has_value());
  EXPECT_EQ(one->page, eight->page);
}

TEST(TractReport, a_damaged_sidecar_is_a_warning_on_the_page) {
  const TemporaryFolder folder;
  const auto path = write_trx(folder / "a.trx", lines_of({5}), false);
  folder.put("a.trx.json", "{ not json");
  const auto report = make_report({.tracks = path}, **ThreadPool::create(1));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->warnings.size(), 1U);
  EXPECT_NE(report->page.find("class=\"warning\""), std::string::npos);
}

TEST(TractReport, a_sidecar_of_another_file_is_a_warning) {
  const TemporaryFolder folder;
  const auto path = write_trx(folder / "a.trx", lines_of({5}), false);
  folder.put("a.trx.json",
             R"({"xxh3_128": "00", "statistics": {"seeds": 77, "end_reasons": {"stop_map": 2, "none": 0}}})");
  const auto report = make_report({.tracks = path}, **ThreadPool::create(1));
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->warnings.size(), 1U);
  EXPECT_NE(report->warnings[0].find("the sidecar was written for a file with the hash 00"), std::string::npos);
  EXPECT_NE(report->page.find("data-name=\"seeds\" data-value=\"77\""), std::string::npos);
  EXPECT_EQ(report->summary["end_reasons"]["stop map"], 2);
  EXPECT_FALSE(report->summary["end_reasons"].contains("none"));
}

// The grid is 20 voxels of 1 mm from world x = 0: its middle is 9.5. Three have their ends apart, one of them on the
// plane; a fourth comes back; one is not finite.
TEST(Survey, ends_apart_and_any_crossing_of_the_midline_are_two_counts) {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Line> lines = {{{1, 0, 0, 18, 0, 0}},           {{18, 0, 0, 1, 0, 0}},
                                   {{9.5f, 0, 0, 9, 0, 0}},         {{2, 0, 0, 12, 0, 0, 3, 0, 0}},
                                   {{2, 0, 0, 9, 0, 0, 3, 0, 0}},   {{9.5f, 0, 0, 12, 0, 0}},
                                   {{1, 0, 0, nan, 0, 0, 18, 0, 0}}};
  const auto path = write_trx(folder / "midline.trx", lines, false);
  const TractogramSurvey survey = survey_of(path, {}, 2);
  EXPECT_EQ(survey.midline_mm, 9.5);
  EXPECT_EQ(survey.commissural, 3U);
  EXPECT_EQ(survey.crossing_midline, 4U);
  const TractogramSurvey moved = survey_of(path, {.midline_mm = 2.5}, 2);
  EXPECT_EQ(moved.commissural, 4U);       // the first two, and 2 to 3 twice
  EXPECT_EQ(moved.crossing_midline, 4U);  // the same
}

}  // namespace
}  // namespace cingulum
