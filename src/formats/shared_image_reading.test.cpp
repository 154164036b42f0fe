#include "formats/shared_image_reading.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace shared_image_reading_tests {

ImageGeometry grid() {
  ImageGeometry geometry;
  geometry.size = {97, 83, 71};
  geometry.voxel_to_world.rows = {2, 0, 0, -90, 0, 2, 0, -100, 0, 0, 2, -70};
  return geometry;
}

// An image of more bytes than one thread reads, with numbers that are not finite where the type has them.
std::vector<float> random_values(std::int64_t volumes, bool floating) {
  std::mt19937 random(7);
  std::vector<float> values(static_cast<std::size_t>(grid().voxel_count() * volumes));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 60000) - 30000);
  if (floating) {
    values[12345] = std::numeric_limits<float>::quiet_NaN();
    values[values.size() - 1] = std::numeric_limits<float>::infinity();
  }
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

Result<Image> read_shared(const std::filesystem::path& path, ThreadPool& pool, const CancelToken& cancel = {}) {
  CGL_TRY_ASSIGN(SharedImageReader reader, SharedImageReader::open(path, &pool, cancel));
  return reader.read_all();
}

TEST(SharedImageReading, threads_read_what_one_reads) {
  const TemporaryFolder folder;
  const auto pool = ThreadPool::create(4).value();
  const auto reads_the_same = [&](const std::filesystem::path& path, std::int64_t volumes) {
    const Image expected = read_image(path).value();
    ASSERT_EQ(expected.volumes, volumes);
    const Image found = read_shared(path, *pool).value();
    EXPECT_EQ(found.geometry, expected.geometry);
    EXPECT_EQ(found.volumes, expected.volumes);
    EXPECT_TRUE(same_bits(found.values, expected.values));
    // A few volumes at a time, the last time fewer.
    const auto count = static_cast<std::size_t>(expected.geometry.voxel_count());
    for (ThreadPool* const threads : {pool.get(), static_cast<ThreadPool*>(nullptr)}) {
      auto reader = SharedImageReader::open(path, threads).value();
      std::vector<float> values(5 * count);
      for (std::size_t first = 0; first < static_cast<std::size_t>(volumes); first += 5) {
        const std::size_t next = std::min<std::size_t>(5, static_cast<std::size_t>(volumes) - first);
        ASSERT_OK(reader.next_volumes(std::span(values).first(next * count)));
        ASSERT_TRUE(same_bits(std::span(values).first(next * count),
                              std::span(expected.values).subspan(first * count, next * count)))
            << first;
      }
    }
  };
  for (const bool floating : {true, false}) {
    constexpr std::int64_t volumes = 17;
    const std::vector<float> values = random_values(volumes, floating);
    for (const char* const name : {"a.nii", "a.nii.gz"}) {
      const auto path = folder / name;
      NiftiWriteOptions options;
      options.file.force = true;
      options.type =
          floating ? ElementType{ElementType::Code::floating, 32} : ElementType{ElementType::Code::integer, 16};
      if (!floating) options.slope = 0.37;
      ASSERT_OK(write_image(path, grid(), volumes, values, options));
      reads_the_same(path, volumes);
    }
  }
  // Few bytes: one thread.
  ASSERT_OK(write_image(folder / "small.nii", grid(), 1, random_values(1, true)));
  reads_the_same(folder / "small.nii", 1);
}

TEST(SharedImageReading, a_file_that_is_not_complete_is_refused_as_ever) {
  const TemporaryFolder folder;
  const auto pool = ThreadPool::create(2).value();
  ASSERT_OK(write_image(folder / "a.nii", grid(), 9, random_values(9, true)));
  std::filesystem::resize_file(folder / "a.nii", std::filesystem::file_size(folder / "a.nii") - 1);
  const auto expected = read_image(folder / "a.nii");
  const auto found = read_shared(folder / "a.nii", *pool);
  ASSERT_FALSE(expected);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message(), expected.error().message());
}

TEST(SharedImageReading, a_file_that_is_cut_while_it_is_read_is_a_failure_with_its_name) {
  const TemporaryFolder folder;
  const auto pool = ThreadPool::create(2).value();
  ASSERT_OK(write_image(folder / "a.nii", grid(), 9, random_values(9, true)));
  auto reader = SharedImageReader::open(folder / "a.nii", pool.get()).value();
  std::filesystem::resize_file(folder / "a.nii", 1 << 20);
  std::vector<float> values(static_cast<std::size_t>(grid().voxel_count()) * 9);
  const Status status = reader.next_volumes(values);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message(),
            "reading " + (folder / "a.nii").native() + ": the file became shorter while it was read");
}

TEST(SharedImageReading, cancelling_ends_it) {
  const TemporaryFolder folder;
  const auto pool = ThreadPool::create(2).value();
  ASSERT_OK(write_image(folder / "a.nii", grid(), 9, random_values(9, true)));
  CancelSource source;
  source.cancel();
  const auto image = read_shared(folder / "a.nii", *pool, source.token());
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind(), ErrorKind::interrupted);
}

}  // namespace shared_image_reading_tests
}  // namespace cingulum
