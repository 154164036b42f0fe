#include "base/edit_distance.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

const std::vector<std::string> verbs = {"devices", "settings", "selfcheck", "track", "cache"};

TEST(EditDistance, counts_insertions_deletions_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("devcies", "devices"), 1U);
  EXPECT_EQ(edit_distance("tracks", "track"), 1U);
  EXPECT_EQ(edit_distance("trxack", "track"), 1U);
  EXPECT_EQ(edit_distance("xtrack", "track"), 1U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // optimal string alignment; the unrestricted distance would be 2
}

TEST(NearestName, finds_typing_mistakes_and_beginnings_and_nothing_far) {
  EXPECT_EQ(nearest_name("devcies", verbs), "devices");
  EXPECT_EQ(nearest_name("trak", verbs), "track");
  // The first of equals, and one edit is allowed in a name of two letters.
  EXPECT_EQ(nearest_name("bat", std::vector<std::string>{"cat", "rat"}), "cat");
  EXPECT_EQ(nearest_name("ab", std::vector<std::string>{"cb"}), "cb");
  // A beginning counts as one edit: neither more nor less than a typing mistake.
  EXPECT_EQ(nearest_name("set", std::vector<std::string>{"bet", "settings"}), "bet");
  EXPECT_EQ(nearest_name("set", std::vector<std::string>{"settings", "bet"}), "settings");
  EXPECT_EQ(nearest_name("s", std::vector<std::string>{"settings"}), "") << "one letter is no beginning";
  const std::string longest(256, 'x');
  EXPECT_EQ(nearest_name(longest, std::vector<std::string>{longest}), longest);
  EXPECT_EQ(nearest_name(longest, std::vector<std::string>{longest + "x"}), "");
  EXPECT_EQ(nearest_name(longest + "x", std::vector<std::string>{longest}), "");
  EXPECT_EQ(nearest_name("a", std::vector<std::string>{"b"}), "") << "nothing of it is left";
  EXPECT_EQ(nearest_name("set", verbs), "settings");
  EXPECT_EQ(nearest_name("tractography", verbs), "");
  EXPECT_EQ(nearest_name("abcdyz", std::vector<std::string>{"abcdef"}), "abcdef");
  EXPECT_EQ(nearest_name("abcxyz", std::vector<std::string>{"abcdef"}), "");
  EXPECT_EQ(nearest_name("x", verbs), "");
  EXPECT_EQ(nearest_name("", verbs), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), verbs), "");
  EXPECT_EQ(did_you_mean("trak", verbs), "; did you mean 'track'?");
  EXPECT_EQ(did_you_mean("zzz", verbs), "");
}

}  // namespace
}  // namespace cingulum
