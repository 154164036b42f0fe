#include "cli/text_layout.hpp"

#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace cingulum {
namespace {

TEST(WrapText, fills_lines_and_keeps_paragraphs_and_indented_lines) {
  EXPECT_EQ(wrap_text("one two three four five six seven", 20), "one two three four\nfive six seven\n");
  EXPECT_EQ(wrap_text("one\ntwo\n\nthree", 40), "one two\n\nthree\n");
  EXPECT_EQ(wrap_text("list:\n  a = 1\n  b = 2", 40), "list:\n  a = 1\n  b = 2\n");
  EXPECT_EQ(wrap_text("one two", 40, 4), "    one two\n");
  EXPECT_EQ(wrap_text("a " + std::string(30, 'x') + " b", 20), "a\n" + std::string(30, 'x') + "\nb\n");
  EXPECT_EQ(wrap_text("", 40), "");
}

TEST(WrapText, counts_columns_not_bytes) {
  EXPECT_EQ(wrap_text("\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5 12345678 x", 20),
            "\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5\u00b5 12345678 x\n");
}

TEST(DefinitionList, aligns_texts_and_gives_long_labels_a_line) {
  EXPECT_EQ(definition_list({{"-a", "first"}, {"--bbb", "second text that wraps"}}, 31),
            "  -a     first\n"
            "  --bbb  second text that wraps\n");
  EXPECT_EQ(definition_list({{"-a", "first"}, {std::string(40, 'x'), "text"}}, 60),
            "  -a  first\n  " + std::string(40, 'x') + "\n      text\n");
  // The longest label that still has its text beside it, and one column more.
  EXPECT_EQ(definition_list({{std::string(26, 'x'), "text"}}, 60), "  " + std::string(26, 'x') + "  text\n");
  EXPECT_EQ(definition_list({{std::string(27, 'x'), "text"}}, 60), "  " + std::string(27, 'x') + "\n    text\n");
  EXPECT_EQ(definition_list({{"-a", ""}}, 60), "  -a\n");
  EXPECT_EQ(definition_list({}, 60), "");
}

TEST(Table, aligns_columns_by_their_width_on_the_screen) {
  Table table({{"name"}, {"size", Align::right}, {"note"}});
  table.add_row({"\u00b5", "1", "x"});
  table.add_row({"longer", "1000"});
  EXPECT_EQ(table.text(),
            "name    size  note\n"
            "\u00b5          1  x\n"
            "longer  1000\n");
  EXPECT_EQ(table.rows(), 2U);
}

TEST(Table, keeps_a_cell_on_one_line_and_free_of_control_characters) {
  Table table({{""}, {""}});
  table.add_row({"a\nb\tc", "\x1b[2J"});
  EXPECT_EQ(table.text(2), "  a b c  \\x1b[2J\n");
}

TEST(Table, of_no_rows_is_its_headers) {
  EXPECT_EQ(Table({{"name"}, {"size"}}).text(), "name  size\n");
  EXPECT_EQ(Table({{""}, {""}}).text(), "");
}

}  // namespace
}  // namespace cingulum
