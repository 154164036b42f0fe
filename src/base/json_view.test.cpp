#include "base/json_view.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cingulum {
namespace {

TEST(json_view, a_member_is_found_at_any_depth_and_has_the_value_of_its_type_alone) {
  const auto json = nlohmann::ordered_json::parse(
      R"({"run": {"version": "1.2", "threads": 4, "seconds": 0.5, "partial": false, "names": ["a", 7, "b"]}})");
  const JsonView run = JsonView(json)["run"];
  EXPECT_EQ(*run["version"].text(), "1.2");
  EXPECT_EQ(run["version"].text_or("unknown"), "1.2");
  EXPECT_EQ(run["threads"].count(), 4u);
  EXPECT_EQ(run["threads"].number(), 4.0);
  EXPECT_EQ(run["seconds"].number(), 0.5);
  EXPECT_EQ(run["partial"].flag(), false);
  EXPECT_EQ(run["names"].texts(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run.object(), &json["run"]);
  EXPECT_EQ(run["names"].list(), &json["run"]["names"]);

  EXPECT_EQ(run["threads"].text(), nullptr);
  EXPECT_EQ(run["threads"].text_or("unknown"), "unknown");
  EXPECT_EQ(run["threads"].flag(), std::nullopt);
  EXPECT_EQ(run["seconds"].count(), std::nullopt);
  EXPECT_EQ(run["version"].number(), std::nullopt);
  EXPECT_EQ(run["version"].object(), nullptr);
  EXPECT_EQ(run.list(), nullptr);
  EXPECT_TRUE(run.texts().empty());
}

TEST(json_view, what_is_not_there_is_a_view_of_nothing_however_far_one_looks) {
  for (const char* const text : {"{}", "[]", "null", "3", R"({"run": null})", R"({"run": {"version": null}})"}) {
    const auto json = nlohmann::ordered_json::parse(text);
    const JsonView version = JsonView(json)["run"]["version"];
    EXPECT_TRUE(version.json().is_null()) << text;
    EXPECT_EQ(version.text(), nullptr) << text;
    EXPECT_EQ(version["major"].count(), std::nullopt) << text;
    EXPECT_TRUE(version["major"].texts().empty()) << text;
  }
  const auto json = nlohmann::ordered_json::parse(R"({"run": null})");
  EXPECT_TRUE(JsonView(json)["run"].is_there()) << "a null is a value";
  EXPECT_FALSE(JsonView(json)["runs"].is_there());
}

TEST(json_view, a_count_is_whole_and_not_negative) {
  const auto json = nlohmann::ordered_json::parse("[18446744073709551615, -1, 1.0]");
  EXPECT_EQ(JsonView(json[0]).count(), ~std::uint64_t{0});
  EXPECT_EQ(JsonView(json[1]).count(), std::nullopt);
  EXPECT_EQ(JsonView(json[2]).count(), std::nullopt);
}

}  // namespace
}  // namespace cingulum
