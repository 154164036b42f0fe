#include "view/exported_tracks.hpp"

#include <gtest/gtest.h>

namespace cingulum::exported_tracks_tests {
namespace {

ExportedFacts some_facts() {
  ExportedFacts facts;
  facts.source.data = {"dwi.nii.gz"};
  facts.source.options = {{"mask", {"mask.nii.gz"}}, {"amplitudes", {}, true}};
  facts.source.name = "dwi.nii.gz";
  facts.first_getter = "prob";
  facts.limits = {.getters = {"prob", "det"}, .lowest_threshold = 0.2, .reach_voxels = 3};
  facts.min_signal = 1.5;
  facts.model = {{"model", "csd"}};
  facts.arguments = {{"prob", {{"options", {{"dg", "prob"}}}}}};
  return facts;
}

TEST(ExportedFacts, are_read_as_they_were_written) {
  const auto written = facts_json(some_facts());
  const auto read = facts_of_json(written);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(facts_json(*read), written);
  EXPECT_EQ(read->source.options, some_facts().source.options);
  EXPECT_EQ(read->limits.lowest_threshold, 0.2);
  EXPECT_EQ(read->limits.reach_voxels, 3);
  EXPECT_FALSE(read->truth);
}

TEST(ExportedFacts, without_a_lowest_threshold_have_none) {
  ExportedFacts facts = some_facts();
  facts.limits.lowest_threshold.reset();
  const auto read = facts_of_json(facts_json(facts));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->limits.lowest_threshold);
}

TEST(ExportedFacts, with_a_member_that_is_missing_or_of_another_kind_are_damaged) {
  const auto whole = facts_json(some_facts());
  EXPECT_FALSE(facts_of_json(nlohmann::ordered_json()));
  EXPECT_FALSE(facts_of_json(nlohmann::ordered_json::array()));
  const auto refused = [&](const char* name, const nlohmann::ordered_json& value) {
    auto damaged = whole;
    damaged[name] = value;
    const auto read = facts_of_json(damaged);
    return !read && read.error().kind() == ErrorKind::corrupt;
  };
  EXPECT_TRUE(refused("data", "dwi.nii.gz"));
  EXPECT_TRUE(refused("data", {1, 2}));
  EXPECT_TRUE(refused("options", {{"mask", "mask.nii.gz"}}));
  EXPECT_TRUE(refused("first_getter", 3));
  EXPECT_TRUE(refused("getters", nullptr));
  EXPECT_TRUE(refused("lowest_threshold", "low"));
  EXPECT_TRUE(refused("reach_voxels", 2.5));
  EXPECT_TRUE(refused("min_signal", "1"));
  EXPECT_TRUE(refused("arguments", nlohmann::ordered_json::array()));
  EXPECT_TRUE(refused("truth", 7));
  for (const char* name : {"data", "options", "name", "before", "first_getter", "getters", "min_signal", "arguments"}) {
    auto damaged = whole;
    damaged.erase(name);
    EXPECT_FALSE(facts_of_json(damaged)) << "without " << name;
  }
}

}  // namespace
}  // namespace cingulum::exported_tracks_tests
