// File and sidecar as one: what is there after success, after every failing call, what killed runs may leave
// and what the next run does with it; and every later edit of a finished pair is found.
#include "formats/output_sidecar.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "formats/sidecar.hpp"
#include "formats/verify.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"
#include "support/written_pairs.hpp"

namespace cingulum::output_sidecar_tests {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

WriteOptions replacing() {
  return {.force = true, .sync = false};
}

// A pair as the writer of this name leaves it.
Status write_pair(const std::filesystem::path& path, int variant, const WriteOptions& options) {
  return testing::write_variant(path, variant, testing::described(path, options, variant));
}

// The sidecar that a run leaves which is killed right before or right after its file got its name.
std::string pending_sidecar(const std::string& name, const std::string& new_content, const Json& replaced) {
  Json json = {{"variant", 1}};
  set_digest(json, name, {hash_hex(new_content), new_content.size()});
  json["pending"] = {{"replaces", replaced}};
  return json_text(json);
}

bool is_damaged(const std::filesystem::path& path) {
  const auto found = verify_file(path);
  EXPECT_TRUE(found || found.error().kind() == ErrorKind::corrupt);
  return !found;
}

class PairOf : public ::testing::TestWithParam<const char*> {};

TEST_P(PairOf, is_complete_after_success_and_equal_runs_give_equal_sidecars) {
  const TemporaryFolder folder;
  const std::string name = GetParam();
  ASSERT_TRUE(write_pair(folder / name, 0, {.sync = false}));
  const std::string first = folder.content(name + ".json");
  EXPECT_EQ(folder.names(), (Names{name, name + ".json"}));
  ASSERT_TRUE(write_pair(folder / name, 1, replacing()));
  EXPECT_EQ((*read_sidecar(folder / name))["variant"], 1);
  EXPECT_EQ((*read_sidecar(folder / name))["file"], name);
  ASSERT_TRUE(write_pair(folder / name, 0, replacing()));
  EXPECT_EQ(folder.content(name + ".json"), first);
  EXPECT_EQ(folder.names(), (Names{name, name + ".json"}));
  const auto found = verify_file(folder / name);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->checksums[0], "sidecar XXH3-128");
}

// After an overwrite that came to its end verify finds every edit: what was true while it was under way is so no more.
TEST_P(PairOf, is_damaged_by_every_changed_byte_and_by_the_old_content_after_an_overwrite) {
  const TemporaryFolder folder;
  const std::string name = GetParam();
  ASSERT_TRUE(write_pair(folder / name, 0, {.sync = false}));
  const std::string old_content = folder.content(name);
  ASSERT_TRUE(write_pair(folder / name, 1, replacing()));
  const std::string content = folder.content(name);
  ASSERT_NE(content, old_content);
  EXPECT_FALSE(is_damaged(folder / name));
  folder.put(name, old_content);
  EXPECT_TRUE(is_damaged(folder / name));
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    folder.put(name, changed);
    ASSERT_TRUE(is_damaged(folder / name)) << "byte " << i;
  }
}

// What is left of a run whose call n fails; `lasting`: the disk stays full.
void expect_whole_after_a_failure(const std::string& name, bool old_file, bool old_sidecar, bool described,
                                  const FileFault& fault, bool& met) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / name;
  if (old_file) {
    const WriteOptions plain{.sync = false};
    ASSERT_TRUE(testing::write_variant(path, 0, old_sidecar ? testing::described(path, plain, 0) : plain));
  }
  const std::string before = folder.content(name);
  const std::string sidecar_before = folder.content(name + ".json");
  FaultyFileLayer layer(fault);
  layer.skip_real_syncs();
  const WriteOptions options{.force = old_file, .layer = &layer};
  const Status status = testing::write_variant(path, 1, described ? testing::described(path, options, 1) : options);
  met = layer.fault_was_met();
  const std::string after = folder.content(name);
  const std::string sidecar_after = folder.content(name + ".json");
  for (const std::string& found : folder.names()) EXPECT_TRUE(found == name || found == name + ".json") << found;
  if (status) {
    EXPECT_NE(after, before);
    EXPECT_EQ(sidecar_after != "(absent)", described);
    EXPECT_FALSE(described && is_pending_sidecar(*parse_json(sidecar_after)));
  } else {
    EXPECT_TRUE(status.error().message().starts_with("writing " + path.native())) << status.error().message();
    if ((after == before && !fault.lasting) || after == "(absent)") {
      EXPECT_EQ(sidecar_after, sidecar_before);
    }
  }
  if (after == "(absent)") return;
  const auto found = verify_file(path);
  EXPECT_TRUE(found) << found.error().message();
  // What readers get is what was said of the file that is there.
  if (described && (old_sidecar || after != before)) {
    EXPECT_EQ((*read_sidecar(path))["variant"], after == before ? 0 : 1);
  }
}

TEST_P(PairOf, fits_after_any_failing_call) {
  for (const bool lasting : {false, true}) {
    const int error = lasting ? ENOSPC : EIO;
    for (const auto& [old_file, old_sidecar, described] :
         {std::tuple{false, false, true}, {true, false, true}, {true, true, true}, {true, true, false}}) {
      FileFault fault{.error = error, .lasting = lasting};
      bool met = true;
      for (fault.at_call = 0; met; ++fault.at_call) {
        SCOPED_TRACE(::testing::Message()
                     << "call " << fault.at_call << ", lasting " << lasting << ", old file " << old_file
                     << ", old sidecar " << old_sidecar << ", described " << described);
        expect_whole_after_a_failure(GetParam(), old_file, old_sidecar, described, fault, met);
        if (HasFailure()) return;
      }
      EXPECT_GE(fault.at_call, 20U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Writers, PairOf, ::testing::ValuesIn(testing::pair_names), testing::name_of_pair);

TEST(OutputSidecar, a_pending_sidecar_speaks_of_the_file_that_is_there) {
  const TemporaryFolder folder;
  const Json old_facts = {{"variant", 0}, {"xxh3_128", hash_hex("old")}};
  folder.put("a.txt.json", pending_sidecar("a.txt", "new", old_facts));
  folder.put("a.txt", "old");
  EXPECT_EQ((*read_sidecar(folder / "a.txt"))["variant"], 0);
  EXPECT_EQ((*read_sidecar_file(folder / "a.txt.json"))["variant"], 0);
  EXPECT_FALSE(is_damaged(folder / "a.txt"));
  folder.put("a.txt", "new");
  EXPECT_EQ((*read_sidecar(folder / "a.txt"))["variant"], 1);
  EXPECT_FALSE(read_sidecar(folder / "a.txt")->contains("pending"));
  EXPECT_FALSE(is_damaged(folder / "a.txt"));
  // A file that is neither is damaged.
  folder.put("a.txt", "odd");
  EXPECT_TRUE(is_damaged(folder / "a.txt"));
  folder.put("a.txt.json", pending_sidecar("a.txt", "new", nullptr));
  folder.put("a.txt", "old");
  EXPECT_TRUE(is_damaged(folder / "a.txt"));
}

TEST(OutputSidecar, the_verdict_on_a_damaged_old_file_stays_while_it_is_replaced) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_pair(folder / "a.txt", 0, {.sync = false}));
  folder.put("a.txt", "damaged");
  OutputSidecar sidecar(folder / "a.txt", replacing());
  sidecar.describe([] { return Json::object(); });
  folder.put("partial", "new");
  ASSERT_TRUE(sidecar.before_rename(folder / "partial"));
  EXPECT_TRUE(is_damaged(folder / "a.txt"));
  folder.put("a.txt", "new");
  EXPECT_FALSE(is_damaged(folder / "a.txt"));
}

TEST(OutputSidecar, what_a_run_left_that_was_killed_twice_still_fits) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_pair(folder / "a.txt", 0, {.sync = false}));
  folder.put("partial", "new");
  for (int kills = 0; kills < 3; ++kills) {
    OutputSidecar sidecar(folder / "a.txt", replacing());
    sidecar.describe([] { return Json{{"variant", 1}}; });
    ASSERT_TRUE(sidecar.before_rename(folder / "partial"));
    EXPECT_FALSE(is_damaged(folder / "a.txt"));
    EXPECT_EQ((*read_sidecar(folder / "a.txt"))["variant"], 0);
    // No pending sidecar holds another.
    EXPECT_EQ(folder.content("a.txt.json").find("pending"), folder.content("a.txt.json").rfind("pending"));
  }
}

TEST(OutputSidecar, what_a_killed_run_left_without_its_file_does_not_refuse_the_next) {
  const TemporaryFolder folder;
  folder.put("a.txt.json", pending_sidecar("a.txt", "new", nullptr));
  EXPECT_TRUE(check_sidecar_output(folder / "a.txt", {}));
  ASSERT_TRUE(write_pair(folder / "a.txt", 1, {.sync = false}));
  EXPECT_FALSE(is_pending_sidecar(*parse_json(folder.content("a.txt.json"))));
  EXPECT_FALSE(is_damaged(folder / "a.txt"));
}

TEST(OutputSidecar, what_is_there_otherwise_is_refused_without_force_and_stays) {
  for (const std::string text : {"{\"of\": \"somebody\"}", "not even JSON",
                                 "{\"xxh3_128\": \"of a file that is gone\"}", "{\"pending\": {\"replaces\": null}}"}) {
    const TemporaryFolder folder;
    folder.put("a.nii.json", text);
    const auto early = check_sidecar_output(folder / "a.nii", {});
    ASSERT_FALSE(early) << text;
    EXPECT_EQ(early.error().kind(), ErrorKind::already_exists);
    const Status late = write_pair(folder / "a.nii", 1, {.sync = false});
    ASSERT_FALSE(late) << text;
    EXPECT_EQ(late.error().kind(), ErrorKind::already_exists);
    EXPECT_EQ(folder.names(), Names{"a.nii.json"});
    EXPECT_EQ(folder.content("a.nii.json"), text);
  }
}

TEST(OutputSidecar, an_output_without_one_removes_that_of_an_earlier_run_and_nothing_else) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_pair(folder / "a.nii", 0, {.sync = false}));
  ASSERT_TRUE(testing::write_variant(folder / "a.nii", 1, replacing()));
  EXPECT_EQ(folder.names(), Names{"a.nii"});
  for (const std::string text : {"{\"of\": \"somebody\"}", "not even JSON"}) {
    folder.put("a.nii.json", text);
    ASSERT_TRUE(testing::write_variant(folder / "a.nii", 0, replacing()));
    EXPECT_EQ(folder.content("a.nii.json"), text);
  }
  // Without force the sidecar of another file is not removed, but what a killed run left is.
  std::filesystem::remove(folder / "a.nii");
  folder.put("a.nii.json", "{\"xxh3_128\": \"of a file that is gone\"}");
  EXPECT_FALSE(testing::write_variant(folder / "a.nii", 0, {.sync = false}));
  EXPECT_EQ(folder.names(), Names{"a.nii.json"});
  folder.put("a.nii.json", pending_sidecar("a.nii", "new", nullptr));
  ASSERT_TRUE(testing::write_variant(folder / "a.nii", 0, {.sync = false}));
  EXPECT_EQ(folder.names(), Names{"a.nii"});
}

TEST(OutputSidecar, a_sidecar_too_deep_to_be_held_in_another_is_replaced_all_the_same) {
  const TemporaryFolder folder;
  folder.put("a.txt", "old");
  const std::string deep = std::string(62, '[') + std::string(62, ']');
  folder.put("a.txt.json", "{\"xxh3_128\": \"" + hash_hex("old") + "\", \"deep\": " + deep + "}");
  OutputSidecar sidecar(folder / "a.txt", replacing());
  sidecar.describe([] { return Json::object(); });
  folder.put("partial", "new");
  ASSERT_TRUE(sidecar.before_rename(folder / "partial"));
  EXPECT_FALSE(is_damaged(folder / "a.txt"));
}

TEST(OutputSidecar, a_folder_and_its_sidecar_are_a_pair) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_pair(folder / "a.trx.d", 0, {.sync = false}));
  ASSERT_TRUE(write_pair(folder / "a.trx.d", 1, replacing()));
  EXPECT_EQ(folder.names(), (Names{"a.trx.d", "a.trx.d.json"}));
  EXPECT_FALSE(is_damaged(folder / "a.trx.d"));
  folder.put("a.trx.d/offsets.uint64", folder.content("a.trx.d/offsets.uint64") + "x");
  EXPECT_TRUE(is_damaged(folder / "a.trx.d"));
}

}  // namespace
}  // namespace cingulum::output_sidecar_tests
