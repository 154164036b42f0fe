#include "report/picture.hpp"

#include <algorithm>
#include <cmath>

namespace cingulum {
namespace {

// A shape is a list of lines on a grid, y upwards from the foot, capitals 6 high. Pen strokes are separated by `lift`.
constexpr float lift = -100;

struct Glyph {
  char character;
  float advance;
  std::span<const float> path;  // x y x y ..., lift lift between strokes
};

constexpr float path_0[] = {2, 6, 1,   5.6F, .4F,  4.6F, .2F, 3,    .4F,  1.4F, 1,    .4F, 2,
                            0, 3, .4F, 3.6F, 1.4F, 3.8F, 3,   3.6F, 4.6F, 3,    5.6F, 2,   6};
constexpr float path_1[] = {.8F, 4.8F, 2.2F, 6, 2.2F, 0};
constexpr float path_2[] = {.4F,  4.6F, .7F,  5.4F, 1.4F, 5.9F, 2.3F, 6, 3.2F, 5.6F,
                            3.6F, 4.7F, 3.4F, 3.7F, 2.6F, 2.6F, .3F,  0, 3.8F, 0};
constexpr float path_3[] = {.5F,  5.2F, 1.2F, 5.9F, 2.2F, 6,    3.1F, 5.6F, 3.5F, 4.7F, 3.1F,
                            3.7F, 2.2F, 3.2F, 1.4F, 3.2F, lift, lift, 2.2F, 3.2F, 3.2F, 2.8F,
                            3.7F, 1.7F, 3.3F, .6F,  2.2F, 0,    1.1F, .1F,  .3F,  .8F};
constexpr float path_4[] = {2.9F, 0, 2.9F, 6, .2F, 1.8F, 3.9F, 1.8F};
constexpr float path_5[] = {3.4F, 6,    .9F, 6,    .6F, 3.3F, 1.4F, 3.8F, 2.4F, 3.8F, 3.3F,
                            3.2F, 3.7F, 2,   3.3F, .7F, 2.2F, 0,    1.1F, .1F,  .3F,  .8F};
constexpr float path_6[] = {3.3F, 5.6F, 2.4F, 6,    1.3F, 5.5F, .5F,  4,    .3F,  2, .8F,  .7F,  2,
                            0,    3.2F, .6F,  3.7F, 1.8F, 3.3F, 3.1F, 2.2F, 3.7F, 1, 3.2F, .35F, 2};
constexpr float path_7[] = {.3F, 6, 3.8F, 6, 1.5F, 0};
constexpr float path_8[] = {2,    6,   1,    5.6F, .6F,  4.7F, 1,    3.7F, 2,    3.3F, 3,    3.7F, 3.4F,
                            4.7F, 3,   5.6F, 2,    6,    lift, lift, 2,    3.3F, .8F,  2.8F, .3F,  1.6F,
                            .9F,  .5F, 2,    0,    3.1F, .5F,  3.7F, 1.6F, 3.2F, 2.8F, 2,    3.3F};
constexpr float path_9[] = {.7F, .4F, 1.6F, 0,   2.7F, .5F, 3.5F, 2,    3.7F, 4, 3.2F, 5.3F,  2,
                            6,   .8F, 5.4F, .3F, 4.2F, .7F, 2.9F, 1.8F, 2.3F, 3, 2.8F, 3.65F, 4};
constexpr float path_A[] = {0, 0, 2.2F, 6, 4.4F, 0, lift, lift, .75F, 2, 3.65F, 2};
constexpr float path_I[] = {.6F, 0, .6F, 6};
constexpr float path_L[] = {.5F, 6, .5F, 0, 3.6F, 0};
constexpr float path_P[] = {.5F, 0, .5F, 6, 2.5F, 6, 3.4F, 5.6F, 3.8F, 4.5F, 3.4F, 3.3F, 2.5F, 2.9F, .5F, 2.9F};
constexpr float path_R[] = {.5F,  0,    .5F,  6,   2.5F, 6,    3.4F, 5.6F, 3.8F, 4.6F, 3.4F,
                            3.5F, 2.5F, 3.1F, .5F, 3.1F, lift, lift, 2.4F, 3.1F, 4,    0};
constexpr float path_S[] = {3.7F, 5,    3.2F, 5.7F, 2.2F, 6,    1.1F, 5.8F, .5F,  5, .6F, 4,   1.4F, 3.4F,
                            2.7F, 2.9F, 3.6F, 2.3F, 3.8F, 1.3F, 3.2F, .4F,  2.1F, 0, 1,   .2F, .3F,  1};
constexpr float path_c[] = {3.1F, 3.2F, 2.5F, 3.8F, 1.7F, 4, .8F,  3.5F, .4F,  2.6F,
                            .4F,  1.4F, .8F,  .5F,  1.7F, 0, 2.5F, .2F,  3.1F, .8F};
constexpr float path_m[] = {.4F,  0, .4F,  4,    lift, lift, .4F,  2.9F, 1,    3.7F, 1.8F, 4,    2.6F, 3.6F, 2.8F, 2.8F,
                            2.8F, 0, lift, lift, 2.8F, 2.9F, 3.4F, 3.7F, 4.2F, 4,    5,    3.6F, 5.2F, 2.8F, 5.2F, 0};

constexpr Glyph glyphs[] = {
    {'0', 4.9F, path_0}, {'1', 4.0F, path_1}, {'2', 4.9F, path_2}, {'3', 4.9F, path_3}, {'4', 5.0F, path_4},
    {'5', 4.9F, path_5}, {'6', 4.9F, path_6}, {'7', 4.9F, path_7}, {'8', 4.9F, path_8}, {'9', 4.9F, path_9},
    {'A', 5.4F, path_A}, {'I', 2.2F, path_I}, {'L', 4.4F, path_L}, {'P', 4.9F, path_P}, {'R', 5.1F, path_R},
    {'S', 5.0F, path_S}, {'c', 4.3F, path_c}, {'m', 6.4F, path_m},
};
constexpr float gap_advance = 2.6F;
constexpr float capital_height = 6;
constexpr double pen_share = 0.13;  // of the height

const Glyph* glyph_of(char character) {
  const auto* found = std::find_if(std::begin(glyphs), std::end(glyphs),
                                   [&](const Glyph& glyph) { return glyph.character == character; });
  return found == std::end(glyphs) ? nullptr : found;
}

double distance_squared(const Stroke& stroke, double x, double y) {
  const double dx = stroke.x1 - stroke.x0;
  const double dy = stroke.y1 - stroke.y0;
  const double square = dx * dx + dy * dy;
  const double along = square > 0 ? ((x - stroke.x0) * dx + (y - stroke.y0) * dy) / square : 0;
  const double t = std::clamp(along, 0.0, 1.0);
  const double ex = x - (stroke.x0 + t * dx);
  const double ey = y - (stroke.y0 + t * dy);
  return ex * ex + ey * ey;
}

std::uint8_t blend(std::uint8_t below, std::uint8_t above, double share) {
  const double value = static_cast<double>(below) + (static_cast<double>(above) - static_cast<double>(below)) * share;
  return static_cast<std::uint8_t>(value + 0.5);
}

}  // namespace

Picture::Picture(int width_pixels, int height_pixels, Colour fill)
    : width(width_pixels),
      height(height_pixels),
      rgb(3 * static_cast<std::size_t>(width_pixels) * static_cast<std::size_t>(height_pixels)) {
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    rgb[i] = fill.red;
    rgb[i + 1] = fill.green;
    rgb[i + 2] = fill.blue;
  }
}

void draw_strokes(Picture& picture, std::span<const Stroke> strokes, double width, Colour colour, double opacity) {
  if (strokes.empty()) return;
  double left = picture.width, right = 0, top = picture.height, bottom = 0;
  for (const Stroke& stroke : strokes) {
    left = std::min({left, stroke.x0, stroke.x1});
    right = std::max({right, stroke.x0, stroke.x1});
    top = std::min({top, stroke.y0, stroke.y1});
    bottom = std::max({bottom, stroke.y0, stroke.y1});
  }
  const double reach = width / 2 + 1;
  const int x_begin = static_cast<int>(std::clamp(std::floor(left - reach), 0.0, static_cast<double>(picture.width)));
  const int x_end = static_cast<int>(std::clamp(std::ceil(right + reach), 0.0, static_cast<double>(picture.width)));
  const int y_begin = static_cast<int>(std::clamp(std::floor(top - reach), 0.0, static_cast<double>(picture.height)));
  const int y_end = static_cast<int>(std::clamp(std::ceil(bottom + reach), 0.0, static_cast<double>(picture.height)));
  for (int y = y_begin; y < y_end; ++y) {
    for (int x = x_begin; x < x_end; ++x) {
      double nearest = reach * reach;
      for (const Stroke& stroke : strokes) nearest = std::min(nearest, distance_squared(stroke, x + 0.5, y + 0.5));
      // The share of the pixel that the pen covers, taken as if its edge were straight there.
      const double share = std::clamp(width / 2 + 0.5 - std::sqrt(nearest), 0.0, 1.0) * opacity;
      if (share <= 0) continue;
      const Colour below = picture.at(x, y);
      picture.set(x, y,
                  {blend(below.red, colour.red, share), blend(below.green, colour.green, share),
                   blend(below.blue, colour.blue, share)});
    }
  }
}

double text_width(double height, std::string_view text) {
  double advance = 0;
  for (const char character : text) {
    const Glyph* glyph = glyph_of(character);
    advance += glyph != nullptr ? glyph->advance : gap_advance;
  }
  return advance * height / capital_height;
}

void draw_text(Picture& picture, double x, double y, double height, std::string_view text, Colour colour) {
  const double scale = height / capital_height;
  std::vector<Stroke> strokes;
  for (const char character : text) {
    const Glyph* glyph = glyph_of(character);
    if (glyph != nullptr) {
      const auto path = glyph->path;
      for (std::size_t i = 2; i + 1 < path.size(); i += 2) {
        if (path[i] == lift || path[i - 2] == lift) continue;
        strokes.push_back(
            {x + path[i - 2] * scale, y - path[i - 1] * scale, x + path[i] * scale, y - path[i + 1] * scale});
      }
    }
    x += (glyph != nullptr ? glyph->advance : gap_advance) * scale;
  }
  draw_strokes(picture, strokes, std::max(1.2, height * pen_share), colour);
}

void paste(Picture& picture, const Picture& block, int x, int y) {
  const int x_begin = std::max(0, -x);
  const int x_end = std::min(block.width, picture.width - x);
  if (x_begin >= x_end) return;
  for (int row = std::max(0, -y); row < std::min(block.height, picture.height - y); ++row) {
    const auto source = block.rgb.begin() + static_cast<std::ptrdiff_t>(block.offset(x_begin, row));
    std::copy(source, source + 3 * (x_end - x_begin),
              picture.rgb.begin() + static_cast<std::ptrdiff_t>(picture.offset(x + x_begin, y + row)));
  }
}

}  // namespace cingulum
