#include "formats/trx.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/read_file.hpp"
#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"
#include "formats/tractogram_batch.hpp"
#include "numerics/float16.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::bytes_of;
using testing::example_batch;
using testing::example_groups;
using testing::example_layout;
using testing::fails_with;
using testing::write_example;

void expect_example(const Tractogram& read) {
  EXPECT_EQ(read.streamlines.offsets, example_batch().offsets);
  EXPECT_EQ(read.streamlines.positions, example_batch().positions);
  EXPECT_EQ(read.layout.reference, testing::example_reference());
  EXPECT_EQ(read.layout.streamline_count, 5);
  EXPECT_EQ(read.layout.point_count, 46);
  ASSERT_EQ(read.groups.size(), 2U);
}

TEST(Trx, what_is_written_is_read_again) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx", TractogramFormat::trx));
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trx"));
  expect_example(read);
  EXPECT_EQ(read.layout.point_fields, example_layout(TractogramFormat::trx).point_fields);
  EXPECT_EQ(read.layout.streamline_fields, example_layout(TractogramFormat::trx).streamline_fields);
  EXPECT_EQ(read.streamlines.point_data, example_batch().point_data);
  EXPECT_EQ(read.streamlines.streamline_data, example_batch().streamline_data);
  EXPECT_EQ(read.groups[0].name, "left");
  EXPECT_EQ(read.groups[0].streamlines, example_groups()[0].streamlines);
  EXPECT_EQ(read.groups[0].fields, example_groups()[0].fields);
  EXPECT_EQ(read.groups[0].data, example_groups()[0].data);
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(folder / "a.trx"));
  EXPECT_TRUE(reader->verify());
}

TEST(Trx, a_folder_is_written_and_read_again) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx.d", TractogramFormat::trx_folder));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.trx.d"});
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trx.d"));
  expect_example(read);
  EXPECT_TRUE(fails_with(write_example(folder / "a.trx.d", TractogramFormat::trx_folder), ErrorKind::already_exists,
                         "use force to replace it"));
  ASSERT_OK(write_example(folder / "a.trx.d", TractogramFormat::trx_folder, {.force = true}));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.trx.d"});
}

TEST(Trx, a_folder_that_is_not_trx_is_never_replaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "photos");
  folder.put("photos/one.jpg", "x");
  EXPECT_TRUE(fails_with(write_example(folder / "photos", TractogramFormat::trx_folder, {.force = true}),
                         ErrorKind::already_exists, "not a TRX folder"));
  EXPECT_EQ(folder.content("photos/one.jpg"), "x");
}

// Many streamlines are written, in parts and by several threads, into a file in memory too.
TEST(TractogramWriters, positions_that_a_batch_makes_give_the_bytes_of_those_that_it_has) {
  const TemporaryFolder folder;
  FaultyFileLayer in_memory;
  in_memory.put_into_memory();
  const auto pool = ThreadPool::create(4).value();
  struct Case {
    TractogramFormat format;
    ElementType type;
    bool deflated;
  };
  for (const auto& [format, type, deflated] :
       {Case{TractogramFormat::trx, testing::float_type, false}, Case{TractogramFormat::trx, testing::float_type, true},
        Case{TractogramFormat::trx, testing::half_type, false},
        Case{TractogramFormat::trx, testing::double_type, false},
        Case{TractogramFormat::tck, testing::float_type, false},
        Case{TractogramFormat::tck, testing::double_type, false},
        Case{TractogramFormat::trk, testing::float_type, false}}) {
    const bool fields = format != TractogramFormat::tck;
    TractogramBatch whole;
    for (int i = 0; i < 3000; ++i) whole.append(example_batch(fields));
    TractogramBatch making = whole;
    making.positions.clear();
    std::atomic<std::size_t> made = 0;
    making.make_positions = [&](std::size_t first, std::size_t last, std::span<float> out) {
      made += last - first;
      const auto begin = whole.positions.begin() + 3 * static_cast<std::ptrdiff_t>(whole.offsets[first]);
      EXPECT_EQ(out.size(), 3 * (whole.offsets[last] - whole.offsets[first]));
      std::copy_n(begin, out.size(), out.begin());
    };
    for (FileLayer* const layer : {&FileLayer::system(), static_cast<FileLayer*>(&in_memory)}) {
      std::string contents[2];
      for (const bool makes : {false, true}) {
        TractogramLayout layout = example_layout(format, type);
        layout.deflated = deflated;
        layout.deflating_pool = pool.get();
        ASSERT_OK_AND_ASSIGN(
            const auto writer,
            TractogramWriter::create(folder / "a", layout, {.force = true, .layer = layer, .pool = pool.get()}));
        EXPECT_TRUE(writer->makes_positions());
        made = 0;
        ASSERT_OK(writer->append(makes ? making : whole));
        EXPECT_EQ(made, makes ? whole.streamline_count() : 0);
        ASSERT_OK(writer->append(example_batch(fields)));
        ASSERT_OK(writer->commit());
        ASSERT_OK_AND_ASSIGN(contents[makes ? 1 : 0], read_text_file(folder / "a"));
      }
      // What repeats itself is packed small.
      EXPECT_TRUE(deflated || contents[0].size() > std::size_t{1} << 20U) << contents[0].size();
      EXPECT_TRUE(contents[0] == contents[1]) << static_cast<int>(format) << type.name();
    }
    making.positions = {1, 2, 3};
    EXPECT_TRUE(fails_with(check_batch(example_layout(format, type), making), ErrorKind::invalid_argument, "makes"));
  }
}

TEST(Trx, a_batch_whose_fields_do_not_fit_its_rows_is_refused) {
  const TractogramLayout layout = example_layout(TractogramFormat::trx);
  ASSERT_OK(check_batch(layout, example_batch()));
  // A byte too much, though as many whole rows; a row too much; a row too few; none.
  for (const std::ptrdiff_t change : {1, 4, -4, -20}) {
    TractogramBatch batch = example_batch();
    auto& field = batch.streamline_data[0];  // five rows of four bytes
    field.resize(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(field.size()) + change));
    EXPECT_TRUE(fails_with(check_batch(layout, batch), ErrorKind::invalid_argument, "rows of 4 were expected"))
        << change;
  }
  TractogramBatch lacking = example_batch();
  lacking.point_data.pop_back();
  EXPECT_TRUE(
      fails_with(check_batch(layout, lacking), ErrorKind::invalid_argument, "1 per-point fields, the layout 2"));
  TractogramLayout without_columns = layout;
  without_columns.streamline_fields[0].columns = 0;
  EXPECT_TRUE(fails_with(check_batch(without_columns, example_batch()), ErrorKind::invalid_argument, "rows of 0"));
}

TEST(Trx, nothing_is_left_without_commit) {
  const TemporaryFolder folder;
  for (const TractogramFormat format :
       {TractogramFormat::trx, TractogramFormat::trx_folder, TractogramFormat::trk, TractogramFormat::tck}) {
    ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "a", example_layout(format), {}));
    ASSERT_OK(writer->append(example_batch(format != TractogramFormat::tck)));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Trx, half_precision_rounds_to_nearest_even_once) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx", TractogramFormat::trx, {}, float16_type));
  ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / "a.trx"));
  const auto expected = example_batch().positions;
  ASSERT_EQ(read.streamlines.positions.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(read.streamlines.positions[i], numerics::float16_to_float(numerics::float_to_float16(expected[i])));
  }
  // Just above the middle of 1 and the next float16: by way of float it would be exactly the middle, and go down to
  // even.
  EXPECT_EQ(double_to_float16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(double_to_float16(1.0 + 0x1p-11), 0x3c00);
  EXPECT_EQ(double_to_float16(-(1.0 + 0x1p-11 + 0x1p-40)), 0xbc01);
  EXPECT_EQ(double_to_float16(1.0 + 0x1p-11 - 0x1p-40), 0x3c00);
  EXPECT_EQ(double_to_float16(1e-300), 0);
  EXPECT_EQ(double_to_float16(1e300), 0x7c00);
}

TEST(Trx, all_float16_and_what_lies_between_them_convert_as_numerics_says) {
  std::vector<std::byte> bytes(std::size_t{2} << 16U);
  for (std::uint32_t float16 = 0; float16 < 0x10000U; ++float16) {
    const auto value = static_cast<std::uint16_t>(float16);
    std::memcpy(bytes.data() + float16 * 2, &value, sizeof(value));
  }
  TractogramBatch batch;
  decode_positions(bytes, float16_type, true, 0, batch);
  ASSERT_EQ(batch.positions.size(), 0x10000U);
  for (std::uint32_t float16 = 0; float16 < 0x10000U; ++float16) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(batch.positions[float16]), numerics::float16_to_float_bits(float16))
        << float16;
  }
  // Ordinary numbers, ties, subnormals and the largest, in one stream, so that blocks of both kinds come.
  batch.positions.clear();
  for (std::uint32_t bits = 0x32000000U; bits < 0x477ff000U; bits += 0x2b7U) {
    batch.positions.push_back(std::bit_cast<float>(bits | (bits % 3 == 0 ? 0x80000000U : 0U)));
    if (bits % 1000 == 0) batch.positions.push_back(std::bit_cast<float>((bits & 0xffffe000U) | 0x1000U));
  }
  std::vector<std::byte> encoded(batch.positions.size() * sizeof(std::uint16_t));
  ASSERT_OK(encode_positions(batch, 0, float16_type, encoded));
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    std::uint16_t float16;
    std::memcpy(&float16, encoded.data() + i * 2, sizeof(float16));
    ASSERT_EQ(float16, numerics::float_to_float16(batch.positions[i])) << batch.positions[i];
  }
}

TEST(Trx, a_position_beyond_half_precision_is_refused) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.reference = testing::example_reference();
  layout.position_type = float16_type;
  ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.trx", layout, {}));
  TractogramBatch batch;
  batch.offsets = {0, 1};
  batch.positions = {70000, 0, 0};
  EXPECT_TRUE(fails_with(writer->append(batch), ErrorKind::invalid_argument, "too large for float16"));
  EXPECT_TRUE(fails_with(writer->commit(), ErrorKind::invalid_state, "earlier failure"));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Trx, positions_of_every_type_keep_their_bits) {
  const TemporaryFolder folder;
  TractogramBatch batch;
  batch.offsets = {0, 2};
  batch.positions64 = {0.1, 1e-7, 3.0, -44.25, 1.0 / 3, 1e5};
  TractogramLayout layout;
  layout.reference = testing::example_reference();
  layout.position_type = float64_type;
  ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / "a.trx", layout, {}));
  ASSERT_OK(writer->append(batch));
  ASSERT_OK(writer->commit());
  ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(folder / "a.trx"));
  TractogramBatch read;
  ASSERT_OK(reader->next(read, 10, false));
  EXPECT_EQ(read.positions64, batch.positions64);
  EXPECT_TRUE(read.positions.empty());
  // Asked for as float, each is rounded once.
  ASSERT_OK_AND_ASSIGN(const auto again, TractogramReader::open(folder / "a.trx"));
  ASSERT_OK(again->next(read, 10, true));
  EXPECT_EQ(read.positions, (std::vector<float>{0.1F, 1e-7F, 3.0F, -44.25F, 1.0F / 3, 1e5F}));
  EXPECT_TRUE(read.positions64.empty());
}

TEST(Trx, positions_that_are_not_three_columns_of_floating_numbers_are_refused) {
  const TemporaryFolder folder;
  ASSERT_OK(write_example(folder / "a.trx.d", TractogramFormat::trx_folder));
  std::string name = "positions.3.float32";
  for (const char* const other : {"positions.3.int32", "positions.3.uint32", "positions.2.float32", "positions.float32",
                                  "positions.6.float16", "positions.2.int32"}) {
    std::filesystem::rename(folder / "a.trx.d" / name, folder / "a.trx.d" / other);
    name = other;
    EXPECT_TRUE(fails_with(read_tractogram(folder / "a.trx.d"), ErrorKind::corrupt,
                           "'" + name + "': positions are float16, float32 or float64 in 3 columns"));
  }
  std::filesystem::rename(folder / "a.trx.d" / name, folder / "a.trx.d" / "positions.3.float32");
  EXPECT_TRUE(read_tractogram(folder / "a.trx.d"));
}

TEST(Trx, positions_of_a_file_begin_at_a_multiple_of_64_bytes) {
  const TemporaryFolder folder;
  const std::vector<std::byte> positions = bytes_of(example_batch().positions);
  const std::string_view stored(reinterpret_cast<const char*>(positions.data()), positions.size());
  // Headers of five lengths.
  for (std::int64_t size = 1; size < 65536; size *= 10) {
    TractogramLayout layout = example_layout(TractogramFormat::trx);
    layout.reference->size[0] = size;
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         TractogramWriter::create(folder / "a.trx", layout, {.force = true, .sync = false}));
    ASSERT_OK(writer->append(example_batch()));
    ASSERT_OK(writer->commit());
    const std::size_t place = folder.content("a.trx").find(stored);
    ASSERT_NE(place, std::string::npos);
    EXPECT_EQ(place % 64, 0U) << size;
  }
}

TEST(Trx, a_folder_is_synced_inside_and_out_after_its_files_and_not_where_that_is_not_wanted) {
  const TemporaryFolder folder;
  const std::string target = (folder / "a.trx.d").native();
  for (const bool replaces : {false, true}) {
    for (const bool sync : {true, false}) {
      if (!replaces) std::filesystem::remove_all(target);
      FaultyFileLayer layer;
      layer.skip_real_syncs();
      ASSERT_OK(
          write_example(target, TractogramFormat::trx_folder, {.force = replaces, .sync = sync, .layer = &layer}));
      std::multiset<std::string> synced;
      std::size_t named = 0;
      std::size_t outside_synced = 0;
      std::size_t call_number = 0;
      for (const RecordedCall& call : layer.trace()) {
        ++call_number;
        if (call.other == target) named = call_number;
        if (call.call != FileCall::sync_folder) continue;
        if (call.path == folder.path().native()) {
          outside_synced = call_number;
        } else if (call.path.find(".partial-") != std::string::npos) {
          synced.insert(call.path.substr(call.path.find('/', call.path.find(".partial-")) == std::string::npos
                                             ? call.path.size()
                                             : call.path.find('/', call.path.find(".partial-"))));
        }
      }
      if (sync) {
        for (const char* const inside : {"", "/dpv", "/dps", "/groups", "/dpg", "/dpg/left"}) {
          EXPECT_GE(synced.count(inside), 1U) << inside;
        }
        EXPECT_GT(outside_synced, named);
      } else {
        EXPECT_TRUE(synced.empty());
        EXPECT_EQ(outside_synced, 0U);
      }
      // An exchange with an old folder goes past the layer.
      if (!replaces) {
        EXPECT_GT(named, 0U);
      }
    }
  }
}

TEST(Trx, an_empty_tractogram_is_written_and_read) {
  const TemporaryFolder folder;
  for (const TractogramFormat format :
       {TractogramFormat::trx, TractogramFormat::trx_folder, TractogramFormat::trk, TractogramFormat::tck}) {
    const std::string name = "empty" + std::to_string(static_cast<int>(format));
    ASSERT_OK_AND_ASSIGN(const auto writer, TractogramWriter::create(folder / name, example_layout(format), {}));
    ASSERT_OK(writer->commit());
    ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(folder / name));
    EXPECT_EQ(read.streamlines.streamline_count(), 0U);
    EXPECT_EQ(read.streamlines.point_count(), 0U);
  }
}

TEST(Trx, batches_and_groups_that_do_not_fit_are_refused) {
  const TemporaryFolder folder;
  const auto with_writer = [&](auto&& act) -> Status {
    CGL_TRY_ASSIGN(const auto writer,
                   TractogramWriter::create(folder / "a.trx", example_layout(TractogramFormat::trx), {}));
    return act(*writer);
  };
  const auto append = [&](auto&& spoil) {
    return with_writer([&](TractogramWriter& writer) {
      TractogramBatch batch = example_batch();
      spoil(batch);
      return writer.append(batch);
    });
  };
  EXPECT_TRUE(append([](TractogramBatch&) {}));
  EXPECT_TRUE(
      fails_with(append([](TractogramBatch& b) { b.offsets[2] = 2; }), ErrorKind::invalid_argument, "decreases"));
  EXPECT_TRUE(
      fails_with(append([](TractogramBatch& b) { b.offsets[0] = 1; }), ErrorKind::invalid_argument, "start with 0"));
  EXPECT_TRUE(fails_with(append([](TractogramBatch& b) { b.positions.pop_back(); }), ErrorKind::invalid_argument,
                         "coordinates"));
  EXPECT_TRUE(fails_with(append([](TractogramBatch& b) { b.point_data[1].pop_back(); }), ErrorKind::invalid_argument,
                         "direction"));
  EXPECT_TRUE(fails_with(append([](TractogramBatch& b) { b.streamline_data.pop_back(); }), ErrorKind::invalid_argument,
                         "fields"));
  EXPECT_TRUE(fails_with(with_writer([](TractogramWriter& writer) -> Status {
                           CGL_TRY(writer.add_group({.name = "far", .streamlines = {5}, .fields = {}, .data = {}}));
                           CGL_TRY(writer.append(example_batch()));
                           return writer.commit();
                         }),
                         ErrorKind::invalid_argument, "streamline 5"));
  for (const char* name : {"", "a.b", "a/b", "..", "a\\b", "a\nb", "c:d"}) {
    EXPECT_TRUE(fails_with(with_writer([&](TractogramWriter& writer) {
                             return writer.add_group({.name = name, .streamlines = {}, .fields = {}, .data = {}});
                           }),
                           ErrorKind::invalid_argument, "name"));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Trx, names_have_1_to_200_bytes_and_no_control_characters) {
  const auto good = [](const std::string& name) { return check_trx_name("group", name).has_value(); };
  EXPECT_TRUE(good("a b~\xc2\xb5"));
  EXPECT_TRUE(good(std::string(200, 'a')));
  EXPECT_FALSE(good(std::string(201, 'a')));
  EXPECT_FALSE(good("a\x1f"));
  EXPECT_FALSE(good("a\x7f"));
}

TEST(Trx, headers_say_what_is_wrong_with_them) {
  const std::string affine = "\"VOXEL_TO_RASMM\":[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]";
  const std::string rest = ",\"DIMENSIONS\":[1,2,3],\"NB_STREAMLINES\":4,\"NB_VERTICES\":5}";
  ASSERT_OK_AND_ASSIGN(const TrxHeader header, parse_trx_header("{" + affine + rest));
  EXPECT_EQ(header.streamlines, 4U);
  EXPECT_EQ(header.points, 5U);
  EXPECT_EQ(header.reference.size, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_TRUE(parse_trx_header("{\"VOXEL_TO_RASMM\":[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1]" + rest));
  const auto refused = [](const std::string& text, const char* why) {
    return fails_with(parse_trx_header(text), ErrorKind::corrupt, why);
  };
  EXPECT_TRUE(refused("", "JSON"));
  EXPECT_TRUE(refused("[]", "not a json object"));
  EXPECT_TRUE(refused("{" + affine + "}", "NB_STREAMLINES is missing"));
  EXPECT_TRUE(refused("{\"VOXEL_TO_RASMM\":[[1,0,0],[0,1,0],[0,0,1]]" + rest, "4 x 4"));
  EXPECT_TRUE(refused("{\"VOXEL_TO_RASMM\":[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]" + rest, "last row"));
  EXPECT_TRUE(refused("{" + affine + ",\"DIMENSIONS\":[1,2],\"NB_STREAMLINES\":4,\"NB_VERTICES\":5}", "DIMENSIONS"));
  EXPECT_TRUE(refused("{" + affine + ",\"DIMENSIONS\":[1,2,0],\"NB_STREAMLINES\":4,\"NB_VERTICES\":5}", "size 0"));
  EXPECT_TRUE(refused("{" + affine + ",\"DIMENSIONS\":[1,2,3],\"NB_STREAMLINES\":-4,\"NB_VERTICES\":5}", "-4"));
  EXPECT_TRUE(
      refused("{" + affine + ",\"DIMENSIONS\":[1,2,3],\"NB_STREAMLINES\":\"4\",\"NB_VERTICES\":5}", "whole number"));
  EXPECT_TRUE(refused(std::string(100, '['), "64 levels"));
  // Counts as others write them, where they are whole numbers that a double holds.
  const auto counted = [&](const std::string& count) {
    return parse_trx_header("{" + affine + ",\"DIMENSIONS\":[1,2,3],\"NB_STREAMLINES\":" + count +
                            ",\"NB_VERTICES\":5}");
  };
  EXPECT_EQ(counted("0.0").value().streamlines, 0U);
  EXPECT_EQ(counted("12.0").value().streamlines, 12U);
  EXPECT_EQ(counted("9007199254740992.0").value().streamlines, 9007199254740992U);
  EXPECT_EQ(counted("18446744073709551615").value().streamlines, ~std::uint64_t{0});
  for (const char* const count : {"12.5", "-1.0", "9007199254740994.0", "null", "true"}) {
    EXPECT_TRUE(fails_with(counted(count), ErrorKind::corrupt, "NB_STREAMLINES is ")) << count;
  }
  const auto sized = [&](const char* size) {
    return parse_trx_header("{" + affine + ",\"DIMENSIONS\":[1,2," + size +
                            "],\"NB_STREAMLINES\":4,\"NB_VERTICES\":5}");
  };
  EXPECT_EQ(sized("65535").value().reference.size[2], 65535);
  EXPECT_TRUE(fails_with(sized("65536"), ErrorKind::corrupt, "DIMENSIONS has the size 65536, not 1 to 65535"));
  EXPECT_TRUE(refused("{\"VOXEL_TO_RASMM\":[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,\"1\"]" + rest, "4 x 4"));
  EXPECT_TRUE(refused("{\"VOXEL_TO_RASMM\":[[1,0,0,0],[0,1,0,0],[0,0,1,0],1]" + rest, "4 x 4"));
  for (const char* const row : {"1,0,0,1", "0,1,0,1", "0,0,1,1", "0,0,0,2"}) {
    EXPECT_TRUE(refused("{\"VOXEL_TO_RASMM\":[1,0,0,0,0,1,0,0,0,0,1,0," + std::string(row) + "]" + rest, "last row"));
  }
  // Room for any counts: the same length.
  EXPECT_EQ(
      format_trx_header({.reference = {}, .streamlines = 0, .points = 0}, 400).size(),
      format_trx_header({.reference = {}, .streamlines = ~std::uint64_t{0}, .points = ~std::uint64_t{0}}, 400).size());
}

}  // namespace
}  // namespace cingulum
