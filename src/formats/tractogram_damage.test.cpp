// Damage and faults of tractograms: no flipped bit of a TRX file goes unnoticed, every cut is an error that
// says where, every failing file call leaves nothing torn, and the same streamlines give the same bytes in any batches.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <functional>
#include <set>

#include "formats/file_bytes.hpp"
#include "formats/tck.hpp"
#include "formats/tractogram.hpp"
#include "formats/trk.hpp"
#include "formats/trx.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::same_tractogram;
using testing::write_example;

std::vector<std::byte> example_file(TractogramFormat format, ElementType position_type = testing::float_type,
                                    bool deflated = false) {
  const TemporaryFolder folder;
  const Status written = write_example(folder / "a.x", format, {.sync = false}, position_type, 5, deflated);
  EXPECT_TRUE(written) << testing::message_of(written);
  const std::string text = folder.content("a.x");
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Result<Tractogram> read_bytes(TractogramFormat format, std::vector<std::byte> bytes, std::size_t max_points = 7) {
  FileBytes file = FileBytes::own(std::move(bytes));
  Result<std::unique_ptr<TractogramReader>> reader =
      format == TractogramFormat::trk   ? open_trk("cut.trk", std::move(file))
      : format == TractogramFormat::tck ? open_tck("cut.tck", std::move(file))
                                        : open_trx("cut.trx", std::move(file));
  if (!reader) return tl::make_unexpected(reader.error());
  return read_tractogram(**reader, max_points, false);
}

TEST(TractogramDamage, every_flipped_bit_of_a_trx_file_is_found_or_changes_nothing) {
  struct Stored {
    ElementType type;
    bool deflated;
  };
  for (const auto& [type, deflated] :
       {Stored{testing::half_type, false}, Stored{testing::float_type, false}, Stored{testing::double_type, false},
        Stored{testing::float_type, true}, Stored{testing::double_type, true}}) {
    const std::vector<std::byte> good = example_file(TractogramFormat::trx, type, deflated);
    ASSERT_LE(good.size(), 16384U);
    const auto expected = read_bytes(TractogramFormat::trx, good);
    ASSERT_OK(expected);
    ASSERT_EQ(expected->layout.deflated, deflated);
    ASSERT_EQ(expected->layout.position_type, type);
    std::size_t found = 0;
    std::set<std::size_t> harmless_bytes;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::vector<std::byte> bytes = good;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const auto read = read_bytes(TractogramFormat::trx, std::move(bytes));
      if (!read) {
        ++found;
        continue;
      }
      harmless_bytes.insert(bit / 8);
      ASSERT_TRUE(same_tractogram(*read, *expected))
          << "bit " << bit % 8 << " of byte " << bit / 8 << " goes unnoticed";
    }
    // Versions and attributes of the zip headers, and of deflated entries the bits that fill the last byte; everything
    // else is covered.
    EXPECT_GT(found, good.size() * 8 * 95 / 100);
    RecordProperty("bits", static_cast<int>(good.size() * 8));
    std::printf("%zu bits, %zu found, %zu bytes of zip versions, attributes and filling do not matter\n",
                good.size() * 8, found, harmless_bytes.size());
  }
}

TEST(TractogramDamage, a_file_cut_at_any_byte_is_an_error_that_names_file_and_sizes) {
  struct Written {
    TractogramFormat format;
    ElementType type = testing::float_type;
    bool deflated = false;
  };
  for (const auto& [format, type, deflated] :
       {Written{TractogramFormat::trx}, Written{TractogramFormat::trx, testing::double_type},
        Written{TractogramFormat::trx, testing::float_type, true}, Written{TractogramFormat::trk},
        Written{TractogramFormat::tck}}) {
    const std::vector<std::byte> good = example_file(format, type, deflated);
    ASSERT_OK(read_bytes(format, good));
    for (std::size_t size = 0; size < good.size(); ++size) {
      const auto read = read_bytes(format, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
      ASSERT_FALSE(read) << tractogram_format_name(format) << " cut to " << size << " bytes";
      const std::string& message = read.error().message();
      ASSERT_TRUE(message.starts_with("reading cut.")) << message;
      ASSERT_EQ(read.error().kind(), ErrorKind::corrupt) << message;
      if (size > 20) {
        ASSERT_NE(message.find_first_of("0123456789"), std::string::npos) << message;
      }
    }
  }
}

TEST(TractogramDamage, bytes_after_the_end_are_not_silent) {
  for (const TractogramFormat format : {TractogramFormat::trx, TractogramFormat::trk, TractogramFormat::tck}) {
    std::vector<std::byte> bytes = example_file(format);
    for (int i = 0; i < 24; ++i) {
      bytes.push_back(std::byte{0});
      const auto reader_bytes = bytes;
      FileBytes file = FileBytes::own(reader_bytes);
      auto reader = format == TractogramFormat::trk   ? open_trk("a", std::move(file))
                    : format == TractogramFormat::tck ? open_tck("a", std::move(file))
                                                      : open_trx("a", std::move(file));
      if (!reader) continue;
      const auto read = read_tractogram(**reader, 100, false);
      EXPECT_TRUE(!read || !(*reader)->layout().warnings.empty()) << tractogram_format_name(format) << " " << i;
    }
  }
}

TEST(TractogramDamage, a_file_packed_by_gzip_reads_as_the_plain_one_and_has_nothing_after_its_end) {
  for (const TractogramFormat format : {TractogramFormat::trx, TractogramFormat::trk, TractogramFormat::tck}) {
    const TemporaryFolder folder;
    const std::vector<std::byte> plain = example_file(format);
    const std::filesystem::path path = folder / "a.gz";
    const gzFile packed = ::gzopen(path.c_str(), "wb");
    ASSERT_NE(packed, nullptr);
    ASSERT_GT(::gzwrite(packed, plain.data(), static_cast<unsigned>(plain.size())), 0);
    ASSERT_EQ(::gzclose(packed), Z_OK);
    ASSERT_OK_AND_ASSIGN(const auto reader, TractogramReader::open(path));
    ASSERT_OK_AND_ASSIGN(const Tractogram read, read_tractogram(*reader, 7, false));
    EXPECT_TRUE(same_tractogram(read, *read_bytes(format, plain))) << tractogram_format_name(format);
    EXPECT_TRUE(reader->layout().warnings.empty()) << tractogram_format_name(format);
  }
}

TEST(TractogramDamage, a_packed_file_that_grows_beyond_all_measure_is_refused_with_the_bound) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "bomb.tck.gz";
  const std::vector<char> zeros(std::size_t{1} << 20U);
  const gzFile packed = ::gzopen(path.c_str(), "wb1");
  ASSERT_NE(packed, nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_GT(::gzwrite(packed, zeros.data(), static_cast<unsigned>(zeros.size())), 0);
  ASSERT_EQ(::gzclose(packed), Z_OK);
  const std::uint64_t bytes = std::filesystem::file_size(path);
  // 64 MiB, and 16 times the file.
  const auto reader = TractogramReader::open(path);
  EXPECT_TRUE(testing::fails_with(reader, ErrorKind::corrupt,
                                  fmt::format("{} bytes unpack to more than {};", bytes, 67108864 + 16 * bytes)));
}

TEST(TractogramDamage, the_same_streamlines_give_the_same_bytes_in_any_batches) {
  for (const TractogramFormat format : {TractogramFormat::trx, TractogramFormat::trk, TractogramFormat::tck}) {
    const TemporaryFolder folder;
    const std::vector<std::byte> expected = example_file(format);
    for (const int batch : {1, 2, 3}) {
      for (const std::size_t buffer : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20U}) {
        ASSERT_OK(write_example(folder / "b", format, {.force = true, .sync = false, .buffer_bytes = buffer},
                                testing::float_type, batch));
        const std::string found = folder.content("b");
        ASSERT_EQ(found.size(), expected.size());
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0)
            << tractogram_format_name(format) << " batches of " << batch;
      }
    }
  }
}

TEST(TractogramDamage, a_deflated_archive_holds_what_a_stored_one_does_and_its_bytes_do_not_depend_on_threads) {
  const TemporaryFolder folder;
  for (const ElementType type : {testing::half_type, testing::float_type, testing::double_type}) {
    const auto stored = read_bytes(TractogramFormat::trx, example_file(TractogramFormat::trx, type));
    const std::vector<std::byte> packed = example_file(TractogramFormat::trx, type, true);
    const auto deflated = read_bytes(TractogramFormat::trx, packed);
    ASSERT_OK(stored);
    ASSERT_OK(deflated);
    EXPECT_TRUE(same_tractogram(*deflated, *stored));
    EXPECT_LT(packed.size(), example_file(TractogramFormat::trx, type).size());
    for (const int threads : {1, 2, 5}) {
      const auto pool = ThreadPool::create(threads).value();
      for (const int batch : {1, 3}) {
        ASSERT_OK(write_example(folder / "b", TractogramFormat::trx,
                                {.force = true, .sync = false, .buffer_bytes = 100}, type, batch, true, pool.get()));
        const std::string found = folder.content("b");
        ASSERT_EQ(found.size(), packed.size());
        EXPECT_EQ(std::memcmp(found.data(), packed.data(), found.size()), 0) << threads << " threads";
      }
    }
  }
  EXPECT_TRUE(testing::fails_with(
      write_example(folder / "c", TractogramFormat::trx_folder, {.sync = false}, testing::float_type, 5, true),
      ErrorKind::invalid_argument, "only an archive is deflated"));
}

TEST(TractogramDamage, batches_of_any_size_hold_the_same_streamlines) {
  for (const TractogramFormat format : {TractogramFormat::trx, TractogramFormat::trk, TractogramFormat::tck}) {
    const std::vector<std::byte> bytes = example_file(format);
    const auto expected = read_bytes(format, bytes, 1000000);
    ASSERT_OK(expected);
    for (const std::size_t points : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{45}}) {
      const auto read = read_bytes(format, bytes, points);
      ASSERT_OK(read);
      EXPECT_TRUE(same_tractogram(*read, *expected)) << tractogram_format_name(format) << " " << points;
    }
  }
}

// What is in a folder, files of folders in it too.
std::set<std::string> tree(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.insert(entry.path().lexically_relative(folder).native());
  }
  return names;
}

class FailingWriter : public ::testing::TestWithParam<TractogramFormat> {};

TEST_P(FailingWriter, a_failure_at_any_call_leaves_nothing_and_an_interruption_or_short_write_does_no_harm) {
  const TractogramFormat format = GetParam();
  std::set<std::string> complete;
  {
    const TemporaryFolder folder;
    ASSERT_OK(write_example(folder / "out", format, {.buffer_bytes = 64}));
    complete = tree(folder.path());
  }
  for (const FileFault kind : {FileFault{.error = EIO}, FileFault{.error = ENOSPC, .lasting = true},
                               FileFault{.error = EINTR}, FileFault{.short_write = true}}) {
    std::size_t failures = 0;
    for (std::size_t call = 0;; ++call) {
      FileFault fault = kind;
      fault.at_call = call;
      const TemporaryFolder folder;
      FaultyFileLayer layer(fault);
      // The small buffer makes the TRX writer put its arrays into temporary files.
      const Status status =
          write_example(folder / "out", format, {.sync = kind.error == EIO, .buffer_bytes = 64, .layer = &layer});
      if (status) {
        EXPECT_EQ(tree(folder.path()), complete) << "call " << call;
        const auto read = read_tractogram(folder / "out");
        EXPECT_TRUE(read) << testing::message_of(read);
      } else {
        ++failures;
        EXPECT_TRUE(tree(folder.path()).empty()) << "call " << call << ": " << status.error().message();
        EXPECT_TRUE(status.error().message().starts_with("writing " + (folder / "out").native()))
            << status.error().message();
        EXPECT_TRUE(fault.error != EINTR && !fault.short_write) << "call " << call << ": " << status.error().message();
        EXPECT_NE(status.error().message().find(cause_text(fault.error)), std::string::npos)
            << "call " << call << ": " << status.error().message();
      }
      if (!layer.fault_was_met()) {
        EXPECT_TRUE(status);
        EXPECT_GT(call, 7U);
        break;
      }
    }
    if (kind.error == EIO) {
      EXPECT_GT(failures, 5U);
    }
  }
}

TEST(TractogramDamage, a_failure_at_any_call_of_a_deflated_archive_leaves_nothing) {
  for (std::size_t call = 0;; ++call) {
    const TemporaryFolder folder;
    FaultyFileLayer layer({.at_call = call, .error = ENOSPC, .lasting = true});
    const Status status =
        write_example(folder / "out", TractogramFormat::trx, {.sync = false, .buffer_bytes = 64, .layer = &layer},
                      testing::float_type, 2, true);
    if (!layer.fault_was_met()) {
      EXPECT_TRUE(status);
      EXPECT_GT(call, 7U);
      return;
    }
    if (status) continue;
    EXPECT_TRUE(folder.names().empty()) << "call " << call << ": " << status.error().message();
    EXPECT_TRUE(status.error().message().starts_with("writing " + (folder / "out").native()))
        << status.error().message();
  }
}

TEST_P(FailingWriter, a_batch_that_contradicts_itself_is_refused) {
  const TractogramFormat format = GetParam();
  const auto refuses = [&](const std::function<void(TractogramBatch&)>& change, std::string_view words) {
    const TemporaryFolder folder;
    const auto writer =
        TractogramWriter::create(folder / "out", testing::example_layout(format, testing::float_type), {});
    ASSERT_TRUE(writer) << testing::message_of(writer);
    TractogramBatch batch = testing::example_batch(format != TractogramFormat::tck, 0, 5);
    change(batch);
    EXPECT_TRUE(testing::fails_with((*writer)->append(batch), ErrorKind::invalid_argument, words));
  };
  refuses([](TractogramBatch& batch) { batch.offsets.front() = 1; }, "must start with 0");
  refuses([](TractogramBatch& batch) { batch.positions.push_back(1); }, "coordinates for");
  refuses([](TractogramBatch& batch) { batch.point_data.emplace_back(); }, "per-point fields");
}

TEST_P(FailingWriter, a_failure_leaves_the_old_file_as_it_was) {
  const TractogramFormat format = GetParam();
  const bool is_folder = format == TractogramFormat::trx_folder;
  for (std::size_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const TemporaryFolder folder;
    if (is_folder) std::filesystem::create_directory(folder / "out");
    const char* const marked = is_folder ? "out/header.json" : "out";
    folder.put(marked, "the old content");
    FaultyFileLayer layer({.at_call = call, .error = ENOSPC});
    const Status status = write_example(folder / "out", format, {.force = true, .buffer_bytes = 64, .layer = &layer});
    EXPECT_EQ(folder.names(), std::vector<std::string>{"out"});
    // Where only the last sync of the folder failed, the new content is there, and the message says so.
    const bool replaced = !status && status.error().message().find("is complete, but syncing") != std::string::npos;
    EXPECT_EQ(folder.content(marked) == "the old content", !status && !replaced) << testing::message_of(status);
    if (!status) {
      EXPECT_NE(status.error().message().find(cause_text(ENOSPC)), std::string::npos) << status.error().message();
    }
    if (!layer.fault_was_met()) {
      EXPECT_TRUE(status);
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, FailingWriter,
                         ::testing::Values(TractogramFormat::trx, TractogramFormat::trx_folder, TractogramFormat::trk,
                                           TractogramFormat::tck),
                         [](const ::testing::TestParamInfo<TractogramFormat>& format) {
                           std::string name(tractogram_format_name(format.param));
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace cingulum
