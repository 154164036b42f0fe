// A picture in memory, 8 bits of red, green and blue per pixel, rows from the top, and the little that is drawn on it
// directly: soft-edged strokes, text in a stroke font (digits, unit names and the letters of the anatomical
// directions), blocks of other pictures. Made by the views and maps of a report, written by png.hpp. All of it is plain
// arithmetic: the same input gives the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cingulum {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Colour&, const Colour&) = default;
};

constexpr Colour picture_background = {11, 14, 20};
constexpr Colour picture_ink = {226, 231, 240};

// The colours of directions: left-right, back-front, down-up. Red, green and blue as everybody draws them, a little
// lighter so that blue can be seen on a dark ground.
constexpr std::array<Colour, 3> axis_colours = {{{255, 64, 56}, {70, 222, 92}, {72, 122, 255}}};

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // 3 * width * height

  Picture() = default;
  Picture(int width_pixels, int height_pixels, Colour fill = picture_background);

  [[nodiscard]] std::size_t offset(int x, int y) const {
    return 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x));
  }
  [[nodiscard]] Colour at(int x, int y) const {
    const std::size_t i = offset(x, y);
    return {rgb[i], rgb[i + 1], rgb[i + 2]};
  }
  void set(int x, int y, Colour colour) {
    const std::size_t i = offset(x, y);
    rgb[i] = colour.red;
    rgb[i + 1] = colour.green;
    rgb[i + 2] = colour.blue;
  }
};

// In pixels; the centre of the upper left pixel is (0.5, 0.5).
struct Stroke {
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;
};

// The union of the strokes, so that joints are not painted twice. `opacity` from 0 to 1.
void draw_strokes(Picture& picture, std::span<const Stroke> strokes, double width, Colour colour, double opacity = 1);

// Characters without a shape leave a gap. `height` is that of capitals; the text begins at x, its foot is at y.
void draw_text(Picture& picture, double x, double y, double height, std::string_view text, Colour colour);
[[nodiscard]] double text_width(double height, std::string_view text);

// Copies `block` to (x, y); what lies outside is cut off.
void paste(Picture& picture, const Picture& block, int x, int y);

}  // namespace cingulum
