#include "zarr/hierarchy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cingulum::zarr::hierarchy_tests {
namespace {

namespace fs = std::filesystem;

class Hierarchies : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("hierarchy-{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& key, const std::string& text) {
    fs::create_directories((folder_ / key).parent_path());
    std::ofstream(folder_ / key) << text;
  }
  Result<Hierarchy> read(const HierarchyLimits& limits = {}) {
    auto store = Store::open(folder_);
    if (!store) return tl::make_unexpected(store.error());
    return read_hierarchy(**store, "", limits);
  }
  fs::path folder_;
};

constexpr const char* group3 = R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})";
constexpr const char* array2 =
    R"({"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i2", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null})";

TEST_F(Hierarchies, groups_and_arrays_of_both_versions_are_found_and_arrays_not_entered) {
  put("zarr.json", group3);
  put("b/.zarray", array2);
  put("b/.zattrs", R"({"x": 2})");
  put("b/inner/zarr.json", group3);  // inside an array: a chunk's folder
  put("a/zarr.json", group3);
  put("a/deep/.zgroup", R"({"zarr_format": 2})");
  put("other/file", "");
  const auto found = read();
  ASSERT_TRUE(found) << found.error().message();
  std::vector<std::string> paths;
  for (const Node& node : found->nodes) paths.push_back(node.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"", "a", "a/deep", "b"}));
  EXPECT_EQ(found->nodes[0].attributes, R"({"a":1})");
  EXPECT_EQ(found->nodes[2].format, 2);
  EXPECT_EQ(found->nodes[3].kind, NodeKind::array);
  EXPECT_EQ(found->nodes[3].attributes, R"({"x":2})");
  EXPECT_TRUE(found->notes.empty());
}

TEST_F(Hierarchies, walks_are_bounded) {
  std::string path;
  for (int i = 0; i < 5; ++i) {
    put(join_path(path, "zarr.json"), group3);
    path = join_path(path, "g");
  }
  EXPECT_TRUE(read());
  EXPECT_FALSE(read({.depth = 3}));
  EXPECT_FALSE(read({.nodes = 4}));
  EXPECT_TRUE(read({.depth = 4, .nodes = 5}));
}

TEST_F(Hierarchies, consolidated_metadata_are_compared) {
  put(".zgroup", R"({"zarr_format": 2})");
  put("a/.zarray", array2);
  put("b/.zarray", array2);
  put(".zmetadata", fmt::format(R"({{"zarr_consolidated_format": 1, "metadata": {{".zgroup": {{"zarr_format": 2}},
      "a/.zarray": {}, "c/.zarray": {}, "../d/.zarray": {}}}}})",
                                array2, array2, array2));
  const auto found = read();
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->notes.size(), 3U);
  EXPECT_NE(found->notes[0].find("../d/.zarray, which is not there"), std::string::npos) << found->notes[0];
  EXPECT_NE(found->notes[1].find("c/.zarray, which is not there"), std::string::npos) << found->notes[1];
  EXPECT_NE(found->notes[2].find("do not name"), std::string::npos) << found->notes[2];
}

TEST_F(Hierarchies, what_must_be_understood_is_refused_by_name) {
  put("zarr.json", R"({"zarr_format": 3, "node_type": "group", "new_thing": {}})");
  const auto found = read();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message().find("'new_thing'"), std::string::npos) << found.error().message();
  put("zarr.json", R"({"zarr_format": 3, "node_type": "group", "new_thing": {"must_understand": false}})");
  EXPECT_TRUE(read());
}

TEST_F(Hierarchies, damaged_documents_are_told_with_their_file) {
  for (const char* text :
       {"", "{", "[]", R"({"zarr_format": 4, "node_type": "group"})", R"({"zarr_format": 3, "node_type": "thing"})",
        R"({"zarr_format": 3, "node_type": "group", "attributes": 3})"}) {
    put("zarr.json", text);
    const auto found = read();
    ASSERT_FALSE(found) << text;
    EXPECT_NE(found.error().message().find("zarr.json"), std::string::npos) << found.error().message();
  }
}

TEST_F(Hierarchies, an_empty_folder_is_no_hierarchy) {
  EXPECT_FALSE(*is_zarr(folder_));
  put("zarr.json", group3);
  EXPECT_TRUE(*is_zarr(folder_));
  put("file.txt", "PK or not");
  EXPECT_FALSE(*is_zarr(folder_ / "file.txt"));
}

}  // namespace
}  // namespace cingulum::zarr::hierarchy_tests
