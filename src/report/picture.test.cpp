#include "report/picture.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cingulum {
namespace {

constexpr Colour black = {0, 0, 0};
constexpr Colour white = {255, 255, 255};

TEST(Picture, a_new_picture_is_filled) {
  const Picture picture(3, 2, {1, 2, 3});
  ASSERT_EQ(picture.rgb.size(), 18U);
  EXPECT_EQ(picture.at(2, 1), (Colour{1, 2, 3}));
}

TEST(Picture, a_stroke_covers_the_pixels_under_it_and_no_others) {
  Picture picture(9, 9, black);
  const std::array<Stroke, 1> stroke = {{{2.5, 4.5, 6.5, 4.5}}};
  draw_strokes(picture, stroke, 1, white);
  for (int x = 2; x <= 6; ++x) EXPECT_EQ(picture.at(x, 4), white) << x;
  for (int x = 0; x < 9; ++x) {
    EXPECT_EQ(picture.at(x, 2), black) << x;
    EXPECT_EQ(picture.at(x, 6), black) << x;
  }
  EXPECT_EQ(picture.at(0, 4), black);
  EXPECT_EQ(picture.at(8, 4), black);
}

TEST(Picture, strokes_that_cross_are_painted_once) {
  Picture once(5, 5, black), twice(5, 5, black);
  const std::array<Stroke, 2> same = {{{0, 2.5, 5, 2.5}, {0, 2.5, 5, 2.5}}};
  draw_strokes(once, std::span(same).first(1), 1, white, 0.5);
  draw_strokes(twice, same, 1, white, 0.5);
  EXPECT_EQ(once.rgb, twice.rgb);
  EXPECT_EQ(once.at(2, 2), (Colour{128, 128, 128}));
}

TEST(Picture, what_lies_outside_is_cut_off) {
  Picture picture(4, 4, black);
  paste(picture, Picture(3, 3, white), 2, -1);
  EXPECT_EQ(picture.at(2, 0), white);
  EXPECT_EQ(picture.at(3, 1), white);
  EXPECT_EQ(picture.at(1, 0), black);
  EXPECT_EQ(picture.at(2, 2), black);
  paste(picture, Picture(3, 3, white), 40, 40);
  const std::array<Stroke, 1> far = {{{-1e9, -1e9, -1e8, -1e8}}};
  draw_strokes(picture, far, 3, white);
  draw_text(picture, 100, 100, 10, "S", white);
  EXPECT_EQ(picture.at(3, 3), black);
}

TEST(Picture, every_letter_of_the_legend_has_its_own_shape) {
  const std::string_view letters = "LRAPSI0123456789cm";
  std::vector<std::vector<std::uint8_t>> shapes;
  for (const char letter : letters) {
    Picture picture(40, 40, black);
    draw_text(picture, 8, 32, 24, std::string_view(&letter, 1), white);
    EXPECT_NE(picture.rgb, Picture(40, 40, black).rgb) << letter;
    for (const auto& other : shapes) EXPECT_NE(picture.rgb, other) << letter;
    shapes.push_back(picture.rgb);
    EXPECT_GT(text_width(24, std::string_view(&letter, 1)), 0);
  }
  Picture gap(40, 40, black);
  draw_text(gap, 8, 32, 24, "\x01 ", white);
  EXPECT_EQ(gap.rgb, Picture(40, 40, black).rgb);
}

}  // namespace
}  // namespace cingulum
