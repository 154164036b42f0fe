// Goal R8: power may fail between any two file calls, and what was not synced may or may not have reached the disk.
// The calls of a run are recorded and replayed on a small model of a disk, for every prefix and every choice of what
// arrived: the final name always holds the old content or the complete new one.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "base/atomic_file.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::power_loss_tests {
namespace {

constexpr std::string_view final_name = "out.bin";
constexpr std::string_view old_content = "old content";

// What may be found under the final name after a power failure; "(absent)" when nothing is.
using Contents = std::set<std::string>;

class DiskModel {
 public:
  explicit DiskModel(bool old_file) : old_file_(old_file) {}

  void apply(const RecordedCall& call) {
    if (call.result < 0) return;
    switch (call.call) {
      case FileCall::create:
        descriptor_ = static_cast<int>(call.result);
        folder_calls_.push_back(call);
        break;
      case FileCall::write:
        writes_.push_back({append_offset_, call.data});
        append_offset_ += call.data.size();
        break;
      case FileCall::write_at: writes_.push_back({call.offset, call.data}); break;
      case FileCall::sync:
        if (call.descriptor == descriptor_) synced_writes_ = writes_.size();
        break;
      case FileCall::rename:
      case FileCall::rename_no_replace:
      case FileCall::link:
      case FileCall::unlink: folder_calls_.push_back(call); break;
      case FileCall::sync_folder: synced_folder_calls_ = folder_calls_.size(); break;
      default: break;
    }
  }

  // Every content that the final name may have after a power failure now.
  [[nodiscard]] Contents possible_contents() const {
    Contents contents;
    const std::size_t pending_names = folder_calls_.size() - synced_folder_calls_;
    for (std::size_t arrived = 0; arrived < (std::size_t{1} << pending_names); ++arrived) {
      const std::optional<bool> is_new = final_name_is_new(arrived);
      if (!is_new) {
        contents.insert("(absent)");
      } else if (!*is_new) {
        contents.insert(std::string(old_content));
      } else {
        contents.merge(possible_new_contents());
      }
    }
    return contents;
  }

 private:
  struct Write {
    std::uint64_t offset;
    std::vector<std::byte> data;
  };

  // Whether the final name leads to the new file (true), the old one (false) or nowhere, when of the calls that were
  // not synced those in the bit set `arrived` are on the disk.
  [[nodiscard]] std::optional<bool> final_name_is_new(std::size_t arrived) const {
    std::optional<bool> is_new = old_file_ ? std::optional(false) : std::nullopt;
    for (std::size_t i = 0; i < folder_calls_.size(); ++i) {
      const bool on_disk = i < synced_folder_calls_ || ((arrived >> (i - synced_folder_calls_)) & 1U) != 0;
      const RecordedCall& call = folder_calls_[i];
      if (!on_disk) continue;
      if (call.call == FileCall::unlink && call.path.ends_with(final_name)) is_new = std::nullopt;
      if (call.call != FileCall::create && call.call != FileCall::unlink) {
        EXPECT_TRUE(call.other.ends_with(final_name));
        is_new = true;
      }
    }
    return is_new;
  }

  // Each write that was not synced is on the disk, absent (zeros, or a shorter file), or there with its first half
  // only.
  [[nodiscard]] Contents possible_new_contents() const {
    Contents contents;
    const std::size_t pending = writes_.size() - synced_writes_;
    std::size_t choices = 1;
    for (std::size_t i = 0; i < pending; ++i) choices *= 3;
    for (std::size_t choice = 0; choice < choices; ++choice) {
      std::string text;
      std::size_t rest = choice;
      for (std::size_t i = 0; i < writes_.size(); ++i) {
        std::size_t count = writes_[i].data.size();
        if (i >= synced_writes_) {
          count = rest % 3 == 0 ? 0 : rest % 3 == 1 ? count / 2 : count;
          rest /= 3;
        }
        if (count == 0) continue;
        text.resize(std::max(text.size(), static_cast<std::size_t>(writes_[i].offset) + count));
        std::memcpy(text.data() + writes_[i].offset, writes_[i].data.data(), count);
      }
      contents.insert(text);
    }
    return contents;
  }

  bool old_file_;
  int descriptor_ = -1;
  std::uint64_t append_offset_ = 0;
  std::vector<Write> writes_;
  std::size_t synced_writes_ = 0;
  std::vector<RecordedCall> folder_calls_;
  std::size_t synced_folder_calls_ = 0;
};

struct Recording {
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
  return {layer.trace(), "head, and the first part. The second part."};
}

Contents contents_after_every_prefix(const Recording& recording, bool old_file) {
  DiskModel disk(old_file);
  Contents all = disk.possible_contents();
  for (const RecordedCall& call : recording.trace) {
    disk.apply(call);
    all.merge(disk.possible_contents());
  }
  return all;
}

Contents contents_at_the_end(const Recording& recording, bool old_file) {
  DiskModel disk(old_file);
  for (const RecordedCall& call : recording.trace) disk.apply(call);
  return disk.possible_contents();
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
