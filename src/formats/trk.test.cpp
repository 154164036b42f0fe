#include "formats/trk.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/byte_order.hpp"
#include "formats/tractogram_batch.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

std::vector<std::byte> file_bytes(const TemporaryFolder& folder, std::string_view name) {
  const std::string text = folder.content(name);
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::vector<std::byte> one_point(const TemporaryFolder& folder, const ImageGeometry& reference,
                                 std::vector<float> point) {
  TractogramLayout layout;
  layout.format = TractogramFormat::trk;
  layout.reference = reference;
  TractogramBatch batch;
  batch.offsets = {0, point.size() / 3};
  batch.positions = std::move(point);
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.trk", layout, {.force = true}));
    CGL_TRY(writer->append(batch));
    return writer->commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return file_bytes(folder, "a.trk");
}

TEST(Trk, the_centre_of_the_first_voxel_lies_half_a_voxel_from_the_corner) {
  const TemporaryFolder folder;
  const ImageGeometry reference{.size = {10, 11, 12}, .voxel_to_world = {{2, 0, 0, -90, 0, 3, 0, -126, 0, 0, 4, -72}}};
  const auto bytes = one_point(folder, reference, {-90, -126, -72});
  EXPECT_EQ(load<float>(bytes, 1004), 1.0F);
  EXPECT_EQ(load<float>(bytes, 1008), 1.5F);
  EXPECT_EQ(load<float>(bytes, 1012), 2.0F);
  EXPECT_EQ(load<std::int32_t>(bytes, 988), 1);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data() + 948), 3), "RAS");
}

TEST(Trk, flipped_axes_run_along_the_voxels) {
  const TemporaryFolder folder;
  const ImageGeometry reference{.size = {10, 11, 12}, .voxel_to_world = {{-2, 0, 0, 90, 0, 2, 0, -126, 0, 0, 2, -72}}};
  const auto bytes = one_point(folder, reference, {86, -126, -72});
  EXPECT_EQ(load<float>(bytes, 1004), 5.0F);  // voxel 2, centre
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data() + 948), 3), "LAS");
}

// TrackVis keeps the direction cosines of rows and columns in LPS: of world x and y the sign is turned, of z it is not.
TEST(Trk, the_cosines_of_the_first_two_axes_stand_in_the_header_in_lps) {
  const TemporaryFolder folder;
  const double c = std::cos(0.3), s = std::sin(0.3);
  ImageGeometry reference{.size = {5, 6, 7}};
  // x to (c, 0, s), y to (0, -1, 0), z to (-s, 0, c), with edges of 2, 3 and 4 mm.
  reference.voxel_to_world.rows = {2 * c, 0, -4 * s, 1, 0, -3, 0, 2, 2 * s, 0, 4 * c, 3};
  const auto bytes = one_point(folder, reference, {1, 2, 3});
  constexpr std::size_t at_image_orientation = 956;
  const double expected[6] = {-c, 0, s, 0, 1, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(load<float>(bytes, at_image_orientation + 4 * i), expected[i], 1e-6) << i;
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data() + 952), 3), "RPS");  // the copy in pad2
}

TEST(Trk, a_voxel_order_other_than_the_affine_s_turns_the_axes_round) {
  const TemporaryFolder folder;
  const ImageGeometry reference{.size = {10, 11, 12}, .voxel_to_world = {{2, 0, 0, -90, 0, 2, 0, -126, 0, 0, 2, -72}}};
  auto bytes = one_point(folder, reference, {-90, -126, -72});
  std::memcpy(bytes.data() + 948, "LPS", 3);
  ASSERT_OK_AND_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
  TractogramBatch batch;
  ASSERT_OK(reader->next(batch, 10, true));
  // Half a voxel from the corner of the last voxel of x and y.
  EXPECT_EQ(batch.positions, (std::vector<float>{-90 + 2 * 9, -126 + 2 * 10, -72}));
}

TEST(Trk, an_axis_that_is_turned_round_needs_the_size_of_its_grid) {
  const TemporaryFolder folder;
  const ImageGeometry reference{.size = {10, 11, 12}, .voxel_to_world = {{2, 0, 0, -90, 0, 2, 0, -126, 0, 0, 2, -72}}};
  auto bytes = one_point(folder, reference, {-90, -126, -72});
  for (const std::int16_t size : {std::int16_t{-246}, std::int16_t{0}}) {
    store(bytes, 6, size);
    std::memcpy(bytes.data() + 948, "RAS", 3);
    ASSERT_OK_AND_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
    EXPECT_EQ(reader->layout().reference->size[0], 1);
    EXPECT_EQ(reader->layout().warnings.size(), 1u);
    std::memcpy(bytes.data() + 948, "LAS", 3);
    EXPECT_TRUE(fails_with(open_trk("a", FileBytes::own(bytes)), ErrorKind::corrupt, fmt::format("grid of {}", size)));
  }
}

TEST(Trk, positions_come_back_bit_for_bit_through_doubles) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  // Read as doubles and written again: the same file.
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(folder / "a.trk"));
  TractogramLayout layout = reader->layout();
  ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "b.trk", layout, {}));
  TractogramBatch batch;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const bool more, reader->next(batch, 10, false));
    if (!more) break;
    ASSERT_OK(writer->append(batch));
  }
  ASSERT_OK(writer->commit());
  EXPECT_EQ(folder.content("a.trk"), folder.content("b.trk"));
}

TEST(Trk, positions_read_lie_within_a_rounding_of_what_was_written) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trk"));
  const auto expected = testing::example_batch().positions;
  ASSERT_EQ(read.streamlines.positions.size(), expected.size());
  // The file holds float32 of up to 200 mm from the corner, each good to 2^-18 mm; three of them and the affine's
  // float32 make the sum.
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(read.streamlines.positions[i], expected[i], 3e-5) << i;
}

TEST(Trk, fields_come_back_as_float32) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trk"));
  ASSERT_EQ(read.layout.point_fields.size(), 2U);
  EXPECT_EQ(read.layout.point_fields[1], (DataField{.name = "direction", .type = float32_type, .columns = 3}));
  EXPECT_EQ(read.streamlines.point_data[0], testing::example_batch().point_data[0]);
  ASSERT_EQ(read.layout.streamline_fields.size(), 2U);
  EXPECT_EQ(read.streamlines.streamline_data[0], testing::bytes_of(std::vector<float>{1000, 1001, 1002, 1003, 1004}));
  EXPECT_EQ(read.streamlines.streamline_data[1], testing::bytes_of(std::vector<float>{0, 1, 1, 2, 2, 3, 3, 4, 4, 5}));
}

TEST(Trk, both_byte_orders_give_the_same_tractogram) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  auto bytes = file_bytes(folder, "a.trk");
  ASSERT_OK_AND_ASSIGN(const auto little, open_trk("a", FileBytes::own(bytes)));
  ASSERT_OK_AND_ASSIGN(const Tractogram expected, read_tractogram(*little, 1000, false));
  const auto swap = [&](std::size_t at, std::size_t count, std::size_t size) {
    swap_in_place(std::span(bytes).subspan(at, count * size), size);
  };
  swap(6, 3, 2);
  swap(12, 6, 4);
  swap(36, 1, 2);
  swap(238, 1, 2);
  swap(440, 16, 4);
  swap(956, 6, 4);
  swap(988, 3, 4);
  swap(1000, (bytes.size() - 1000) / 4, 4);
  ASSERT_OK_AND_ASSIGN(const auto big, open_trk("a", FileBytes::own(bytes)));
  ASSERT_OK_AND_ASSIGN(const Tractogram found, read_tractogram(*big, 1000, false));
  EXPECT_TRUE(testing::same_tractogram(found, expected));
}

TEST(Trk, a_count_of_zero_means_to_the_end_of_the_file) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  auto bytes = file_bytes(folder, "a.trk");
  store(bytes, 988, std::int32_t{0});
  ASSERT_OK_AND_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
  EXPECT_EQ(reader->layout().streamline_count, -1);
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(*reader, 10, false));
  EXPECT_EQ(read.streamlines.streamline_count(), 5U);
  EXPECT_EQ(reader->layout().streamline_count, 5);
}

TEST(Trk, forged_numbers_are_refused) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  const auto good = file_bytes(folder, "a.trk");
  const auto with = [&](std::size_t at, auto value) -> Status {
    auto bytes = good;
    store(bytes, at, value);
    CGL_TRY_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
    CGL_TRY(read_tractogram(*reader, 10, false));
    return {};
  };
  EXPECT_TRUE(with(988, std::int32_t{5}));
  EXPECT_TRUE(fails_with(with(988, std::int32_t{-1}), ErrorKind::corrupt, "-1 streamlines"));
  EXPECT_TRUE(fails_with(with(988, std::int32_t{0x7fffffff}), ErrorKind::corrupt, "too few"));
  EXPECT_TRUE(fails_with(with(988, std::int32_t{6}), ErrorKind::corrupt, "streamline 5"));
  EXPECT_TRUE(fails_with(with(1000, std::int32_t{-5}), ErrorKind::corrupt, "-5 points"));
  EXPECT_TRUE(fails_with(with(1000, std::int32_t{0x7fffffff}), ErrorKind::corrupt, "2147483647 points"));
  EXPECT_TRUE(fails_with(with(36, std::int16_t{-1}), ErrorKind::corrupt, "-1 scalars"));
  EXPECT_TRUE(fails_with(with(36, std::int16_t{2}), ErrorKind::corrupt, "need more than the 2"));
  EXPECT_TRUE(fails_with(with(992, std::int32_t{7}), ErrorKind::corrupt, "version 7"));
  EXPECT_TRUE(fails_with(with(996, std::int32_t{999}), ErrorKind::corrupt, "not 1000"));
  EXPECT_TRUE(fails_with(with(948, std::uint32_t{0x53535353}), ErrorKind::corrupt, "voxel order"));
  EXPECT_TRUE(fails_with(with(440, std::nanf("")), ErrorKind::corrupt, "vox_to_ras"));
  EXPECT_TRUE(fails_with(with(12, std::nanf("")), ErrorKind::corrupt, "voxel size"));
}

TEST(Trk, odd_numbers_of_a_header_are_told_and_read_as_the_warning_says) {
  const TemporaryFolder folder;
  const ImageGeometry reference{.size = {10, 11, 12}, .voxel_to_world = {{2, 0, 0, -90, 0, 3, 0, -126, 0, 0, 4, -72}}};
  const auto good = one_point(folder, reference, {-88, -120, -64});  // voxel 1, 2, 2
  struct Found {
    std::vector<std::string> warnings;
    std::vector<float> point;
    bool operator==(const Found&) const = default;
  };
  const auto with = [&](std::size_t at, auto value) {
    auto bytes = good;
    store(bytes, at, value);
    const auto reader = open_trk("a", FileBytes::own(bytes)).value();
    const std::vector<std::string> warnings = reader->layout().warnings;
    return Found{warnings, read_tractogram(*reader, 10, true).value().streamlines.positions};
  };
  const std::vector<float> same = {-88, -120, -64};
  EXPECT_EQ(with(992, std::int32_t{2}), (Found{{}, same}));
  EXPECT_EQ(with(992, std::int32_t{3}), (Found{{"header: version 3 is read as version 2"}, same}));
  const std::string no_affine = "header: vox_to_ras is not recorded; it is taken to be the identity";
  EXPECT_EQ(with(992, std::int32_t{1}), (Found{{"header: version 1 is read as version 2", no_affine}, {1, 2, 2}}));
  EXPECT_EQ(with(500, 0.0F), (Found{{no_affine}, {1, 2, 2}}));
  const std::string last_row = "header: the last row of vox_to_ras is not 0 0 0 1 and is ignored";
  for (const std::size_t at : {488U, 492U, 496U}) EXPECT_EQ(with(at, 1.0F), (Found{{last_row}, same})) << at;
  EXPECT_EQ(with(500, 2.0F), (Found{{last_row}, same}));
  EXPECT_EQ(with(16, 0.0F), (Found{{"header: a voxel size of 0 is replaced by 3 from vox_to_ras"}, same}));
  EXPECT_EQ(with(16, -3.0F).warnings, std::vector<std::string>{"header: the voxel size -3 is negative"});
  EXPECT_EQ(with(8, std::int16_t{0}), (Found{{"header: a grid of 0 voxels is taken as 1"}, same}));
  // Voxels 8 - 1 and 9 - 2 along the axes that run the other way.
  EXPECT_EQ(with(948, std::uint32_t{0}),
            (Found{{"header: the voxel order is not recorded; it is taken to be LPS, TrackVis's default"},
                   {-90 + 2 * 8, -126 + 3 * 8, -64}}));
}

TEST(Trk, names_of_fields_are_made_unique_and_columns_without_one_get_the_name_of_their_kind) {
  const TemporaryFolder folder;
  ASSERT_OK(testing::write_example(folder / "a.trk", TractogramFormat::trk));
  const auto good = file_bytes(folder, "a.trk");
  const auto with_names = [&](std::string first, std::string second) -> Result<std::vector<DataField>> {
    auto bytes = good;
    first.resize(20, '\0');
    second.resize(20, '\0');
    std::memcpy(bytes.data() + 38, first.data(), 20);
    std::memcpy(bytes.data() + 58, second.data(), 20);
    CGL_TRY_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
    return reader->layout().point_fields;
  };
  using namespace std::string_literals;
  const auto field = [](const char* name, std::int64_t columns) {
    return DataField{.name = name, .type = float32_type, .columns = columns};
  };
  using Fields = std::vector<DataField>;
  EXPECT_EQ(with_names("fa", "direction\0003"s).value(), (Fields{field("fa", 1), field("direction", 3)}));
  EXPECT_EQ(with_names("fa", "fa\0003"s).value(), (Fields{field("fa", 1), field("fa_2", 3)}));
  EXPECT_EQ(with_names("", "fa\0003"s).value(), (Fields{field("fa", 3), field("scalars", 1)}));
  EXPECT_EQ(with_names("fa\0000"s, "scalars").value(), (Fields{field("scalars", 1), field("scalars_2", 3)}));
  EXPECT_EQ(with_names("\xb5\xff", "a").value(),
            (Fields{field("\xc2\xb5\xc3\xbf", 1), field("a", 1), field("scalars", 2)}));
  for (const std::string& name : {"\0003"s, "a\0x"s, "a\0003x"s, "a\0-1"s}) {
    EXPECT_TRUE(fails_with(with_names("fa", name), ErrorKind::corrupt, "header: name 1 of the scalars is malformed"));
  }
  EXPECT_TRUE(fails_with(with_names("fa", "a\0004"s), ErrorKind::corrupt, "need more than the 4 columns there are"));
}

TEST(Trk, a_streamline_that_is_cut_off_is_told_with_the_bytes_that_it_needs_and_has) {
  const TemporaryFolder folder;
  auto bytes = one_point(folder, {.size = {10, 11, 12}}, {1, 2, 3, 4, 5, 6});
  // The header, the number of points, and two points less a byte.
  bytes.resize(1000 + 4 + 23);
  ASSERT_OK_AND_ASSIGN(const auto reader, open_trk("a", FileBytes::own(bytes)));
  TractogramBatch batch;
  EXPECT_TRUE(fails_with(reader->next(batch, 10, true), ErrorKind::corrupt,
                         "streamline 0 at byte 1000: its 2 points need 24 bytes, the file has 23 left: it is cut off"));
}

TEST(Trk, fields_that_do_not_fit_the_header_are_refused) {
  EXPECT_TRUE(check_trk_field({.name = std::string(20, 'a'), .type = float32_type, .columns = 1}));
  EXPECT_TRUE(check_trk_field({.name = std::string(18, 'a'), .type = float32_type, .columns = 3}));
  EXPECT_TRUE(fails_with(check_trk_field({.name = std::string(19, 'a'), .type = float32_type, .columns = 3}),
                         ErrorKind::invalid_argument, "20 bytes"));
  // The first and the last letter that Latin-1 has beyond ASCII; then one that it has not, and halves of letters.
  EXPECT_TRUE(check_trk_field({.name = "\xc2\x80\xc3\xbf", .type = float32_type, .columns = 1}));
  for (const char* const name : {"\xe2\x82\xac", "\xc4\x80", "\xc3", "\xc3(", "\xbf"}) {
    EXPECT_TRUE(fails_with(check_trk_field({.name = name, .type = float32_type, .columns = 1}),
                           ErrorKind::invalid_argument, "Latin-1"));
  }
}

TEST(Trk, axes_are_found_for_oblique_and_permuted_affines) {
  ASSERT_OK_AND_ASSIGN(const auto oblique, orientation_of(testing::example_reference().voxel_to_world));
  EXPECT_EQ(oblique[0].world_axis, 0);
  EXPECT_EQ(oblique[0].direction, -1);
  EXPECT_EQ(oblique[1].world_axis, 1);
  EXPECT_EQ(oblique[2].world_axis, 2);
  ASSERT_OK_AND_ASSIGN(const auto permuted, orientation_of({{0, 0, -3, 1, 2, 0, 0, 1, 0, -1, 0, 1}}));
  EXPECT_EQ(permuted[0].world_axis, 1);
  EXPECT_EQ(permuted[1].world_axis, 2);
  EXPECT_EQ(permuted[1].direction, -1);
  EXPECT_EQ(permuted[2].world_axis, 0);
  EXPECT_TRUE(fails_with(orientation_of({{1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0}}), ErrorKind::corrupt, "singular"));
}

}  // namespace
}  // namespace cingulum
