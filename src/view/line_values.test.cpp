#include "view/line_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "formats/tractogram.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::view::line_values_tests {
namespace {

using testing::bytes_of;

std::vector<float> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Four lines of 2, 3, 0 and 1 points.
std::filesystem::path write_example(const TemporaryFolder& folder) {
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = testing::example_reference();
  layout.streamline_fields = {{"weight", element_type_of<double>(), 1}, {"colour", element_type_of<std::uint8_t>(), 3}};
  layout.point_fields = {{"fa", element_type_of<float>(), 1}};
  TractogramBatch batch;
  batch.offsets = {0, 2, 5, 5, 6};
  batch.positions.assign(18, 1.0f);
  batch.streamline_data = {bytes_of<double>({0.5, -1, 1e6, 2}),
                           bytes_of<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255})};
  batch.point_data = {bytes_of<float>({1, 3, 1, 2, 6, 9})};
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.trx", layout, {.sync = false}));
    CGL_TRY(writer->append(batch));
    CGL_TRY(writer->add_group({"left", {0, 3}, {}, {}}));
    CGL_TRY(writer->add_group({"right", {3, 1}, {}, {}}));
    return writer->commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return folder / "a.trx";
}

TEST(line_values, every_number_of_a_line_is_a_column_and_groups_are_the_last) {
  const TemporaryFolder folder;
  const auto path = write_example(folder);
  ASSERT_OK_AND_ASSIGN(const auto columns, columns_of_lines(path));
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < columns.size(); ++i) place[columns[i].name] = i;
  ASSERT_EQ(place.size(), 6u);
  EXPECT_EQ(place.at("group"), 5u);
  EXPECT_EQ(columns.back().groups, (std::vector<std::string>{"left", "right"}));
  const auto column = [&](const char* name) { return numbers_of(values_of_lines(path, place.at(name)).value()); };
  EXPECT_EQ(column("weight"), (std::vector<float>{0.5f, -1, 1e6f, 2}));
  EXPECT_EQ(column("colour"), (std::vector<float>{1, 4, 7, 10}));
  EXPECT_EQ(column("colour 3"), (std::vector<float>{3, 6, 9, 255}));
  const auto fa = column("fa");  // the mean along the line
  ASSERT_EQ(fa.size(), 4u);
  EXPECT_EQ(fa[0], 2.0f);
  EXPECT_EQ(fa[1], 3.0f);
  EXPECT_TRUE(std::isnan(fa[2]));
  EXPECT_EQ(fa[3], 9.0f);
  const auto group = column("group");  // of two the first
  EXPECT_EQ(group[0], 0.0f);
  EXPECT_EQ(group[1], 1.0f);
  EXPECT_TRUE(std::isnan(group[2]));
  EXPECT_EQ(group[3], 0.0f);
  EXPECT_TRUE(testing::fails_with(values_of_lines(path, 6), ErrorKind::not_found, "no column"));
}

TEST(line_values, a_file_without_any_has_no_column) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.format = TractogramFormat::tck;
  TractogramBatch batch;
  batch.offsets = {0, 1};
  batch.positions = {1, 2, 3};
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.tck", layout, {.sync = false}));
    CGL_TRY(writer->append(batch));
    return writer->commit();
  };
  ASSERT_TRUE(write());
  ASSERT_OK_AND_ASSIGN(const auto columns, columns_of_lines(folder / "a.tck"));
  EXPECT_TRUE(columns.empty());
  EXPECT_TRUE(testing::fails_with(values_of_lines(folder / "a.tck", 0), ErrorKind::not_found, "no column"));
  EXPECT_FALSE(columns_of_lines(folder / "none.tck"));
}

}  // namespace
}  // namespace cingulum::view::line_values_tests
