// Memory runs out for files: allocation n fails, for every n, while images, gradient tables, spheres and tractograms
// are read and written. The answer is an Error, nothing is leaked, and a failed writer leaves nothing.
//
// JSON is the exception: the destructors of nlohmann's json allocate, and end the process when they cannot. The tests
// of TRX, whose header is JSON, therefore run each attempt in a process of its own and require that no more attempts
// end in that way than there are allocations in handling the header.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "dmri/sphere/sphere.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/tractogram.hpp"
#include "formats/trx.hpp"
#include "support/example_tractogram.hpp"
#include "support/failing_allocations.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::allocations_of;
using testing::attempts_in_children;
using testing::expect_errors_for_every_allocation;
using testing::failing_allocations;
using testing::without_counting;

Status read_through(const std::filesystem::path& path) {
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
  const bool counting = std::exchange(failing_allocations().counting, false);
  TractogramBatch batch;  // its constructor allocates, and constructors may throw
  std::vector<std::uint64_t>().swap(batch.offsets);
  failing_allocations().counting = counting;
  while (true) {
    CGL_TRY_ASSIGN(const bool more, reader->next(batch, 8, false));
    if (!more) break;
  }
  CGL_TRY(reader->groups().map([](auto&&) {}));
  return reader->verify();
}

TEST(OutOfMemoryInFormats, while_an_image_is_read_is_an_error) {
  const TemporaryFolder folder;
  const ImageGeometry geometry = testing::example_reference();
  const ImageGeometry small = {.size = {5, 4, 3}, .voxel_to_world = geometry.voxel_to_world};
  const std::vector<float> values(60 * 3, 1.5f);
  for (const char* name : {"an-image-with-a-long-name.nii", "an-image-with-a-long-name.nii.gz"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path path = folder / name;
    ASSERT_TRUE(write_image(path, small, 3, values));
    expect_errors_for_every_allocation([&] { return read_image(path).map([](auto&&) {}); }, 5);
    ImageGeometry found;
    expect_errors_for_every_allocation(
        [&]() -> Status {
          // Three volumes are refused as a mask: the message is made of memory, too.
          const auto mask = read_mask(path, found);
          if (!mask && mask.error().kind() != ErrorKind::out_of_memory) return {};
          return mask.map([](auto&&) {});
        },
        5);
  }
}

TEST(OutOfMemoryInFormats, while_an_image_is_written_is_an_error_and_leaves_nothing) {
  const TemporaryFolder folder;
  const ImageGeometry small = {.size = {5, 4, 3}, .voxel_to_world = testing::example_reference().voxel_to_world};
  const std::vector<float> values(60 * 3, 1.5f);
  for (const char* name : {"an-image-with-a-long-name.nii", "an-image-with-a-long-name.nii.gz"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path path = folder / name;
    NiftiWriteOptions options;
    options.file.force = true;
    options.file.sync = false;
    expect_errors_for_every_allocation(
        [&]() -> Status {
          Status status = write_image(path, small, 3, values, options);
          without_counting([&] {
            EXPECT_LE(folder.names().size(), 1U);
            std::filesystem::remove(path);
          });
          return status;
        },
        5);
  }
}

TEST(OutOfMemoryInFormats, while_gradients_and_spheres_are_read_is_an_error) {
  const TemporaryFolder folder;
  folder.put("gradients-with-a-long-name.bval", "0 1000 1000 995 2000\n");
  folder.put("gradients-with-a-long-name.bvec", "0 1 0 0 0.6\n0 0 1 0 0.8\n0 0 0 1 0\n");
  folder.put("gradients-with-a-long-name.b", "0 0 0 0\n1 0 0 1000\n0 1 0 1000\n0 0.6 0.9 2000\n");
  folder.put("sphere-with-a-long-name.txt", "1 0 0\n0 1 0\n0 0 1\n1 1 0\n1 0 1\n0 1 1\n1 1 1\n-1 1 1\n");
  const std::filesystem::path bvals = folder / "gradients-with-a-long-name.bval";
  const std::filesystem::path bvecs = folder / "gradients-with-a-long-name.bvec";
  const std::filesystem::path table = folder / "gradients-with-a-long-name.b";
  const std::string sphere = folder / "sphere-with-a-long-name.txt";
  expect_errors_for_every_allocation([&] { return read_fsl_gradients(bvals, bvecs).map([](auto&&) {}); }, 5);
  expect_errors_for_every_allocation([&] { return read_mrtrix_gradients(table).map([](auto&&) {}); }, 5);
  expect_errors_for_every_allocation([&] { return sphere_by_name_or_file(sphere).map([](auto&&) {}); }, 5);
}

TEST(OutOfMemoryInFormats, while_trk_and_tck_are_read_is_an_error) {
  const TemporaryFolder folder;
  for (const auto& [format, name] : {std::pair{TractogramFormat::trk, "a-tractogram-with-a-long-name.trk"},
                                     {TractogramFormat::tck, "a-tractogram-with-a-long-name.tck"}}) {
    SCOPED_TRACE(name);
    const std::filesystem::path path = folder / name;
    ASSERT_TRUE(testing::write_example(path, format));
    expect_errors_for_every_allocation([&] { return read_through(path); }, 5);
  }
}

TEST(OutOfMemoryInFormats, while_tractograms_are_written_is_an_error_and_leaves_nothing) {
  const TemporaryFolder folder;
  WriteOptions options;
  options.force = true;
  options.sync = false;
  for (const auto& [format, name] : {std::pair{TractogramFormat::trk, "a-tractogram-with-a-long-name.trk"},
                                     {TractogramFormat::tck, "a-tractogram-with-a-long-name.tck"},
                                     {TractogramFormat::trx, "a-tractogram-with-a-long-name.trx"},
                                     {TractogramFormat::trx_folder, "a-tractogram-with-a-long-name.trx.d"}}) {
    SCOPED_TRACE(name);
    const std::filesystem::path path = folder / name;
    const TractogramLayout layout = testing::example_layout(format);
    const TractogramBatch batch = testing::example_batch(format != TractogramFormat::tck);
    const bool groups = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
    const TractogramGroup group = testing::example_groups()[0];
    expect_errors_for_every_allocation(
        [&]() -> Status {
          const auto write = [&]() -> Status {
            CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(path, layout, options));
            CGL_TRY(writer->append(batch));
            CGL_TRY(writer->append(batch));
            // Taken by value: the copy is the caller's.
            if (groups) CGL_TRY(catch_out_of_memory([&] { return writer->add_group(group); }));
            return writer->commit();
          };
          Status status = write();
          without_counting([&] {
            EXPECT_LE(folder.names().size(), 1U);
            std::filesystem::remove_all(path);
          });
          return status;
        },
        5);
  }
}

TEST(OutOfMemoryInFormats, ends_the_process_in_reading_trx_only_where_its_header_is_handled) {
  const TemporaryFolder folder;
  const TrxHeader header = {.reference = testing::example_reference(), .streamlines = 5, .points = 46};
  const std::string text = format_trx_header(header, 0);
  const std::size_t parsing = allocations_of([&] { EXPECT_TRUE(parse_trx_header(text)); });
  for (const auto& [format, name] : {std::pair{TractogramFormat::trx, "a-tractogram-with-a-long-name.trx"},
                                     {TractogramFormat::trx_folder, "a-tractogram-with-a-long-name.trx.d"}}) {
    SCOPED_TRACE(name);
    const std::filesystem::path path = folder / name;
    ASSERT_TRUE(testing::write_example(path, format));
    const testing::AttemptsInChildren reading = attempts_in_children([&] { return read_through(path); });
    EXPECT_GT(reading.refused, 30U);
    EXPECT_LE(reading.ended, parsing);
  }
}

}  // namespace
}  // namespace cingulum
