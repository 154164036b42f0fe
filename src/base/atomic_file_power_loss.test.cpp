// Power may fail between any two file calls, and what was not synced may or may not have reached the disk.
// The calls of a run are recorded and replayed on a small model of a disk, for every prefix and every choice of what
// arrived: the final name always holds the old content or the complete new one.
#include <gtest/gtest.h>

#include <set>

#include "base/atomic_file.hpp"
#include "support/disk_model.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::power_loss_tests {
namespace {

constexpr std::string_view final_name = "out.bin";
constexpr std::string_view old_content = "old content";

// What may be found under the final name after a power failure; "(absent)" when nothing is.
using Contents = std::set<std::string>;

struct Recording {
  std::string path;  // the final name
  std::vector<RecordedCall> trace;
  std::string new_content;
};

Recording record_run(bool old_file, bool sync, bool exclusive_rename = true, FileFault fault = {}) {
  const TemporaryFolder folder;
  if (old_file) folder.put(final_name, old_content);
  FaultyFileLayer layer(fault);
  if (!exclusive_rename) layer.remove_rename_no_replace();
  auto file =
      AtomicFile::create(folder / final_name, {.force = old_file, .sync = sync, .buffer_bytes = 8, .layer = &layer});
  EXPECT_TRUE(file);
  if (!file) return {};
  (void)(file->append("HEAD, and the first part. ") && file->append("The second part.") &&
         file->write_at(0, std::as_bytes(std::span("head", 4))) && file->commit());
  return {(folder / final_name).native(), layer.trace(), "head, and the first part. The second part."};
}

DiskModel disk_before(const Recording& recording, bool old_file) {
  DiskModel disk({recording.path});
  if (old_file) disk.put(0, old_content);
  return disk;
}

void add_possible_contents(const DiskModel& disk, Contents& contents) {
  for (const std::vector<std::string>& found : disk.possible_contents()) contents.insert(found.front());
}

Contents contents_after_every_prefix(const Recording& recording, bool old_file) {
  DiskModel disk = disk_before(recording, old_file);
  Contents all;
  add_possible_contents(disk, all);
  for (const RecordedCall& call : recording.trace) {
    disk.apply(call);
    add_possible_contents(disk, all);
  }
  return all;
}

Contents contents_at_the_end(const Recording& recording, bool old_file) {
  DiskModel disk = disk_before(recording, old_file);
  for (const RecordedCall& call : recording.trace) disk.apply(call);
  Contents contents;
  add_possible_contents(disk, contents);
  return contents;
}

TEST(PowerLoss, data_are_synced_before_the_rename_and_the_folder_after_it) {
  const Recording recording = record_run(true, true);
  std::vector<FileCall> order;
  for (const RecordedCall& call : recording.trace) {
    switch (call.call) {
      case FileCall::create:
      case FileCall::sync:
      case FileCall::close:
      case FileCall::rename:
      case FileCall::sync_folder: order.push_back(call.call); break;
      case FileCall::write:
      case FileCall::write_at:
        if (order.back() != FileCall::write) order.push_back(FileCall::write);
        break;
      default: break;
    }
  }
  EXPECT_EQ(order, (std::vector<FileCall>{FileCall::create, FileCall::write, FileCall::sync, FileCall::close,
                                          FileCall::rename, FileCall::sync_folder}));
}

TEST(PowerLoss, at_any_moment_leaves_the_old_or_the_new_content) {
  const Recording recording = record_run(true, true);
  EXPECT_EQ(contents_after_every_prefix(recording, true), (Contents{std::string(old_content), recording.new_content}));
}

TEST(PowerLoss, at_any_moment_leaves_nothing_or_the_new_content_where_nothing_was) {
  for (const bool exclusive_rename : {true, false}) {
    const Recording recording = record_run(false, true, exclusive_rename);
    EXPECT_EQ(contents_after_every_prefix(recording, false), (Contents{"(absent)", recording.new_content}));
  }
}

TEST(PowerLoss, after_success_the_new_content_stays) {
  for (const bool old_file : {true, false}) {
    const Recording recording = record_run(old_file, true);
    EXPECT_EQ(contents_at_the_end(recording, old_file), Contents{recording.new_content});
  }
}

TEST(PowerLoss, together_with_any_failing_call_leaves_the_old_or_the_new_content) {
  const std::size_t calls = record_run(true, true).trace.size();
  for (std::size_t n = 4; n < calls; ++n) {  // the file is open after the first four
    const Recording recording = record_run(true, true, true, {.at_call = n, .error = EIO});
    for (const std::string& content : contents_after_every_prefix(recording, true)) {
      EXPECT_TRUE(content == old_content || content == recording.new_content) << "call " << n << ": " << content;
    }
  }
}

// The model can tell: without syncs it finds torn files.
TEST(PowerLoss, without_sync_may_leave_a_torn_file) {
  const Recording recording = record_run(true, false);
  EXPECT_GT(contents_after_every_prefix(recording, true).size(), 2U);
}

}  // namespace
}  // namespace cingulum::power_loss_tests
