#include "formats/gzip.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

// Text-like bytes: compressible, and with matches across pieces.
std::vector<std::byte> some_bytes(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = i > 1000 && random() % 4 != 0 ? bytes[i - 1 - random() % 1000] : static_cast<std::byte>(random() % 64);
  }
  return bytes;
}

// By zlib, the independent judge; any member, anywhere.
std::vector<std::byte> zlib_compress(std::span<const std::byte> bytes, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::vector<std::byte> output(::deflateBound(&stream, bytes.size()) + 32);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  output.resize(output.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return output;
}

// Gives at most `step` bytes at a time.
class DrippingStream final : public ByteStream {
 public:
  DrippingStream(std::span<const std::byte> bytes, std::size_t step) : inner_(bytes), step_(step) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    return inner_.read(to.first(std::min(to.size(), step_)));
  }

 private:
  MemoryStream inner_;
  std::size_t step_;
};

Result<std::vector<std::byte>> decompress(std::span<const std::byte> bytes, std::size_t step = 65536,
                                          bool ahead = false, std::size_t drip = 1 << 30) {
  CGL_TRY_ASSIGN(auto stream, open_gzip(std::make_unique<DrippingStream>(bytes, drip)));
  if (ahead) stream = read_ahead(std::move(stream));
  std::vector<std::byte> output;
  std::vector<std::byte> block(step);
  while (true) {
    CGL_TRY_ASSIGN(const std::size_t got, stream->read(block));
    if (got == 0) return output;
    output.insert(output.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(got));
  }
}

void append(std::vector<std::byte>& to, std::span<const std::byte> from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string write_gzip(const TemporaryFolder& folder, std::span<const std::byte> bytes, int level, int threads,
                       std::size_t step, DeflateSearch search = DeflateSearch::matches) {
  auto pool = ThreadPool::create(threads);
  auto file = AtomicFile::create(folder / "a.gz", {.force = true, .sync = false});
  auto writer = GzipWriter::create(*file, level, threads == 0 ? nullptr : pool->get(), search);
  for (std::size_t i = 0; i < bytes.size(); i += step) {
    EXPECT_TRUE(writer->append(bytes.subspan(i, std::min(step, bytes.size() - i))));
  }
  EXPECT_TRUE(writer->finish());
  EXPECT_TRUE(file->commit());
  return folder.content("a.gz");
}

TEST(GzipReading, members_of_all_sizes_are_read_one_after_the_other) {
  std::vector<std::byte> all, compressed;
  for (const int count : {0, 1, 2, 7, 100, 32768, 32769, 300000, 0, 5}) {
    const auto size = static_cast<std::size_t>(count);
    for (const int level : {0, 1, 6, 9}) {
      const auto bytes = some_bytes(size, static_cast<unsigned>(size));
      append(all, bytes);
      append(compressed, zlib_compress(bytes, level));
    }
  }
  for (const int step : {7, 1000, 1000000}) {
    const auto output = decompress(compressed, static_cast<std::size_t>(step));
    ASSERT_TRUE(output) << output.error().message();
    EXPECT_EQ(*output, all);
  }
  const auto ahead = decompress(compressed, 12345, true);
  ASSERT_TRUE(ahead) << ahead.error().message();
  EXPECT_EQ(*ahead, all);
}

TEST(GzipReading, members_are_read_wherever_the_bytes_are_cut_on_their_way) {
  std::vector<std::byte> all, compressed;
  for (std::size_t size = 0; size < 40; ++size) {
    const auto bytes = some_bytes(size * size, static_cast<unsigned>(size));
    append(all, bytes);
    append(compressed, zlib_compress(bytes));
  }
  for (const int drip : {1, 2, 3, 9, 101}) {
    const auto output = decompress(compressed, 65536, false, static_cast<std::size_t>(drip));
    ASSERT_TRUE(output) << drip << ": " << output.error().message();
    EXPECT_EQ(*output, all);
  }
}

TEST(GzipReading, zeros_behind_the_last_member_are_padding_and_anything_else_is_refused) {
  auto compressed = zlib_compress(some_bytes(1000));
  const std::size_t size = compressed.size();
  compressed.resize(size + 600000);
  EXPECT_TRUE(decompress(compressed));
  compressed.back() = std::byte{1};
  const auto output = decompress(compressed);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::corrupt);
  EXPECT_NE(output.error().message().find("byte " + std::to_string(compressed.size() - 1)), std::string::npos)
      << output.error().message();
  compressed[size] = std::byte{'x'};
  const auto garbage = decompress(compressed);
  ASSERT_FALSE(garbage);
  EXPECT_NE(garbage.error().message().find("byte " + std::to_string(size) + " begins neither"), std::string::npos)
      << garbage.error().message();
}

TEST(GzipReading, every_truncation_is_an_error_that_names_the_byte) {
  const auto compressed = zlib_compress(some_bytes(3000));
  for (std::size_t size = 0; size < compressed.size(); ++size) {
    const auto output = decompress(std::span(compressed).first(size));
    ASSERT_FALSE(output) << size;
    EXPECT_EQ(output.error().kind(), ErrorKind::corrupt);
    EXPECT_NE(output.error().message().find("the file ends at byte " + std::to_string(size)), std::string::npos)
        << output.error().message();
  }
}

TEST(GzipReading, what_came_before_damage_is_given_and_then_the_failure_again_and_again) {
  auto compressed = zlib_compress(some_bytes(200000));
  compressed.resize(compressed.size() - 4);
  for (const bool ahead : {false, true}) {
    auto opened = open_gzip(std::make_unique<MemoryStream>(compressed));
    ASSERT_TRUE(opened);
    auto stream = ahead ? read_ahead(std::move(*opened)) : std::move(*opened);
    std::vector<std::byte> block(4096);
    std::size_t total = 0;
    while (true) {
      const auto got = stream->read(block);
      if (!got) break;
      ASSERT_GT(*got, 0U);
      total += *got;
    }
    EXPECT_EQ(total, 200000U);
    EXPECT_FALSE(stream->read(block));
  }
}

TEST(GzipReading, a_stream_that_reads_ahead_can_be_left_at_any_time) {
  const auto compressed = zlib_compress(std::vector<std::byte>(std::size_t{20} << 20U));
  for (const std::size_t wanted : {std::size_t{0}, std::size_t{1}, std::size_t{3} << 20U}) {
    auto opened = open_gzip(std::make_unique<MemoryStream>(compressed));
    const auto stream = read_ahead(std::move(*opened));
    std::vector<std::byte> block(wanted);
    std::size_t got = 0;
    while (got < wanted) got += *stream->read(std::span(block).subspan(got));
  }
}

TEST(GzipWriting, bytes_do_not_depend_on_threads_or_on_how_they_were_appended) {
  const TemporaryFolder folder;
  // Below, at and above the ends of pieces (512 KiB) and of batches.
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{524287}, std::size_t{524288},
                                 std::size_t{524289}, std::size_t{2} << 20U, std::size_t{5000000}}) {
    const auto bytes = some_bytes(size);
    const std::string one = write_gzip(folder, bytes, 1, 1, 1 << 20);
    const auto read = decompress(std::as_bytes(std::span(one)));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, bytes);
    EXPECT_EQ(write_gzip(folder, bytes, 1, 2, 100000), one);
    EXPECT_EQ(write_gzip(folder, bytes, 1, 8, 777777), one);
  }
}

// By zlib itself, which must find one member and nothing behind it.
std::vector<std::byte> zlib_decompress(const std::string& content, std::size_t expected) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::vector<std::byte> output(expected + 1);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  output.resize(output.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return output;
}

TEST(GzipWriting, zlib_reads_the_one_member_and_the_header_says_nothing_of_time_or_name) {
  const TemporaryFolder folder;
  const auto bytes = some_bytes(1500000);
  std::size_t previous = bytes.size();
  for (const int level : {1, 6, 9}) {
    const std::string content = write_gzip(folder, bytes, level, 2, 1 << 20);
    EXPECT_EQ(zlib_decompress(content, bytes.size()), bytes);
    EXPECT_EQ(content.substr(0, 8), std::string("\x1f\x8b\x08\0\0\0\0\0", 8));
    EXPECT_EQ(content[9], '\xff');
    EXPECT_LE(content.size(), previous);
    previous = content.size();
  }
}

// Voxels of a mask: noise within, zeros around it.
std::vector<std::byte> masked_noise(std::size_t voxels) {
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0.5f, 0.1f);
  std::vector<float> values(voxels, 0.0f);
  for (std::size_t i = 0; i < voxels; ++i) {
    if (i % 100 > 40) values[i] = noise(random);
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(GzipWriting, runs_alone_are_one_member_for_zlib_and_make_noise_in_a_mask_no_larger) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = masked_noise(700000);  // several pieces, the last one not full
  const std::string runs = write_gzip(folder, bytes, 1, 2, 1000003, DeflateSearch::runs);
  EXPECT_EQ(write_gzip(folder, bytes, 1, 0, 4096, DeflateSearch::runs), runs);
  EXPECT_EQ(write_gzip(folder, bytes, 1, 3, bytes.size(), DeflateSearch::runs), runs);
  EXPECT_EQ(zlib_decompress(runs, bytes.size()), bytes);
  EXPECT_LT(runs.size(), write_gzip(folder, bytes, 1, 2, 1000003).size());
}

TEST(GzipWriting, a_level_that_is_none_is_refused) {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "a.gz");
  EXPECT_FALSE(GzipWriter::create(*file, 0, nullptr));
  EXPECT_FALSE(GzipWriter::create(*file, 10, nullptr));
}

}  // namespace
}  // namespace cingulum
