#include "formats/trx.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/tractogram.hpp"
#include "formats/tractogram_batch.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TractogramLayout example_layout() {
  TractogramLayout layout;
  layout.reference =
      ImageGeometry{.size = {10, 20, 30}, .voxel_to_world = {{-2, 0, 0, 90, 0, 2, 0.1, -126, 0, 0, 2, -72}}};
  layout.point_fields = {{.name = "fa", .type = float32_type, .columns = 1},
                         {.name = "direction", .type = float64_type, .columns = 3}};
  layout.streamline_fields = {{.name = "seed_index", .type = element_type_of<std::uint32_t>(), .columns = 1}};
  return layout;
}

// Streamlines of 3, 0, 1 and 2 points.
TractogramBatch example_batch() {
  TractogramBatch batch;
  batch.offsets = {0, 3, 3, 4, 6};
  for (int i = 0; i < 18; ++i) batch.positions.push_back(static_cast<float>(i) * 1.37f - 4.0f);
  batch.point_data = {bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5}), bytes_of(std::vector<double>(18, 0.25))};
  batch.streamline_data = {bytes_of(std::vector<std::uint32_t>{7, 8, 9, 10})};
  return batch;
}

Status write_example(const std::filesystem::path& path, TractogramLayout layout) {
  CGL_TRY_ASSIGN(layout.format, format_of_name(path));
  CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(path, layout, {}));
  TractogramGroup group{
      .name = "left", .streamlines = {0, 3}, .fields = {{.name = "volume", .type = float32_type}}, .data = {}};
  group.data = {bytes_of(std::vector<float>{12.5f})};
  CGL_TRY(writer->add_group(std::move(group)));
  CGL_TRY(writer->append(example_batch()));
  CGL_TRY(writer->add_group({.name = "none", .streamlines = {}, .fields = {}, .data = {}}));
  return writer->commit();
}

void expect_example(const Tractogram& read) {
  const TractogramBatch expected = example_batch();
  EXPECT_EQ(read.streamlines.offsets, expected.offsets);
  EXPECT_EQ(read.streamlines.positions, expected.positions);
  EXPECT_EQ(read.layout.reference, example_layout().reference);
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_EQ(read.layout.streamline_count, 4);
  EXPECT_EQ(read.layout.point_count, 6);
}

TEST(Trx, what_is_written_is_read_again) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx", example_layout()));
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trx"));
  expect_example(read);
  EXPECT_EQ(read.layout.point_fields, example_layout().point_fields);
  EXPECT_EQ(read.streamlines.point_data, example_batch().point_data);
  EXPECT_EQ(read.streamlines.streamline_data, example_batch().streamline_data);
  EXPECT_EQ(read.groups[0].name, "left");
  EXPECT_EQ(read.groups[0].streamlines, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(read.groups[0].data.at(0), bytes_of(std::vector<float>{12.5f}));
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(folder / "a.trx"));
  EXPECT_TRUE(reader->verify());
}

TEST(Trx, a_folder_is_written_and_read_again) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx.d", example_layout()));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.trx.d"});
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trx.d"));
  expect_example(read);
  EXPECT_FALSE(write_example(folder / "a.trx.d", example_layout()));
}

}  // namespace
}  // namespace cingulum
