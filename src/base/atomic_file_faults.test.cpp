// Whatever file call fails, is interrupted or stops short, the writer ends with success or with one line that
// names the file, the final name holds the old content or the complete new one, and no partial file stays.
#include <gtest/gtest.h>

#include <array>

#include "base/atomic_file.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

constexpr std::string_view old_content = "the old content";

struct Scenario {
  bool old_file;
  bool sync;
  bool exclusive_rename = true;  // what the file system can do
  bool links = true;
};

std::string new_content() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

// A stream of several buffers whose header is patched at the end.
Status write_stream(const std::filesystem::path& path, const Scenario& scenario, FileLayer& layer) {
  const std::string text = new_content();
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, {.force = scenario.old_file,
                                                            .sync = scenario.sync,
                                                            .expected_bytes = text.size(),
                                                            .buffer_bytes = 100,
                                                            .layer = &layer}));
  CGL_TRY(file.append("LINE"));
  for (std::size_t i = 4; i < text.size(); i += 33) CGL_TRY(file.append(std::string_view(text).substr(i, 33)));
  CGL_TRY(file.write_at(0, std::as_bytes(std::span("line", 4))));
  return file.commit();
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

struct Outcome {
  Status status;
  bool fault_was_met;
  FileCall call;  // the one that the fault struck
};

// One run with the fault at call n; checks all that must hold whatever the fault.
Outcome run_with_fault(const Scenario& scenario, const FileFault& fault) {
  const TemporaryFolder folder;
  if (scenario.old_file) folder.put("out.bin", old_content);
  const std::string path = (folder / "out.bin").native();
  FaultyFileLayer layer(fault);
  if (!scenario.exclusive_rename) layer.remove_rename_no_replace();
  if (!scenario.links) layer.remove_links();
  const std::size_t descriptors = open_descriptors();
  Outcome outcome{.status = write_stream(path, scenario, layer), .fault_was_met = layer.fault_was_met(), .call = {}};
  if (outcome.fault_was_met) outcome.call = layer.trace()[fault.at_call].call;

  EXPECT_EQ(open_descriptors(), descriptors);
  const std::string content = folder.content("out.bin");
  if (outcome.status) {
    EXPECT_EQ(content, new_content());
    EXPECT_EQ(folder.names(), std::vector<std::string>{"out.bin"});
    return outcome;
  }
  const bool replaced = scenario.old_file && outcome.call == FileCall::sync_folder;
  EXPECT_EQ(content, replaced ? new_content() : scenario.old_file ? std::string(old_content) : "(absent)");
  EXPECT_EQ(folder.names().size(), scenario.old_file ? 1U : 0U);
  const std::string& message = outcome.status.error().message();
  EXPECT_TRUE(message.starts_with("writing " + path + ": ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return outcome;
}

class AtomicFileFaults : public testing::TestWithParam<Scenario> {
 protected:
  // Runs with the fault at call 0, 1, 2, ... until a run is over before its fault is due.
  template <class Check>
  void for_every_call(FileFault fault, Check&& check) {
    for (fault.at_call = 0;; ++fault.at_call) {
      SCOPED_TRACE("call " + std::to_string(fault.at_call) + ", errno " + std::to_string(fault.error));
      const Outcome outcome = run_with_fault(GetParam(), fault);
      if (!outcome.fault_was_met) {
        EXPECT_TRUE(outcome.status);
        // Creation, five buffers, header, close and rename at least: the loop has not ended by accident.
        EXPECT_GE(fault.at_call, 10U);
        return;
      }
      check(outcome);
      if (HasFatalFailure()) return;
    }
  }
};

bool is_needed(FileCall call) {
  switch (call) {
    // Help for people and tidiness: the work goes on without them.
    case FileCall::free_bytes:
    case FileCall::list_folder:
    case FileCall::lock:
    case FileCall::unlink: return false;
    default: return true;
  }
}

TEST_P(AtomicFileFaults, an_error_at_any_call_is_reported_and_leaves_nothing_torn) {
  for (const int error : {EIO, ENOSPC, EDQUOT, EROFS}) {
    for_every_call({.error = error}, [&](const Outcome& outcome) {
      EXPECT_EQ(outcome.status.has_value(), !is_needed(outcome.call)) << static_cast<int>(outcome.call);
      if (outcome.status) return;
      // Every cause by its name, and it is that of the call which failed.
      const std::string& message = outcome.status.error().message();
      EXPECT_NE(message.find(cause_text(error)), std::string::npos) << message;
    });
  }
}

TEST_P(AtomicFileFaults, a_disk_that_is_full_and_stays_full_is_reported_with_needed_and_free_bytes) {
  for_every_call({.error = ENOSPC, .lasting = true}, [&](const Outcome& outcome) {
    if (outcome.call != FileCall::write && outcome.call != FileCall::write_at) return;
    ASSERT_FALSE(outcome.status);
    const std::string& message = outcome.status.error().message();
    EXPECT_NE(message.find("no space left on device: "), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(new_content().size()) + " B needed, "), std::string::npos) << message;
    EXPECT_NE(message.find(" free in "), std::string::npos) << message;
  });
}

TEST_P(AtomicFileFaults, an_interrupted_call_is_repeated) {
  for_every_call({.error = EINTR},
                 [&](const Outcome& outcome) { EXPECT_TRUE(outcome.status) << outcome.status.error().message(); });
}

TEST_P(AtomicFileFaults, a_short_write_is_continued) {
  for_every_call({.short_write = true},
                 [&](const Outcome& outcome) { EXPECT_TRUE(outcome.status) << outcome.status.error().message(); });
}

INSTANTIATE_TEST_SUITE_P(All, AtomicFileFaults,
                         testing::Values(Scenario{false, true}, Scenario{false, false}, Scenario{true, true},
                                         Scenario{true, false}, Scenario{false, true, false},
                                         Scenario{false, true, false, false}));

void expect_all_calls_refused(AtomicFile& file, std::string_view reason) {
  const std::array<std::uint64_t, 2> offsets = {0, 4};
  const auto make = [](std::size_t, std::span<std::byte>) { ADD_FAILURE() << "a part was made"; };
  for (const Status& status :
       {file.append("x"), file.append_parts(offsets, make), file.write_at(0, {}), file.commit()}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::invalid_state);
    EXPECT_TRUE(status.error().message().ends_with(reason)) << status.error().message();
  }
}

TEST(AtomicFileAfterCommit, every_further_call_fails_and_the_file_stays) {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "a.txt", {.sync = false});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("all"));
  ASSERT_TRUE(file->commit());
  expect_all_calls_refused(*file, "the file is complete already");
  EXPECT_EQ(folder.content("a.txt"), "all");
}

TEST(AtomicFileAfterAFailure, every_further_call_fails_and_the_first_cause_is_not_repeated) {
  const TemporaryFolder folder;
  FaultyFileLayer counting;
  ASSERT_TRUE(write_stream(folder / "first", {false, true}, counting));
  std::size_t first_write = 0;
  while (counting.trace()[first_write].call != FileCall::write) ++first_write;

  FaultyFileLayer layer({.at_call = first_write, .error = EIO});
  auto file = AtomicFile::create(folder / "second", {.expected_bytes = 10, .buffer_bytes = 4, .layer = &layer});
  ASSERT_TRUE(file);
  ASSERT_FALSE(file->append("0123456789"));
  EXPECT_EQ(folder.content("second"), "(absent)");
  expect_all_calls_refused(*file, "it was given up after an earlier failure");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"first"});
}

}  // namespace
}  // namespace cingulum
