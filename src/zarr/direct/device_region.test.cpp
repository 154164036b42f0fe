#include "zarr/direct/device_region.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "support/each_device.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace device_region_tests {

using cingulum::testing::EachDevice;
using cingulum::testing::fails_with;

std::uint64_t count_of(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

class DeviceRegionTest : public EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    // What the environment names: a tool that looks at our memory names no cuFile.
    ASSERT_OK_AND_ASSIGN(const Settings settings, Settings::from_environment());
    ASSERT_OK_AND_ASSIGN(settings_, EngineSettings::from_settings(settings));
    settings_.cache_dir.reset();
    folder_ =
        std::filesystem::temp_directory_path() / fmt::format("cingulum-device-region-{}-{}", ::getpid(), counter_++);
    std::filesystem::create_directories(folder_);
    auto pool = ThreadPool::create(4);
    ASSERT_OK(pool);
    pool_ = std::move(*pool);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // An array with random elements in its first `filled` rows of outer chunks, and the same elements as they are.
  Array make_array(const NewArray& wanted, std::vector<std::byte>& elements, std::uint32_t seed) {
    const std::filesystem::path path = folder_ / fmt::format("{}.zarr", seed);
    auto metadata = describe_new_array(wanted);
    EXPECT_TRUE(metadata) << message_of(metadata);
    auto output = new_hierarchy(path, {});
    EXPECT_TRUE(output) << message_of(output);
    const Array described = Array::describe(nullptr, "", *metadata);
    elements.resize(count_of(wanted.shape) * wanted.type.bytes());
    std::mt19937 generator(seed);
    for (std::byte& b : elements) b = static_cast<std::byte>(generator() % 17);
    EXPECT_OK(write_array_metadata("", *metadata, **output));
    EXPECT_OK(write_region(described, **output, whole(*metadata), elements));
    EXPECT_OK((*output)->commit());
    return open(path);
  }
  static Array open(const std::filesystem::path& path) {
    auto store = Store::open(path);
    EXPECT_TRUE(store) << message_of(store);
    auto array = Array::open(*store, "");
    EXPECT_TRUE(array) << message_of(array);
    return std::move(*array);
  }
  template <class T>
  static void EXPECT_OK(const Result<T>& result) {
    EXPECT_TRUE(result.has_value()) << cingulum::testing::message_of(result);
  }
  template <class T>
  static std::string message_of(const Result<T>& result) {
    return cingulum::testing::message_of(result);
  }

  // The region on the device and in the host's memory, over the same random bytes.
  void compare(DeviceReader& reader, const Array& array, const Region& region, std::uint32_t seed, bool strided) {
    std::mt19937 generator(seed);
    Strides strides = row_major_strides(region.shape, array.metadata().type.bytes());
    if (strided && !strides.empty()) {
      // A gap behind every row and every plane.
      std::int64_t stride = static_cast<std::int64_t>(array.metadata().type.bytes());
      for (std::size_t d = strides.size(); d-- > 0;) {
        strides[d] = stride;
        stride = stride * static_cast<std::int64_t>(std::max<std::uint64_t>(1, region.shape[d])) +
                 static_cast<std::int64_t>(generator() % 3 * array.metadata().type.bytes());
      }
    }
    std::uint64_t bytes = array.metadata().type.bytes();
    for (std::size_t d = 0; d < strides.size(); ++d) {
      bytes += static_cast<std::uint64_t>(strides[d]) * (std::max<std::uint64_t>(1, region.shape[d]) - 1);
    }
    const std::uint64_t offset = generator() % 3 * array.metadata().type.bytes() + generator() % 2 * 16;
    std::vector<std::byte> expected(offset + bytes + 5);
    for (std::byte& b : expected) b = static_cast<std::byte>(generator());
    ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(expected.size()));
    ASSERT_OK(queue().upload(*buffer, 0, expected));
    ASSERT_OK_AND_ASSIGN(const ReadReport host_report,
                         read_region(array, region, std::span(expected).subspan(offset), strides));
    DeviceReadOptions options;
    options.pool = pool_.get();
    ASSERT_OK_AND_ASSIGN(const DeviceReadReport report,
                         reader.read(array, region, queue(), {*buffer, offset, strides}, options));
    EXPECT_EQ(report.read.chunks, host_report.chunks);
    EXPECT_EQ(report.read.filled_chunks, host_report.filled_chunks);
    EXPECT_EQ(report.read.stored_bytes, host_report.stored_bytes);
    std::vector<std::byte> found(expected.size());
    ASSERT_OK(queue().download(found, *buffer, 0));
    ASSERT_OK(queue().synchronise());
    EXPECT_TRUE(found == expected) << "seed " << seed << ", " << describe_coding(array.metadata());
  }

  EngineSettings settings_;
  std::filesystem::path folder_;
  std::unique_ptr<ThreadPool> pool_;
  static inline int counter_ = 0;
};

NewArray random_wish(std::mt19937& generator) {
  NewArray wanted;
  const ElementType types[] = {element_type_of<std::uint8_t>(),
                               element_type_of<std::int16_t>(),
                               element_type_of<float>(),
                               element_type_of<double>(),
                               {ElementType::Code::complex, 64}};
  wanted.type = types[generator() % std::size(types)];
  const std::size_t rank = 1 + generator() % 4;
  for (std::size_t d = 0; d < rank; ++d) {
    wanted.shape.push_back(1 + generator() % (rank == 1 ? 3000 : rank == 2 ? 90 : 24));
    wanted.chunk_shape.push_back(1 + generator() % (rank == 1 ? 300 : rank == 2 ? 30 : 9));
  }
  wanted.fill_value = 3u;
  if (wanted.type.code == ElementType::Code::complex) wanted.fill_value = Json::array({1.5, -2.0});
  wanted.format = generator() % 3 == 0 ? 2 : 3;
  wanted.sharded = wanted.format == 3 && generator() % 2 == 0;
  if (wanted.sharded) {
    for (const std::uint64_t extent : wanted.chunk_shape) wanted.shard_shape.push_back(extent * (1 + generator() % 3));
  }
  const char* const codecs[] = {"none", "none", "zstd", "gzip", "blosc-lz4", "lz4"};
  wanted.codec = parse_codec_choice(codecs[generator() % std::size(codecs)]).value();
  return wanted;
}

TEST_P(DeviceRegionTest, random_regions_are_those_of_the_host) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  for (std::uint32_t seed = 1; seed <= 25; ++seed) {
    std::mt19937 generator(seed);
    const NewArray wanted = random_wish(generator);
    std::vector<std::byte> elements;
    const Array array = make_array(wanted, elements, seed);
    for (std::uint32_t i = 0; i < 3; ++i) {
      Region region;
      for (const std::uint64_t extent : wanted.shape) {
        region.origin.push_back(generator() % extent);
        region.shape.push_back(generator() % (extent - region.origin.back() + 1));
      }
      if (i == 0) region = whole(array.metadata());
      compare(*reader, array, region, 100 * seed + i, i == 2);
    }
  }
}

TEST_P(DeviceRegionTest, a_region_larger_than_the_ring_passes_through_it) {
  RingOptions ring;
  ring.slab_bytes = 64 << 10;
  ring.slabs = 3;
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_, ring));
  NewArray wanted;
  wanted.shape = {100, 64, 60};
  wanted.type = element_type_of<float>();
  wanted.chunk_shape = {10, 16, 20};
  wanted.shard_shape = {20, 32, 60};
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 7);
  compare(*reader, array, whole(array.metadata()), 7, false);
  // A chunk larger than a slab gets slabs that hold it.
  wanted.chunk_shape = {50, 64, 60};
  wanted.shard_shape.clear();
  wanted.sharded = false;
  const Array large = make_array(wanted, elements, 8);
  compare(*reader, large, whole(large.metadata()), 8, false);
  compare(*reader, array, whole(array.metadata()), 9, true);
}

TEST_P(DeviceRegionTest, chunks_that_are_not_stored_are_filled_and_counted) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  NewArray wanted;
  wanted.shape = {30, 30};
  wanted.type = element_type_of<std::int16_t>();
  wanted.chunk_shape = {10, 10};
  wanted.sharded = false;
  wanted.fill_value = -3;
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 3);
  std::filesystem::remove(folder_ / "3.zarr/c/1/1");
  std::filesystem::remove(folder_ / "3.zarr/c/2/0");
  compare(*reader, array, {{3, 3}, {27, 20}}, 3, false);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(2000));
  DeviceReadOptions options;
  options.complete = true;
  EXPECT_TRUE(fails_with(reader->read(array, whole(array.metadata()), queue(), {*buffer}, options), ErrorKind::corrupt,
                         "chunk c/1/1: it is not stored, and a complete array was asked for"));
}

TEST_P(DeviceRegionTest, a_damaged_chunk_is_an_error_that_names_it_and_is_never_put_in_place) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  for (const char* const codec : {"none", "zstd"}) {
    NewArray wanted;
    wanted.shape = {40, 40};
    wanted.type = element_type_of<float>();
    wanted.chunk_shape = {10, 40};
    wanted.sharded = false;
    wanted.codec = parse_codec_choice(codec).value();
    std::vector<std::byte> elements;
    const std::uint32_t seed = codec[0] == 'n' ? 1 : 2;
    const Array array = make_array(wanted, elements, seed);
    const std::filesystem::path file = folder_ / fmt::format("{}.zarr/c/2/0", seed);
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(100);
    const char byte = static_cast<char>(stream.get());
    stream.seekp(100);
    stream.put(static_cast<char>(byte ^ 4));
    stream.close();
    ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(elements.size()));
    ASSERT_OK(queue().fill(*buffer, 0, elements.size(), std::byte{0x5a}));
    DeviceReadOptions options;
    options.pool = pool_.get();
    EXPECT_TRUE(fails_with(reader->read(array, whole(array.metadata()), queue(), {*buffer}, options),
                           ErrorKind::corrupt, "chunk c/2/0"));
    std::vector<std::byte> found(elements.size());
    ASSERT_OK(queue().download(found, *buffer, 0));
    ASSERT_OK(queue().synchronise());
    const std::size_t begin = 20 * 40 * 4;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool untouched = found[i] == std::byte{0x5a};
      if (i >= begin && i < begin + 10 * 40 * 4) {
        ASSERT_TRUE(untouched) << codec << ": byte " << i;
      } else {
        ASSERT_TRUE(untouched || found[i] == elements[i]) << codec << ": byte " << i;
      }
    }
    // The reader goes on.
    compare(*reader, array, {{0, 0}, {20, 40}}, 5, false);
  }
}

TEST_P(DeviceRegionTest, regions_follow_what_the_queue_had_before) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  NewArray wanted;
  wanted.shape = {64, 64};
  wanted.type = element_type_of<std::uint8_t>();
  wanted.fill_value = 0u;
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 4);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(4096));
  ASSERT_OK_AND_ASSIGN(const auto copy, device().allocate(4096));
  std::vector<std::byte> found(4096);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(queue().fill(*buffer, 0, 4096, std::byte{0xff}));
    ASSERT_OK(reader->read(array, whole(array.metadata()), queue(), {*buffer}));
    ASSERT_OK(queue().copy(*copy, 0, *buffer, 0, 4096));
    ASSERT_OK(queue().fill(*buffer, 0, 4096, std::byte{0xee}));
    ASSERT_OK(queue().download(found, *copy, 0));
    ASSERT_OK(queue().synchronise());
    ASSERT_TRUE(found == elements) << i;
  }
}

TEST_P(DeviceRegionTest, small_regions_allocate_no_more_after_the_first) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  NewArray wanted;
  wanted.shape = {256, 256};
  wanted.type = element_type_of<float>();
  wanted.chunk_shape = {64, 64};
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 5);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(64 * 64 * 4));
  const auto read = [&](std::uint64_t origin) {
    return reader->read(array, {{origin, origin}, {64, 64}}, queue(), {*buffer});
  };
  ASSERT_OK_AND_ASSIGN(const DeviceReadReport first, read(3));
  EXPECT_LE(first.ring_bytes, 1u << 20) << "of a region of 16 KiB";
  const std::uint64_t before = device().budget().allocations();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(read(5 * i));
  EXPECT_EQ(device().budget().allocations(), before);
}

TEST_P(DeviceRegionTest, places_outside_the_buffer_are_refused_before_work) {
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  NewArray wanted;
  wanted.shape = {10, 10};
  wanted.type = element_type_of<float>();
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 6);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(400));
  const Region all = whole(array.metadata());
  EXPECT_OK(reader->read(array, all, queue(), {*buffer}));
  EXPECT_TRUE(fails_with(reader->read(array, all, queue(), {*buffer, 4}), ErrorKind::invalid_argument,
                         "does not lie in its buffer"));
  const Strides wide = {44, 4};
  EXPECT_TRUE(fails_with(reader->read(array, all, queue(), {*buffer, 0, wide}), ErrorKind::invalid_argument,
                         "does not lie in its buffer"));
  EXPECT_FALSE(reader->read(array, {{0, 0}, {11, 10}}, queue(), {*buffer}));
}

TEST_P(DeviceRegionTest, every_allocation_of_a_read_may_fail) {
  NewArray wanted;
  wanted.shape = {32, 32};
  wanted.type = element_type_of<float>();
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 11);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(elements.size()));
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1; n < 20; ++n) {
    device().budget().fail_nth_allocation(n);
    auto reader = DeviceReader::create(device(), settings_);
    const bool worked = reader && (*reader)->read(array, whole(array.metadata()), queue(), {*buffer});
    device().budget().fail_nth_allocation(0);
    if (!worked) ++failures;
    if (worked) break;
  }
  EXPECT_EQ(failures > 0, !device().capabilities().shares_host_memory);
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
  compare(*reader, array, whole(array.metadata()), 11, false);
}

// All files below a folder.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] =
        std::string(std::istreambuf_iterator<char>(stream), {});
  }
  return files;
}

TEST_P(DeviceRegionTest, regions_of_the_device_are_written_with_the_bytes_of_the_host) {
  RingOptions ring;
  ring.slab_bytes = 20 << 10;  // several pieces a window
  ASSERT_OK_AND_ASSIGN(const auto writer, DeviceWriter::create(device(), ring));
  for (std::uint32_t seed = 301; seed <= 325; ++seed) {
    std::mt19937 generator(seed);
    const NewArray wanted = random_wish(generator);
    std::vector<std::byte> elements;
    make_array(wanted, elements, seed);
    const std::filesystem::path by_host = folder_ / fmt::format("{}.zarr", seed);
    const std::filesystem::path by_device = folder_ / fmt::format("{}-device.zarr", seed);
    std::filesystem::copy(by_host, by_device, std::filesystem::copy_options::recursive);
    for (int round = 0; round < 2; ++round) {
      const Array array = open(by_host);
      const Array same = open(by_device);
      Region region = whole(array.metadata());
      if (round == 1) {
        for (std::size_t d = 0; d < region.shape.size(); ++d) {
          region.origin[d] = generator() % region.shape[d];
          region.shape[d] = 1 + generator() % (region.shape[d] - region.origin[d]);
        }
      }
      Strides strides = row_major_strides(region.shape, wanted.type.bytes());
      std::uint64_t gap = 0;
      if (!strides.empty() && generator() % 2 == 0) {
        gap = wanted.type.bytes() * (1 + generator() % 3);
        strides[0] += static_cast<std::int64_t>(gap);
      }
      std::vector<std::byte> memory(count_of(region.shape) * wanted.type.bytes() + gap * region.shape[0] + 48);
      for (std::byte& b : memory) b = static_cast<std::byte>(generator());
      const std::uint64_t offset = 16 * (generator() % 3);
      ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(memory.size()));
      ASSERT_OK(queue().upload(*buffer, 0, memory));
      ASSERT_OK_AND_ASSIGN(const auto host_output, existing_folder(by_host, {}));
      ASSERT_OK_AND_ASSIGN(
          const WriteReport host_report,
          write_region(array, *host_output, region, std::span<const std::byte>(memory).subspan(offset), strides));
      ASSERT_OK_AND_ASSIGN(const auto output, existing_folder(by_device, {}));
      DeviceWriteOptions options;
      options.pool = pool_.get();
      ASSERT_OK_AND_ASSIGN(const DeviceWriteReport report,
                           writer->write(same, *output, region, queue(), {*buffer, offset, strides}, options));
      EXPECT_EQ(report.write.chunks, host_report.chunks);
      EXPECT_EQ(report.write.stored_bytes, host_report.stored_bytes);
      EXPECT_TRUE(files_of(by_host) == files_of(by_device)) << "seed " << seed << ", round " << round;
    }
  }
}

TEST_P(DeviceRegionTest, an_output_that_fails_leaves_the_writer_usable) {
  ASSERT_OK_AND_ASSIGN(const auto writer, DeviceWriter::create(device()));
  NewArray wanted;
  wanted.shape = {64, 64};
  wanted.type = element_type_of<float>();
  wanted.chunk_shape = {8, 64};
  wanted.sharded = false;
  std::vector<std::byte> elements;
  const Array array = make_array(wanted, elements, 12);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(elements.size()));
  ASSERT_OK(queue().upload(*buffer, 0, elements));
  class Refusing final : public StoreOutput {
   public:
    [[nodiscard]] Status put(const std::string&, std::span<const std::span<const std::byte>>) override {
      return fail(ErrorKind::io, "no room");
    }
    [[nodiscard]] bool ordered() const override { return false; }
    [[nodiscard]] Status commit() override { return {}; }
  } refusing;
  EXPECT_TRUE(fails_with(writer->write(array, refusing, whole(array.metadata()), queue(), {*buffer}), ErrorKind::io,
                         "no room"));
  const auto before = files_of(folder_ / "12.zarr");
  ASSERT_OK_AND_ASSIGN(const auto output, existing_folder(folder_ / "12.zarr", {}));
  ASSERT_OK(writer->write(array, *output, whole(array.metadata()), queue(), {*buffer}));
  EXPECT_TRUE(files_of(folder_ / "12.zarr") == before);
}

CGL_FOR_EACH_DEVICE(DeviceRegionTest);

}  // namespace device_region_tests
}  // namespace cingulum::zarr
