#include "view/memory_files.hpp"

#include <gtest/gtest.h>

#include "base/read_file.hpp"
#include "formats/tractogram.hpp"
#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

Status write_trx(const std::filesystem::path& path, FileLayer* layer) {
  WriteOptions options;
  options.layer = layer;
  CGL_TRY_ASSIGN(const auto writer,
                 TractogramWriter::create(path, testing::example_layout(TractogramFormat::trx), options));
  CGL_TRY(writer->append(testing::example_batch()));
  return writer->commit();
}

TEST(MemoryFiles, a_tractogram_has_the_bytes_that_it_has_on_disk) {
  const TemporaryFolder folder;
  view::MemoryFiles files;
  ASSERT_OK(write_trx("/a.trx", &files));
  ASSERT_OK(write_trx(folder / "a.trx", nullptr));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> bytes, files.take("/a.trx"));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> on_disk, read_file(folder / "a.trx"));
  EXPECT_GT(bytes.size(), 500u);
  EXPECT_EQ(bytes, on_disk);
  std::vector<std::string> left;
  EXPECT_EQ(files.list_folder("/", left), 0);
  EXPECT_TRUE(left.empty());
  EXPECT_FALSE(files.take("/a.trx"));
}

TEST(MemoryFiles, what_was_not_finished_leaves_nothing) {
  view::MemoryFiles files;
  WriteOptions options;
  options.layer = &files;
  {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         TractogramWriter::create("/a.trx", testing::example_layout(TractogramFormat::trx), options));
    ASSERT_OK(writer->append(testing::example_batch()));
  }
  std::vector<std::string> left;
  EXPECT_EQ(files.list_folder("/", left), 0);
  EXPECT_TRUE(left.empty());
}

}  // namespace
}  // namespace cingulum
