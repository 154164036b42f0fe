#include "report/streamline_view.hpp"

#include <gtest/gtest.h>

#include "numerics/philox.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

void add_line(DrawnStreamlines& streamlines, std::initializer_list<std::array<float, 3>> points) {
  for (const auto& point : points) {
    for (const float value : point) streamlines.positions.push_back(value);
  }
  streamlines.offsets.push_back(streamlines.positions.size() / 3);
}

std::unique_ptr<ThreadPool> threads(int count) {
  return std::move(*ThreadPool::create(count));
}

ViewFrame small_frame() {
  ViewFrame frame;
  frame.width = frame.height = 60;
  frame.mm_per_pixel = 1;
  return frame;
}

bool is_mostly(Colour colour, std::uint8_t Colour::*channel) {
  int others = 0;
  for (const auto other : {&Colour::red, &Colour::green, &Colour::blue}) {
    if (other != channel) others = std::max<int>(others, colour.*other);
  }
  return colour.*channel > 2 * others && colour.*channel > 100;
}

TEST(StreamlineView, lines_along_the_axes_are_red_green_and_blue) {
  const auto pool = threads(1);
  DrawnStreamlines x, y, z;
  add_line(x, {{-20, 0, 0}, {20, 0, 0}});
  add_line(y, {{0, -20, 0}, {0, 20, 0}});
  add_line(z, {{0, 0, -20}, {0, 0, 20}});
  EXPECT_TRUE(is_mostly(draw_streamlines(x, ViewSide::coronal, small_frame(), *pool).at(40, 30), &Colour::red));
  EXPECT_TRUE(is_mostly(draw_streamlines(y, ViewSide::axial, small_frame(), *pool).at(30, 20), &Colour::green));
  EXPECT_TRUE(is_mostly(draw_streamlines(z, ViewSide::sagittal, small_frame(), *pool).at(30, 20), &Colour::blue));
}

TEST(StreamlineView, directions_and_their_opposites_have_one_colour) {
  EXPECT_EQ(direction_colour({1, 0, 0}), axis_colours[0]);
  EXPECT_EQ(direction_colour({0, -3, 0}).green, 255);
  EXPECT_EQ(direction_colour({1, 2, 3}), direction_colour({-1, -2, -3}));
  EXPECT_EQ(direction_colour({1, 2, 3}), direction_colour({-1, 2, 3}));
}

// A long segment near the viewer crosses a far one: the near one's colour is where they cross, whichever comes first.
TEST(StreamlineView, what_is_nearer_hides_what_is_behind) {
  const auto pool = threads(1);
  for (const bool near_first : {true, false}) {
    DrawnStreamlines lines;
    const auto near = [&] { add_line(lines, {{-20, -0.5F, 10}, {20, -0.5F, 10}}); };  // above: near in the axial view
    const auto far = [&] { add_line(lines, {{0, -20, -10}, {0, 20, -10}}); };         // below
    if (near_first) near();
    far();
    if (!near_first) near();
    EXPECT_TRUE(is_mostly(draw_streamlines(lines, ViewSide::axial, small_frame(), *pool).at(30, 30), &Colour::red));
  }
  // From behind, y is depth: the line at y = -10 is in front of the one at y = 10.
  DrawnStreamlines lines;
  add_line(lines, {{0, 10, -20}, {0, 10, 20}});
  add_line(lines, {{-20, -10, -0.5F}, {20, -10, -0.5F}});
  EXPECT_TRUE(is_mostly(draw_streamlines(lines, ViewSide::coronal, small_frame(), *pool).at(30, 30), &Colour::red));
  // From the left, x is depth: the line at x = -10 is in front.
  DrawnStreamlines sides;
  add_line(sides, {{-10, -0.5F, -20}, {-10, -0.5F, 20}});
  add_line(sides, {{10, -20, 0}, {10, 20, 0}});
  EXPECT_TRUE(is_mostly(draw_streamlines(sides, ViewSide::sagittal, small_frame(), *pool).at(30, 30), &Colour::blue));
}

TEST(StreamlineView, places_in_the_picture_are_where_the_letters_say) {
  const auto pool = threads(1);
  const auto drawn_at = [&](Vec3d place, ViewSide side) {
    DrawnStreamlines dot;
    const auto x = static_cast<float>(place.x), y = static_cast<float>(place.y), z = static_cast<float>(place.z);
    add_line(dot, {{x, y, z}});
    const Picture picture = draw_streamlines(dot, side, small_frame(), *pool);
    for (int row = 0; row < 60; ++row) {
      for (int column = 0; column < 60; ++column) {
        if (picture.at(column, row) != picture_background) return std::pair(column / 20, row / 20);
      }
    }
    return std::pair(-1, -1);
  };
  using Place = std::pair<int, int>;                                 // thirds of the picture: column, row
  EXPECT_EQ(drawn_at({0, 20, 0}, ViewSide::sagittal), Place(0, 1));  // A on the left
  EXPECT_EQ(drawn_at({0, 0, 20}, ViewSide::sagittal), Place(1, 0));  // S at the top
  EXPECT_EQ(drawn_at({-20, 0, 0}, ViewSide::coronal), Place(0, 1));  // L on the left
  EXPECT_EQ(drawn_at({0, 0, -20}, ViewSide::coronal), Place(1, 2));  // I at the bottom
  EXPECT_EQ(drawn_at({20, 0, 0}, ViewSide::axial), Place(2, 1));     // R on the right
  EXPECT_EQ(drawn_at({0, 20, 0}, ViewSide::axial), Place(1, 0));     // A at the top
}

DrawnStreamlines random_walks(std::uint32_t count) {
  DrawnStreamlines lines;
  for (std::uint32_t line = 0; line < count; ++line) {
    Vec3d at = {0, 0, 0};
    for (std::uint32_t step = 0; step < 40; ++step) {
      const auto random = numerics::philox4x32_10({{line, step, 0, 0}}, {1, 2});
      const auto turn = [](std::uint32_t word) { return static_cast<double>(word >> 8U) * 0x1p-24 - 0.5; };
      at = at + Vec3d{turn(random.word[0]), turn(random.word[1]), turn(random.word[2])} * 4.0;
      lines.positions.push_back(static_cast<float>(at.x));
      lines.positions.push_back(static_cast<float>(at.y));
      lines.positions.push_back(static_cast<float>(at.z));
    }
    lines.offsets.push_back(lines.positions.size() / 3);
  }
  return lines;
}

TEST(StreamlineView, the_picture_does_not_depend_on_the_number_of_threads) {
  const DrawnStreamlines lines = random_walks(300);
  const WorldBox box = bounding_box(lines);
  for (const ViewSide side : all_view_sides) {
    const ViewFrame frame = frame_around(box, side, 200);
    const Picture one = draw_streamlines(lines, side, frame, *threads(1));
    EXPECT_NE(one.rgb, Picture(200, 200).rgb);
    EXPECT_EQ(one.rgb, draw_streamlines(lines, side, frame, *threads(2)).rgb);
    EXPECT_EQ(one.rgb, draw_streamlines(lines, side, frame, *threads(8)).rgb);
  }
}

TEST(StreamlineView, everything_fits_the_frame) {
  const DrawnStreamlines lines = random_walks(50);
  const WorldBox box = bounding_box(lines);
  for (const ViewSide side : all_view_sides) {
    const Picture picture = draw_streamlines(lines, side, frame_around(box, side, 150), *threads(1));
    for (int i = 0; i < 150; ++i) {
      EXPECT_EQ(picture.at(i, 0), picture_background);
      EXPECT_EQ(picture.at(i, 149), picture_background);
      EXPECT_EQ(picture.at(0, i), picture_background);
      EXPECT_EQ(picture.at(149, i), picture_background);
    }
  }
}

TEST(StreamlineView, no_streamline_and_one_point_are_drawn) {
  const auto pool = threads(1);
  const ViewFrame frame = frame_around(bounding_box({}), ViewSide::axial, 64);
  EXPECT_EQ(draw_streamlines({}, ViewSide::axial, frame, *pool).rgb, Picture(64, 64).rgb);
  DrawnStreamlines dot;
  add_line(dot, {{7, 7, 7}});
  EXPECT_NE(draw_streamlines(dot, ViewSide::axial, frame_around(bounding_box(dot), ViewSide::axial, 64), *pool).rgb,
            Picture(64, 64).rgb);
}

TEST(StreamlineView, coordinates_at_the_end_of_the_range_do_no_harm) {
  const auto pool = threads(1);
  DrawnStreamlines lines;
  add_line(lines, {{-3e38F, 0, 0}, {3e38F, 1e30F, -3e38F}});
  for (const ViewSide side : all_view_sides) {
    const Picture picture = draw_streamlines(lines, side, frame_around(bounding_box(lines), side, 64), *pool);
    EXPECT_EQ(picture.width, 64);
    // From the left the line is deeper than float32 tells.
    if (side != ViewSide::sagittal) {
      EXPECT_NE(picture.rgb, Picture(64, 64).rgb);
    }
  }
}

TEST(StreamlineView, cropping_keeps_the_content_and_a_margin) {
  Picture picture(40, 30);
  picture.set(10, 12, picture_ink);
  picture.set(19, 16, picture_ink);
  const Picture cropped = crop_to_content(picture, 3);
  EXPECT_EQ(cropped.width, 16);
  EXPECT_EQ(cropped.height, 11);
  EXPECT_EQ(cropped.at(3, 3), picture_ink);
  EXPECT_EQ(cropped.at(12, 7), picture_ink);
  EXPECT_EQ(crop_to_content(Picture(5, 6), 3).width, 5);
}

}  // namespace
}  // namespace cingulum
