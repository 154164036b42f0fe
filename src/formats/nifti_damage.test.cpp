// Damage and faults of NIfTI: every cut and every flipped bit of a small file, and every file call that fails
// while one is written.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/read_file.hpp"
#include "formats/nifti.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/long_tests.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

ImageGeometry geometry_of(std::int64_t x, std::int64_t y, std::int64_t z) {
  ImageGeometry geometry;
  geometry.size = {x, y, z};
  geometry.voxel_to_world.rows = {-2, 0, 0, 10, 0, 2.5, 0, -20, 0, 0, 3, 30};
  return geometry;
}

// Noise: nothing in it is redundant.
std::vector<float> noise(std::size_t count) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 30000);
  return values;
}

std::vector<std::byte> make_file(const TemporaryFolder& folder, const char* name, const ImageGeometry& geometry,
                                 std::int64_t volumes, const std::vector<float>& values, int version = 1) {
  NiftiWriteOptions options;
  options.file = {.force = true, .sync = false};
  options.type = element_type_of<std::int16_t>();
  options.version = version;
  EXPECT_TRUE(write_image(folder / name, geometry, volumes, values, options));
  return *read_file(folder / name);
}

Result<Image> read_bytes(std::span<const std::byte> bytes) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open_memory(bytes, "image"));
  return read_image(reader);
}

TEST(NiftiTruncation, a_file_cut_at_any_byte_is_refused_with_place_expected_and_found) {
  const TemporaryFolder folder;
  const auto values = noise(4 * 3 * 2 * 2);
  for (const int version : {1, 2}) {
    for (const char* name : {"a.nii", "a.nii.gz"}) {
      const auto bytes = make_file(folder, name, geometry_of(4, 3, 2), 2, values, version);
      ASSERT_TRUE(read_bytes(bytes));
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        const auto image = read_bytes(std::span(bytes).first(size));
        ASSERT_FALSE(image) << name << " cut at " << size;
        const std::string& message = image.error().message();
        EXPECT_EQ(image.error().kind(), ErrorKind::corrupt) << message;
        EXPECT_TRUE(message.starts_with("reading image: ")) << message;
        EXPECT_NE(message.find("ends at byte " + std::to_string(size)), std::string::npos) << message;
        const bool says_what_was_expected = message.find("expected") != std::string::npos ||
                                            message.find("348 bytes at least") != std::string::npos ||
                                            message.find("inside the header of 540 bytes") != std::string::npos;
        EXPECT_TRUE(says_what_was_expected) << message;
      }
    }
  }
}

TEST(NiftiTruncation, a_large_compressed_series_that_is_cut_is_refused_too) {
  const TemporaryFolder folder;
  const auto geometry = geometry_of(128, 128, 64);
  const auto values = noise(static_cast<std::size_t>(geometry.voxel_count()) * 3);
  const auto bytes = make_file(folder, "a.nii.gz", geometry, 3, values);
  const auto whole = read_bytes(bytes);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->values, values);
  for (const std::size_t missing : {std::size_t{1}, std::size_t{8}, std::size_t{9}, bytes.size() / 2}) {
    const auto image = read_bytes(std::span(bytes).first(bytes.size() - missing));
    ASSERT_FALSE(image);
    EXPECT_NE(image.error().message().find("ends at byte " + std::to_string(bytes.size() - missing)), std::string::npos)
        << image.error().message();
  }
}

TEST(NiftiFlips, every_flipped_bit_of_a_compressed_file_is_detected_or_changes_nothing) {
  const TemporaryFolder folder;
  const bool all = test::may_take_long();
  const auto geometry = all ? geometry_of(20, 19, 20) : geometry_of(12, 10, 12);
  const auto values = noise(static_cast<std::size_t>(geometry.voxel_count()));
  auto bytes = make_file(folder, "a.nii.gz", geometry, 1, values);
  ASSERT_LE(bytes.size(), 16384U);
  std::size_t harmless = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto image = read_bytes(bytes);
    if (image) {
      ASSERT_EQ(image->values, values) << "bit " << bit << " is wrong silently";
      ASSERT_EQ(image->geometry, geometry) << "bit " << bit << " is wrong silently";
      // FTEXT, the time, the flags of the compressor and the system of gzip's header; else unused bits before a byte's
      // end in the deflate stream.
      EXPECT_TRUE(bit == 24 || bit >= 32) << bit;
      harmless += bit >= 80 ? 1 : 0;
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_LT(harmless, 16U);
}

TEST(NiftiThreads, the_same_image_gives_the_same_bytes_on_any_number_of_threads) {
  const TemporaryFolder folder;
  const auto geometry = geometry_of(100, 100, 60);
  const auto values = noise(static_cast<std::size_t>(geometry.voxel_count()) * 2);
  std::vector<std::vector<std::byte>> contents;
  for (const int threads : {1, 2, 8}) {
    const auto pool = ThreadPool::create(threads);
    const NiftiWriteOptions options{.file = {.force = true, .sync = false}, .pool = pool->get()};
    ASSERT_TRUE(write_image(folder / "a.nii.gz", geometry, 2, values, options));
    contents.push_back(*read_file(folder / "a.nii.gz"));
  }
  EXPECT_EQ(contents[0], contents[1]);
  EXPECT_EQ(contents[0], contents[2]);
}

TEST(NiftiFaults, whatever_file_call_fails_the_old_image_or_the_new_one_is_there) {
  const auto geometry = geometry_of(6, 5, 4);
  const auto values = noise(120);
  const auto write = [&](const std::filesystem::path& path, FileLayer& layer) {
    const NiftiWriteOptions options{.file = {.force = true, .buffer_bytes = 100, .layer = &layer}};
    return write_image(path, geometry, 1, values, options);
  };
  const TemporaryFolder good;
  for (const char* name : {"a.nii", "a.nii.gz"}) {
    ASSERT_TRUE(write(good / name, FileLayer::system()));
    const std::string fresh = good.content(name);
    for (const FileFault& kind : {FileFault{.error = EIO}, FileFault{.error = ENOSPC, .lasting = true},
                                  FileFault{.error = EINTR}, FileFault{.short_write = true}}) {
      std::size_t failures = 0;
      for (std::size_t call = 0;; ++call) {
        const TemporaryFolder folder;
        folder.put(name, "old");
        FileFault fault = kind;
        fault.at_call = call;
        FaultyFileLayer layer(fault);
        const Status status = write(folder / name, layer);
        EXPECT_EQ(folder.names(), std::vector<std::string>{name});
        if (!layer.fault_was_met()) {
          EXPECT_TRUE(status);
          EXPECT_GE(call, 10U);
          break;
        }
        // A folder that cannot be synced is an error, but the new content is complete by then.
        const bool renamed = layer.trace()[call].call == FileCall::sync_folder;
        if (status) {
          EXPECT_EQ(folder.content(name), fresh);
        } else {
          ++failures;
          EXPECT_EQ(folder.content(name), renamed ? fresh : "old");
          const std::string& message = status.error().message();
          EXPECT_TRUE(message.starts_with("writing " + (folder / name).native() + ": ")) << message;
          EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        }
      }
      if (kind.error == EIO || kind.error == ENOSPC) {
        EXPECT_GE(failures, 5U) << name;
      } else {
        EXPECT_EQ(failures, 0U) << name;
      }
    }
  }
}

}  // namespace
}  // namespace cingulum
