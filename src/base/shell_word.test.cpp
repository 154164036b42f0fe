#include "base/shell_word.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

TEST(ShellWord, words_are_quoted_where_they_must_be) {
  EXPECT_EQ(shell_word("tracks/a-1.trx"), "tracks/a-1.trx");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace cingulum
