// Power cuts for every writer, and for file and sidecar as a pair: power may fail between any two file calls, and what
// was not synced may or may not have reached the disk. Whatever was left, the file is the old or the new one, bytes
// equal, and verify calls it whole.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/read_file.hpp"
#include "formats/sidecar.hpp"
#include "formats/verify.hpp"
#include "support/disk_model.hpp"
#include "support/temporary_folder.hpp"
#include "support/written_pairs.hpp"

namespace cingulum::pair_power_loss_tests {
namespace {

using Pair = std::vector<std::string>;  // the contents of file and sidecar

// What is under the names before the run, and whether the run writes a sidecar.
struct Scenario {
  bool old_file = false;
  bool old_sidecar = false;
  bool described = true;
  bool sync = true;
  std::size_t buffer_bytes = std::size_t{1} << 20U;
};

struct Recording {
  Pair before;
  Pair after;
  std::set<Pair> possible;    // after every prefix of the calls
  std::set<Pair> at_the_end;  // when the run is over
  std::size_t calls = 0;
  Status status;
};

Recording record_run(const std::string& name, const Scenario& scenario, const FileFault& fault = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / name;
  const auto contents = [&] { return Pair{folder.content(name), folder.content(name + ".json")}; };
  if (scenario.old_file) {
    const WriteOptions plain{.sync = false};
    EXPECT_TRUE(testing::write_variant(path, 0, scenario.old_sidecar ? testing::described(path, plain, 0) : plain));
  }
  Recording recording;
  recording.before = contents();
  FaultyFileLayer layer(fault);
  layer.skip_real_syncs();
  const WriteOptions options{
      .force = scenario.old_file, .sync = scenario.sync, .buffer_bytes = scenario.buffer_bytes, .layer = &layer};
  recording.status =
      testing::write_variant(path, 1, scenario.described ? testing::described(path, options, 1) : options);
  recording.after = contents();
  recording.calls = layer.trace().size();

  DiskModel disk({path.native(), path.native() + ".json"});
  for (std::size_t i = 0; i < 2; ++i) {
    if (recording.before[i] != DiskModel::absent) disk.put(i, recording.before[i]);
  }
  recording.possible = disk.possible_contents();
  for (const RecordedCall& call : layer.trace()) {
    disk.apply(call);
    recording.possible.merge(disk.possible_contents());
  }
  recording.at_the_end = disk.possible_contents();
  return recording;
}

// Whether verify calls the file whole when it finds these two.
bool is_whole(const std::string& name, const Pair& pair) {
  if (pair[0] == DiskModel::absent) return true;
  const TemporaryFolder folder;
  folder.put(name, pair[0]);
  if (pair[1] != DiskModel::absent) folder.put(name + ".json", pair[1]);
  const auto found = verify_file(folder / name);
  return found.has_value();
}

std::string shown(const Pair& pair) {
  return std::to_string(pair[0].size()) + " bytes of the file, sidecar: " + pair[1];
}

class WrittenPair : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_old_or_new(const Scenario& scenario, const FileFault& fault = {}) {
    const Recording whole = record_run(GetParam(), scenario);
    ASSERT_TRUE(whole.status) << whole.status.error().message();
    const Recording recording = record_run(GetParam(), scenario, fault);
    for (const Pair& pair : recording.possible) {
      EXPECT_TRUE(pair[0] == whole.before[0] || pair[0] == whole.after[0]) << "torn: " << shown(pair);
      EXPECT_TRUE(is_whole(GetParam(), pair)) << "a false alarm: " << shown(pair);
    }
  }
};

TEST_P(WrittenPair, is_whole_after_a_power_failure_at_any_moment) {
  for (const std::size_t buffer_bytes : {std::size_t{1} << 20U, std::size_t{97}}) {
    expect_old_or_new({.old_file = true, .old_sidecar = true, .buffer_bytes = buffer_bytes});
    expect_old_or_new({.old_file = true, .buffer_bytes = buffer_bytes});
    expect_old_or_new({.buffer_bytes = buffer_bytes});
  }
}

TEST_P(WrittenPair, is_whole_where_no_sidecar_is_written_over_an_old_one) {
  expect_old_or_new({.old_file = true, .old_sidecar = true, .described = false});
  expect_old_or_new({.old_file = true, .described = false});
}

TEST_P(WrittenPair, passes_through_old_pending_and_final_and_stays_after_success) {
  const Recording recording = record_run(GetParam(), {.old_file = true, .old_sidecar = true});
  ASSERT_TRUE(recording.status);
  std::set<std::string> states;
  for (const Pair& pair : recording.possible) {
    const bool pending = is_pending_sidecar(*parse_json(pair[1]));
    states.insert(std::string(pair[0] == recording.before[0] ? "old" : "new") + (pending ? " pending"
                                                                                 : pair[1] == recording.before[1]
                                                                                     ? " before"
                                                                                     : " final"));
  }
  EXPECT_EQ(states, (std::set<std::string>{"old before", "old pending", "new pending", "new final"}));
  EXPECT_EQ(recording.at_the_end, std::set<Pair>{recording.after});
}

TEST_P(WrittenPair, is_whole_after_a_power_failure_together_with_any_failing_call) {
  const Scenario scenario{.old_file = true, .old_sidecar = true};
  const std::size_t calls = record_run(GetParam(), scenario).calls;
  for (std::size_t n = 0; n < calls; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    expect_old_or_new(scenario, {.at_call = n, .error = EIO});
    if (HasFailure()) return;
  }
}

// The model can tell: without syncs it finds torn files and sidecars that do not fit.
TEST_P(WrittenPair, without_sync_may_be_torn_or_not_fit) {
  const Recording recording = record_run(GetParam(), {.old_file = true, .old_sidecar = true, .sync = false});
  bool torn = false;
  bool misfit = false;
  for (const Pair& pair : recording.possible) {
    const bool whole = pair[0] == recording.before[0] || pair[0] == recording.after[0];
    torn = torn || !whole;
    misfit = misfit || (whole && !is_whole(GetParam(), pair));
  }
  EXPECT_TRUE(torn);
  EXPECT_TRUE(misfit);
}

INSTANTIATE_TEST_SUITE_P(Writers, WrittenPair, ::testing::ValuesIn(testing::pair_names), testing::name_of_pair);

}  // namespace
}  // namespace cingulum::pair_power_loss_tests
