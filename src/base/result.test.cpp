#include "base/result.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

std::string in_capitals(std::string_view name) {
  std::string text;
  for (const char c : name) text += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return "<" + text + ">";
}

Status refused() {
  return fail_argument("max_angle", "{} 91 degrees: accepted is at most {}", argument_name("max_angle"), 90);
}

TEST(Error, mentions_arguments_plainly_and_lets_an_edge_spell_them) {
  const Error error = refused().error();
  EXPECT_EQ(error.message(), "max_angle 91 degrees: accepted is at most 90");
  EXPECT_EQ(error.message_for(in_capitals), "<MAX_ANGLE> 91 degrees: accepted is at most 90");
  EXPECT_EQ(error.argument(), "max_angle");
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
}

TEST(Error, keeps_the_names_through_contexts_with_and_without_names) {
  Status status = add_context(refused(), "track {}", 7);
  status = add_context(std::move(status), "{} and {}", argument_name("device"), argument_name("sh_order"));
  EXPECT_EQ(status.error().message(), "device and sh_order: track 7: max_angle 91 degrees: accepted is at most 90");
  EXPECT_EQ(status.error().message_for(in_capitals),
            "<DEVICE> and <SH_ORDER>: track 7: <MAX_ANGLE> 91 degrees: accepted is at most 90");
  EXPECT_EQ(status.error().argument(), "max_angle");
}

TEST(Error, inside_another_text_keeps_the_names) {
  const Status outer = fail(ErrorKind::io, "it failed: {}; use {}", refused().error(), argument_name("force"));
  EXPECT_EQ(outer.error().message_for(in_capitals),
            "it failed: <MAX_ANGLE> 91 degrees: accepted is at most 90; use <FORCE>");
  EXPECT_EQ(outer.error().argument(), "") << "it is another error";
  const Error again(ErrorKind::io, outer.error().marked_message());
  EXPECT_EQ(again.message(), outer.error().message());
  EXPECT_EQ(again.message_for(in_capitals), outer.error().message_for(in_capitals));
}

TEST(Error, carries_the_file_nearest_to_the_fault) {
  Status status = fail_file("a/bvals", ErrorKind::corrupt, "reading {}: a number", "a/bvals");
  status = add_file_context(std::move(status), "reading", "a/dwi.nii");
  EXPECT_EQ(status.error().message(), "reading a/dwi.nii: reading a/bvals: a number");
  EXPECT_EQ(status.error().file(), "a/bvals");
  EXPECT_EQ(add_file(refused(), "x").error().message(), refused().error().message());
  EXPECT_EQ(add_file(refused(), "x").error().file(), "x");
  EXPECT_EQ(add_argument(Status(fail(ErrorKind::io, "b")), "mask").error().argument(), "mask");
}

TEST(Error, without_names_and_files_has_none) {
  const Error error(ErrorKind::io, "plain");
  EXPECT_EQ(error.message(), "plain");
  EXPECT_EQ(error.message_for(in_capitals), "plain");
  EXPECT_EQ(error.argument(), "");
  EXPECT_EQ(error.file(), "");
}

TEST(Error, copies_share_nothing_that_changes) {
  const Error error = refused().error();
  Error copy = error;
  copy = std::move(copy).with_context("later").with_file("f");
  EXPECT_EQ(error.message_for(in_capitals), "<MAX_ANGLE> 91 degrees: accepted is at most 90");
  EXPECT_EQ(error.file(), "");
  EXPECT_EQ(copy.message_for(in_capitals), "later: <MAX_ANGLE> 91 degrees: accepted is at most 90");
}

TEST(ArgumentName, a_broken_mark_is_text) {
  for (const std::string text : {"\x0e", "\x0f", "a\x0e b", "\x0e\x0f", "\x0eNot a name\x0f",
                                 "\x0f"
                                 "a\x0e"}) {
    EXPECT_EQ(spell_argument_names(text, in_capitals), text);
    EXPECT_EQ(Error(ErrorKind::io, text).message(), text);
  }
  EXPECT_EQ(spell_argument_names("\x0e\x0e"
                                 "mask\x0f!",
                                 in_capitals),
            "\x0e<MASK>!");
}

}  // namespace
}  // namespace cingulum
