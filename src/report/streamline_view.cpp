#include "report/streamline_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace cingulum {
namespace {

using numerics::Vec3d;

constexpr int samples_per_pixel_edge = 3;
constexpr int band_rows = 48;  // subpixel rows that one thread draws at a time
constexpr float empty_depth = std::numeric_limits<float>::max();

// A point of a streamline in the picture: subpixels, millimetres of depth, the colour of its direction with the light
// on it, 0 to 1.
struct ProjectedPoint {
  float x, y, depth;
  float red, green, blue;
};

struct Canvas {
  int width = 0;  // in subpixels
  int height = 0;
  std::vector<float> depth;
  std::vector<std::array<std::uint8_t, 4>> colour;  // the fourth byte is not used

  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
  }
};

struct LinearColour {
  double red, green, blue;
};

LinearColour colour_of_direction(Vec3d direction) {
  const double x = std::abs(direction.x), y = std::abs(direction.y), z = std::abs(direction.z);
  const auto mix = [&](std::uint8_t Colour::*channel) {
    return (x * axis_colours[0].*channel + y * axis_colours[1].*channel) + z * axis_colours[2].*channel;
  };
  LinearColour colour = {mix(&Colour::red), mix(&Colour::green), mix(&Colour::blue)};
  // Oblique directions would come out brighter than 255: the hue is what counts.
  const double largest = std::max({colour.red, colour.green, colour.blue});
  if (largest > 0) colour = {colour.red / largest, colour.green / largest, colour.blue / largest};
  return colour;
}

std::vector<ProjectedPoint> project(const DrawnStreamlines& streamlines, const ViewAxes& axes, const ViewFrame& frame,
                                    ThreadPool& pool) {
  std::vector<ProjectedPoint> points(streamlines.point_count());
  const double subpixels_per_mm = samples_per_pixel_edge / frame.mm_per_pixel;
  const double middle_x = frame.width * samples_per_pixel_edge / 2.0;
  const double middle_y = frame.height * samples_per_pixel_edge / 2.0;
  const auto position = [&](std::uint64_t point) {
    const float* p = streamlines.positions.data() + 3 * point;
    return Vec3d{p[0], p[1], p[2]};
  };
  pool.parallel_for(streamlines.streamline_count(), 256, [&](std::size_t begin, std::size_t end) {
    for (std::size_t line = begin; line < end; ++line) {
      const std::uint64_t first = streamlines.offsets[line];
      const std::uint64_t last = streamlines.offsets[line + 1];
      for (std::uint64_t point = first; point < last; ++point) {
        // The tangent reaches over two steps either way: single steps of probabilistic tracking turn too much for a
        // calm colour.
        const std::uint64_t before = point - std::min<std::uint64_t>(2, point - first);
        const std::uint64_t after = std::min(point + 2, last - 1);
        const Vec3d tangent = normalise(position(after) - position(before));
        const LinearColour hue = colour_of_direction(tangent);
        // A lamp at the viewer: tubes that run towards it show less of their side.
        const double along_view = dot(tangent, axes.away);
        const double light = 0.62 + 0.38 * std::sqrt(std::max(0.0, 1.0 - along_view * along_view));
        const Vec3d offset = position(point) - frame.centre;
        points[point] = {static_cast<float>(middle_x + dot(offset, axes.right) * subpixels_per_mm),
                         static_cast<float>(middle_y - dot(offset, axes.up) * subpixels_per_mm),
                         static_cast<float>(dot(offset, axes.away)),
                         static_cast<float>(hue.red * light),
                         static_cast<float>(hue.green * light),
                         static_cast<float>(hue.blue * light)};
      }
    }
  });
  return points;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 1.0F) * 255.0F + 0.5F);
}

// The floor of a number above -1000, without a call of the library in the innermost loops.
int floor_to_int(float value) {
  return static_cast<int>(value + 1000.0F) - 1000;
}

struct Brush {
  float radius;     // subpixels
  float radius_mm;  // how far the middle of a tube stands out
};

// The part of the tube from a to b that lies in the rows [row_begin, row_end).
void draw_tube(Canvas& canvas, const ProjectedPoint& a, const ProjectedPoint& b, const Brush& brush, int row_begin,
               int row_end) {
  const float top = std::min(a.y, b.y) - brush.radius;
  const float bottom = std::max(a.y, b.y) + brush.radius;
  if (!(bottom >= static_cast<float>(row_begin)) || !(top <= static_cast<float>(row_end))) return;
  if (std::max(a.x, b.x) + brush.radius < 0 || std::min(a.x, b.x) - brush.radius > static_cast<float>(canvas.width))
    return;
  const int y_begin = static_cast<int>(std::max(static_cast<float>(row_begin), top));
  const int y_end = std::min(row_end, static_cast<int>(std::min(static_cast<float>(row_end), bottom)) + 1);
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float square = dx * dx + dy * dy;
  const float inverse_square = square > 0 ? 1.0F / square : 0.0F;
  const float radius_square = brush.radius * brush.radius;
  const float nearest = std::min(a.depth, b.depth) - brush.radius_mm;
  for (int y = y_begin; y < y_end; ++y) {
    const float centre_y = static_cast<float>(y) + 0.5F;
    // The part of the axis within a radius of this row bounds the columns.
    float t_low = 0, t_high = 1;
    if (dy != 0) {
      const float t0 = (centre_y - brush.radius - a.y) / dy;
      const float t1 = (centre_y + brush.radius - a.y) / dy;
      t_low = std::clamp(std::min(t0, t1), 0.0F, 1.0F);
      t_high = std::clamp(std::max(t0, t1), 0.0F, 1.0F);
    }
    const float x0 = a.x + t_low * dx;
    const float x1 = a.x + t_high * dx;
    const float limit = static_cast<float>(canvas.width);
    const int x_begin = static_cast<int>(std::clamp(std::min(x0, x1) - brush.radius, 0.0F, limit));
    const int x_end = static_cast<int>(std::clamp(std::max(x0, x1) + brush.radius + 1, 0.0F, limit));
    for (int x = x_begin; x < x_end; ++x) {
      const std::size_t i = canvas.index(x, y);
      if (!(nearest < canvas.depth[i])) continue;
      const float ex = static_cast<float>(x) + 0.5F - a.x;
      const float ey = centre_y - a.y;
      const float t = std::clamp((ex * dx + ey * dy) * inverse_square, 0.0F, 1.0F);
      const float rx = ex - t * dx;
      const float ry = ey - t * dy;
      const float distance_square = rx * rx + ry * ry;
      if (distance_square > radius_square) continue;
      const float bulge = std::sqrt(1.0F - distance_square / radius_square);
      const float depth = a.depth + t * (b.depth - a.depth) - brush.radius_mm * bulge;
      // Among equals the earlier one stays.
      if (!(depth < canvas.depth[i])) continue;
      canvas.depth[i] = depth;
      const float light = 0.62F + 0.38F * bulge;
      canvas.colour[i] = {to_byte((a.red + t * (b.red - a.red)) * light),
                          to_byte((a.green + t * (b.green - a.green)) * light),
                          to_byte((a.blue + t * (b.blue - a.blue)) * light), 0};
    }
  }
}

void draw_all_tubes(Canvas& canvas, const DrawnStreamlines& streamlines, std::span<const ProjectedPoint> points,
                    const Brush& brush, ThreadPool& pool) {
  const auto bands = static_cast<std::size_t>((canvas.height + band_rows - 1) / band_rows);
  // Every band sees the streamlines in the same order, whoever draws it.
  pool.parallel_for(bands, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t band = begin; band < end; ++band) {
      const int row_begin = static_cast<int>(band) * band_rows;
      const int row_end = std::min(row_begin + band_rows, canvas.height);
      for (std::size_t line = 0; line < streamlines.streamline_count(); ++line) {
        const std::uint64_t first = streamlines.offsets[line];
        const std::uint64_t last = streamlines.offsets[line + 1];
        if (last - first == 1) draw_tube(canvas, points[first], points[first], brush, row_begin, row_end);
        for (std::uint64_t point = first + 1; point < last; ++point) {
          draw_tube(canvas, points[point - 1], points[point], brush, row_begin, row_end);
        }
      }
    }
  });
}

// Directions of the samples around a point, in units of their distance; three rings of eight, turned against each
// other.
constexpr std::array<std::array<float, 2>, 24> ring_directions = {{
    {1.0F, 0.0F},         {0.7071F, 0.7071F},   {0.0F, 1.0F},         {-0.7071F, 0.7071F}, {-1.0F, 0.0F},
    {-0.7071F, -0.7071F}, {0.0F, -1.0F},        {0.7071F, -0.7071F},  {0.9659F, 0.2588F},  {0.5F, 0.8660F},
    {-0.2588F, 0.9659F},  {-0.8660F, 0.5F},     {-0.9659F, -0.2588F}, {-0.5F, -0.8660F},   {0.2588F, -0.9659F},
    {0.8660F, -0.5F},     {0.8660F, 0.5F},      {0.2588F, 0.9659F},   {-0.5F, 0.8660F},    {-0.9659F, 0.2588F},
    {-0.8660F, -0.5F},    {-0.2588F, -0.9659F}, {0.5F, -0.8660F},     {0.9659F, -0.2588F},
}};
constexpr std::array<float, 3> ring_pixels = {2.2F, 6.0F, 15.0F};
constexpr std::array<float, 3> ring_weight = {0.40F, 0.34F, 0.26F};

// The share of directions around a subpixel in which something stands in front of it. The rings grow and shrink from
// one subpixel to the next, so that their edges do not show.
float occlusion(const Canvas& canvas, int x, int y, float mm_per_subpixel) {
  const float own = canvas.depth[canvas.index(x, y)];
  const auto seed = static_cast<unsigned>(x) * 2654435761U ^ static_cast<unsigned>(y) * 2246822519U;
  const float stretch = 0.7F + 0.6F * static_cast<float>((seed >> 13U) & 1023U) / 1023.0F;
  float total = 0;
  for (std::size_t ring = 0; ring < ring_pixels.size(); ++ring) {
    const float radius = ring_pixels[ring] * static_cast<float>(samples_per_pixel_edge) * stretch;
    const float radius_mm = radius * mm_per_subpixel;
    float covered = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      const auto& direction = ring_directions[8 * ring + k];
      const int sx = x + floor_to_int(direction[0] * radius + 0.5F);
      const int sy = y + floor_to_int(direction[1] * radius + 0.5F);
      if (sx < 0 || sy < 0 || sx >= canvas.width || sy >= canvas.height) continue;
      const float other = canvas.depth[canvas.index(sx, sy)];
      const float in_front = (own - other) / radius_mm;
      if (in_front > 0.25F && other != empty_depth) covered += std::min(1.0F, (in_front - 0.25F) * 0.9F);
    }
    total += ring_weight[ring] * covered / 8.0F;
  }
  return total;
}

// Light adds up as the square of what a display takes, near enough.
void resolve_rows(const Canvas& canvas, const ViewFrame& frame, Picture& picture, int y_begin, int y_end) {
  const auto mm_per_subpixel = static_cast<float>(frame.mm_per_pixel / samples_per_pixel_edge);
  const auto near_mm = static_cast<float>(frame.near_mm);
  const auto range_mm = static_cast<float>(std::max(1e-3, frame.far_mm - frame.near_mm));
  constexpr std::array<float, 3> ground = {picture_background.red / 255.0F, picture_background.green / 255.0F,
                                           picture_background.blue / 255.0F};
  for (int y = y_begin; y < y_end; ++y) {
    for (int x = 0; x < frame.width; ++x) {
      std::array<float, 3> sum = {0, 0, 0};
      for (int sy = 0; sy < samples_per_pixel_edge; ++sy) {
        for (int sx = 0; sx < samples_per_pixel_edge; ++sx) {
          const int cx = x * samples_per_pixel_edge + sx;
          const int cy = y * samples_per_pixel_edge + sy;
          const std::size_t i = canvas.index(cx, cy);
          std::array<float, 3> value = ground;
          if (canvas.depth[i] != empty_depth) {
            const float far_share = std::clamp((canvas.depth[i] - near_mm) / range_mm, 0.0F, 1.0F);
            const float shade = 1.0F - occlusion(canvas, cx, cy, mm_per_subpixel);
            const float light = (1.0F - 0.45F * far_share) * (0.2F + 0.8F * shade * shade);
            for (std::size_t c = 0; c < 3; ++c) {
              value[c] = ground[c] + (static_cast<float>(canvas.colour[i][c]) / 255.0F - ground[c]) * light;
            }
          }
          for (std::size_t c = 0; c < 3; ++c) sum[c] += value[c] * value[c];
        }
      }
      constexpr float samples = samples_per_pixel_edge * samples_per_pixel_edge;
      picture.set(x, y,
                  {to_byte(std::sqrt(sum[0] / samples)), to_byte(std::sqrt(sum[1] / samples)),
                   to_byte(std::sqrt(sum[2] / samples))});
    }
  }
}

struct SideLetters {
  char left, right, top, bottom;
  std::size_t horizontal_axis, vertical_axis;
};

SideLetters side_letters(ViewSide side) {
  switch (side) {
    case ViewSide::sagittal: return {'A', 'P', 'S', 'I', 1, 2};
    case ViewSide::coronal: return {'L', 'R', 'S', 'I', 0, 2};
    case ViewSide::axial: return {'L', 'R', 'A', 'P', 0, 1};
  }
  return {' ', ' ', ' ', ' ', 0, 0};
}

// 1, 2 or 5 times a power of ten, the largest that is not above `value`.
double round_down_to_125(double value) {
  double power = 1;
  while (power * 10 <= value) power *= 10;
  while (power > value) power /= 10;
  if (5 * power <= value) return 5 * power;
  if (2 * power <= value) return 2 * power;
  return power;
}

}  // namespace

std::string_view view_side_name(ViewSide side) {
  switch (side) {
    case ViewSide::sagittal: return "sagittal";
    case ViewSide::coronal: return "coronal";
    case ViewSide::axial: return "axial";
  }
  return "";
}

ViewAxes view_axes(ViewSide side) {
  switch (side) {
    case ViewSide::sagittal: return {{0, -1, 0}, {0, 0, 1}, {1, 0, 0}};
    case ViewSide::coronal: return {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}};
    case ViewSide::axial: return {{1, 0, 0}, {0, 1, 0}, {0, 0, -1}};
  }
  return {{1, 0, 0}, {0, 1, 0}, {0, 0, -1}};
}

WorldBox bounding_box(const DrawnStreamlines& streamlines) {
  if (streamlines.positions.empty()) return {{-1, -1, -1}, {1, 1, 1}};
  const float* p = streamlines.positions.data();
  WorldBox box = {{p[0], p[1], p[2]}, {p[0], p[1], p[2]}};
  for (std::size_t i = 0; i < streamlines.positions.size(); i += 3) {
    const Vec3d point = {p[i], p[i + 1], p[i + 2]};
    box.low = {std::min(box.low.x, point.x), std::min(box.low.y, point.y), std::min(box.low.z, point.z)};
    box.high = {std::max(box.high.x, point.x), std::max(box.high.y, point.y), std::max(box.high.z, point.z)};
  }
  return box;
}

ViewFrame frame_around(const WorldBox& box, ViewSide side, int pixels) {
  const Vec3d extent = box.high - box.low;
  const double largest = std::max({extent.x, extent.y, extent.z, 1.0});
  ViewFrame frame;
  frame.width = frame.height = pixels;
  frame.centre = (box.low + box.high) * 0.5;
  // The letters and the scale bar have their place in the margin.
  frame.mm_per_pixel = largest / (pixels * 0.88);
  const Vec3d away = view_axes(side).away;
  const double half_depth = 0.5 * dot(extent, Vec3d{std::abs(away.x), std::abs(away.y), std::abs(away.z)});
  frame.near_mm = -std::max(half_depth, 0.5);
  frame.far_mm = std::max(half_depth, 0.5);
  return frame;
}

Colour direction_colour(Vec3d direction) {
  const LinearColour colour = colour_of_direction(normalise(direction));
  return {to_byte(static_cast<float>(colour.red)), to_byte(static_cast<float>(colour.green)),
          to_byte(static_cast<float>(colour.blue))};
}

Picture draw_streamlines(const DrawnStreamlines& streamlines, ViewSide side, const ViewFrame& frame, ThreadPool& pool) {
  Picture picture(frame.width, frame.height);
  if (streamlines.positions.empty()) return picture;
  const std::vector<ProjectedPoint> points = project(streamlines, view_axes(side), frame, pool);
  Canvas canvas;
  canvas.width = frame.width * samples_per_pixel_edge;
  canvas.height = frame.height * samples_per_pixel_edge;
  const std::size_t count = static_cast<std::size_t>(canvas.width) * static_cast<std::size_t>(canvas.height);
  canvas.depth.assign(count, empty_depth);
  canvas.colour.resize(count);
  const auto radius = static_cast<float>(view_line_pixels * samples_per_pixel_edge / 2);
  const Brush brush = {radius, radius * static_cast<float>(frame.mm_per_pixel / samples_per_pixel_edge)};
  draw_all_tubes(canvas, streamlines, points, brush, pool);
  pool.parallel_for(static_cast<std::size_t>(frame.height), 16, [&](std::size_t begin, std::size_t end) {
    resolve_rows(canvas, frame, picture, static_cast<int>(begin), static_cast<int>(end));
  });
  return picture;
}

void draw_orientation(Picture& picture, ViewSide side) {
  const SideLetters letters = side_letters(side);
  const double height = std::max(9.0, std::max(picture.width, picture.height) * 0.021);
  const double margin = height * 0.8;
  const double middle_x = picture.width / 2.0;
  const double middle_y = picture.height / 2.0;
  const Colour horizontal = axis_colours[letters.horizontal_axis];
  const Colour vertical = axis_colours[letters.vertical_axis];
  const auto width_of = [&](char letter) { return text_width(height, std::string_view(&letter, 1)); };
  const auto write = [&](double x, double y, char letter, Colour colour) {
    draw_text(picture, x, y, height, std::string_view(&letter, 1), colour);
  };
  write(margin, middle_y + height / 2, letters.left, horizontal);
  write(picture.width - margin - width_of(letters.right) * 0.8, middle_y + height / 2, letters.right, horizontal);
  write(middle_x - width_of(letters.top) * 0.4, margin + height, letters.top, vertical);
  write(middle_x - width_of(letters.bottom) * 0.4, picture.height - margin, letters.bottom, vertical);
}

void draw_scale_bar(Picture& picture, double mm_per_pixel, double share) {
  const double height = std::max(8.0, picture.width * share * 0.066);
  const double margin = height * 1.3;
  const double length_mm = round_down_to_125(picture.width * share * mm_per_pixel);
  const double length_pixels = length_mm / mm_per_pixel;
  const std::string text = length_mm >= 10 ? fmt::format("{:g} cm", length_mm / 10) : fmt::format("{:g} mm", length_mm);
  const double x = picture.width - margin - length_pixels;
  const double y = picture.height - margin;
  const double tick = height * 0.35;
  const std::array<Stroke, 3> bar = {{{x, y, x + length_pixels, y},
                                      {x, y - tick, x, y + tick},
                                      {x + length_pixels, y - tick, x + length_pixels, y + tick}}};
  draw_strokes(picture, bar, std::max(1.2, height * 0.11), picture_ink, 0.85);
  draw_text(picture, x + (length_pixels - text_width(height, text)) / 2, y - height * 0.7, height, text, picture_ink);
}

Picture crop_to_content(const Picture& picture, int margin) {
  int left = picture.width, right = -1, top = picture.height, bottom = -1;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      if (picture.at(x, y) == picture_background) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  }
  if (right < 0) return picture;
  Picture cropped(right - left + 1 + 2 * margin, bottom - top + 1 + 2 * margin);
  paste(cropped, picture, margin - left, margin - top);
  return cropped;
}

}  // namespace cingulum
