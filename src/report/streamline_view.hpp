// Streamlines drawn as thin tubes, coloured by direction, in parallel projection along an anatomical axis: a software
// rasteriser with a depth buffer, supersampling, light that falls off with depth and shade where other tubes lie in
// front (the idea of LineAO: Eichelbaum, Hlawitschka, Scheuermann, "LineAO - improved three-dimensional line
// rendering", IEEE TVCG 19(3), 2013). Called by the report. The picture depends on the input alone, not on threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "numerics/vec3.hpp"
#include "report/picture.hpp"
#include "streamlines/world_box.hpp"

namespace cingulum {

// The left of the head is on the left of the two views that show both sides.
enum class ViewSide {
  sagittal,  // from the left
  coronal,   // from behind
  axial,     // from above
};
constexpr std::array<ViewSide, 3> all_view_sides = {ViewSide::sagittal, ViewSide::coronal, ViewSide::axial};
[[nodiscard]] std::string_view view_side_name(ViewSide side);

// World directions (RAS+) of the picture's axes; `away` points from the viewer into the picture.
struct ViewAxes {
  numerics::Vec3d right;
  numerics::Vec3d up;
  numerics::Vec3d away;
};
[[nodiscard]] ViewAxes view_axes(ViewSide side);

// What is drawn: positions in world millimetres, all finite.
struct DrawnStreamlines {
  std::vector<std::uint64_t> offsets = {0};  // streamlines + 1, in points
  std::vector<float> positions;              // x y z

  [[nodiscard]] std::size_t streamline_count() const { return offsets.size() - 1; }
  [[nodiscard]] std::size_t point_count() const { return positions.size() / 3; }
};

// The box around all points; the unit box around zero where there is none.
[[nodiscard]] WorldBox bounding_box(const DrawnStreamlines& streamlines);

struct ViewFrame {
  int width = 900;
  int height = 900;
  numerics::Vec3d centre = {0, 0, 0};  // in the middle of the picture
  double mm_per_pixel = 0.2;
  double near_mm = -100;  // along `away` from the centre: where the light is full
  double far_mm = 100;    // and where it is weakest
};
// The same scale for every side: the box fits a square of `pixels` from each.
[[nodiscard]] ViewFrame frame_around(const WorldBox& box, ViewSide side, int pixels);

constexpr double view_line_pixels = 1.35;

[[nodiscard]] Picture draw_streamlines(const DrawnStreamlines& streamlines, ViewSide side, const ViewFrame& frame,
                                       ThreadPool& pool);

// The letters of the four directions at the edges, each in the colour of its axis, and a scale bar.
void draw_orientation(Picture& picture, ViewSide side);
// Draws a bar of a round length, at most `share` of the picture's width.
void draw_scale_bar(Picture& picture, double mm_per_pixel, double share = 0.24);

// The colour of a direction: the components' magnitudes times the axes' colours.
[[nodiscard]] Colour direction_colour(numerics::Vec3d direction);

// The smallest rectangle that holds everything but background, grown by `margin` pixels: for placing views side by
// side. The whole picture where it is all background.
[[nodiscard]] Picture crop_to_content(const Picture& picture, int margin);

}  // namespace cingulum
