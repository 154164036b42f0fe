#include "formats/sidecar.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "support/sidecar_beside.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

TEST(Sidecar, it_stands_beside_the_file_under_its_whole_name) {
  EXPECT_EQ(sidecar_path("folder/a.trx"), "folder/a.trx.json");
  EXPECT_EQ(sidecar_path("a.nii.gz"), "a.nii.gz.json");
  EXPECT_EQ(sidecar_path("folder/a.trx.d/"), "folder/a.trx.d.json");
}

TEST(Sidecar, it_holds_parameters_size_and_hash_and_is_read_back) {
  const TemporaryFolder folder;
  folder.put("a.nii", "content");
  ASSERT_TRUE(test::write_sidecar_beside(folder / "a.nii", Json{{"model", "dti"}, {"b0", 50}}));
  const auto json = read_sidecar(folder / "a.nii");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ((*json)["model"], "dti");
  EXPECT_EQ((*json)["file"], "a.nii");
  EXPECT_EQ((*json)["bytes"], 7);
  EXPECT_EQ((*json)["xxh3_128"], hash_hex("content"));
  EXPECT_EQ(*hash_of_file(folder / "a.nii"), hash_hex("content"));
  EXPECT_EQ(read_sidecar(folder / "b.nii").error().kind(), ErrorKind::not_found);
}

TEST(Sidecar, the_hash_of_a_folder_knows_names_sizes_and_bytes) {
  const TemporaryFolder folder;
  const auto hash_after = [&](auto&& change) {
    change();
    const auto hash = hash_of_file(folder.path());
    EXPECT_TRUE(hash);
    return *hash;
  };
  std::filesystem::create_directories(folder / "groups");
  const std::string first = hash_after([&] {
    folder.put("a", "12");
    folder.put("groups/b", "3");
  });
  EXPECT_EQ(hash_after([] {}), first);
  EXPECT_NE(hash_after([&] { folder.put("a", "13"); }), first);
  EXPECT_NE(hash_after([&] {
              folder.put("a", "1");
              folder.put("groups/b", "23");
            }),
            first);
  EXPECT_EQ(hash_after([&] {
              folder.put("a", "12");
              folder.put("groups/b", "3");
            }),
            first);
  EXPECT_NE(hash_after([&] { std::filesystem::rename(folder / "a", folder / "c"); }), first);
}

TEST(Json, depth_and_damage_are_refused_with_their_place) {
  const std::string deep_enough = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse_json(deep_enough));
  const auto deeper = parse_json("[" + deep_enough + "]");
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().message(), "JSON: more than 64 levels at byte 64");
  // Brackets in a text have no depth.
  EXPECT_TRUE(parse_json("[\"" + std::string(100, '[') + "\\\"[\"]"));
  const auto broken = parse_json("{\"a\": 1,}");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message(), "JSON: not well-formed at byte 9");
  EXPECT_EQ(broken.error().kind(), ErrorKind::corrupt);
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json("[1e999]"));
  EXPECT_FALSE(parse_json("[\"\xff\"]"));
}

TEST(RunFacts, they_say_how_and_where) {
  const Json facts = run_facts(3, 1.5);
  EXPECT_EQ(facts["threads"], 3);
  EXPECT_EQ(facts["seconds"], 1.5);
  EXPECT_FALSE(facts["version"].get<std::string>().empty());
  EXPECT_EQ(facts["finished"].get<std::string>().size(), 20U);
}

}  // namespace
}  // namespace cingulum
