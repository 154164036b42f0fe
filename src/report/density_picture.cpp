#include "report/density_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "numerics/classify.hpp"
#include "numerics/elementary64.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// How a picture's axis runs through the image: along which voxel axis, and whether against it.
struct ImageDirection {
  std::size_t axis = 0;
  bool reversed = false;
};

// The voxel axis nearest to a world direction that is one of the axes.
ImageDirection image_direction(const ImageGeometry& geometry, Vec3d world) {
  const std::string codes = geometry.axis_codes();
  const std::array<double, 3> components = {world.x, world.y, world.z};
  for (std::size_t w = 0; w < 3; ++w) {
    if (components[w] == 0) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (codes[axis] == "RAS"[w]) return {axis, components[w] < 0};
      if (codes[axis] == "LPI"[w]) return {axis, components[w] > 0};
    }
  }
  return {};
}

// A slice or projection, rows from the top, columns from the left, as it will be shown.
struct Plane {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  double column_mm = 1;
  double row_mm = 1;
  std::vector<double> density;  // 0 to 1
  std::vector<double> grey;     // 0 to 1; empty without anatomy

  [[nodiscard]] double sample(const std::vector<double>& values, double column, double row) const {
    const double last_column = static_cast<double>(columns - 1), last_row = static_cast<double>(rows - 1);
    const double c = std::clamp(column, 0.0, last_column), r = std::clamp(row, 0.0, last_row);
    const auto c0 = static_cast<std::size_t>(c), r0 = static_cast<std::size_t>(r);
    const std::size_t c1 = std::min(c0 + 1, static_cast<std::size_t>(columns - 1));
    const std::size_t r1 = std::min(r0 + 1, static_cast<std::size_t>(rows - 1));
    const double wc = c - static_cast<double>(c0), wr = r - static_cast<double>(r0);
    const auto at = [&](std::size_t x, std::size_t y) { return values[y * static_cast<std::size_t>(columns) + x]; };
    return (at(c0, r0) * (1 - wc) + at(c1, r0) * wc) * (1 - wr) + (at(c0, r1) * (1 - wc) + at(c1, r1) * wc) * wr;
  }
};

struct PlaneAxes {
  ImageDirection right, down, away;
};

PlaneAxes plane_axes(const ImageGeometry& geometry, ViewSide side) {
  const ViewAxes axes = view_axes(side);
  return {image_direction(geometry, axes.right), image_direction(geometry, -axes.up),
          image_direction(geometry, axes.away)};
}

Plane empty_plane(const ImageGeometry& geometry, const PlaneAxes& axes) {
  const auto edges = geometry.voxel_mm();
  Plane plane;
  plane.columns = geometry.size[axes.right.axis];
  plane.rows = geometry.size[axes.down.axis];
  plane.column_mm = edges[axes.right.axis];
  plane.row_mm = edges[axes.down.axis];
  plane.density.assign(static_cast<std::size_t>(plane.columns * plane.rows), 0);
  return plane;
}

// Calls body(place in the plane, index in the image) for each voxel of one slice.
template <class Body>
void for_each_in_slice(const ImageGeometry& geometry, const PlaneAxes& axes, std::int64_t slice, Body&& body) {
  const std::int64_t columns = geometry.size[axes.right.axis];
  const std::int64_t rows = geometry.size[axes.down.axis];
  std::array<std::int64_t, 3> voxel = {};
  voxel[axes.away.axis] = slice;
  for (std::int64_t row = 0; row < rows; ++row) {
    voxel[axes.down.axis] = axes.down.reversed ? rows - 1 - row : row;
    for (std::int64_t column = 0; column < columns; ++column) {
      voxel[axes.right.axis] = axes.right.reversed ? columns - 1 - column : column;
      body(static_cast<std::size_t>(row * columns + column),
           static_cast<std::size_t>(voxel_index(geometry, voxel[0], voxel[1], voxel[2])));
    }
  }
}

// Where half of all visits lie on either side.
std::int64_t middle_slice(const DensityMap& density, std::size_t axis) {
  const ImageGeometry& geometry = density.geometry();
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(geometry.size[axis]));
  std::size_t index = 0;
  std::array<std::int64_t, 3> voxel = {};
  std::uint64_t total = 0;
  for (voxel[2] = 0; voxel[2] < geometry.size[2]; ++voxel[2]) {
    for (voxel[1] = 0; voxel[1] < geometry.size[1]; ++voxel[1]) {
      for (voxel[0] = 0; voxel[0] < geometry.size[0]; ++voxel[0]) {
        const std::uint32_t count = density.counts()[index++];
        sums[static_cast<std::size_t>(voxel[axis])] += count;
        total += count;
      }
    }
  }
  if (total == 0) return geometry.size[axis] / 2;
  std::uint64_t before = 0;
  for (std::size_t slice = 0; slice < sums.size(); ++slice) {
    before += sums[slice];
    if (2 * before >= total) return static_cast<std::int64_t>(slice);
  }
  return geometry.size[axis] - 1;
}

// The part of the grid that pictures show, in voxels, both ends included.
struct ShownBox {
  std::array<std::int64_t, 3> low = {};
  std::array<std::int64_t, 3> high = {};
};

ShownBox whole_grid(const ImageGeometry& geometry) {
  return {{0, 0, 0}, {geometry.size[0] - 1, geometry.size[1] - 1, geometry.size[2] - 1}};
}

// The visited voxels and a margin around them.
ShownBox visited_box(const DensityMap& density) {
  const ImageGeometry& geometry = density.geometry();
  ShownBox box = {geometry.size, {-1, -1, -1}};
  std::size_t index = 0;
  std::array<std::int64_t, 3> voxel = {};
  for (voxel[2] = 0; voxel[2] < geometry.size[2]; ++voxel[2]) {
    for (voxel[1] = 0; voxel[1] < geometry.size[1]; ++voxel[1]) {
      for (voxel[0] = 0; voxel[0] < geometry.size[0]; ++voxel[0]) {
        if (density.counts()[index++] == 0) continue;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          box.low[axis] = std::min(box.low[axis], voxel[axis]);
          box.high[axis] = std::max(box.high[axis], voxel[axis]);
        }
      }
    }
  }
  if (box.high[0] < 0) return whole_grid(geometry);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box.low[axis] = std::max<std::int64_t>(0, box.low[axis] - 2);
    box.high[axis] = std::min(geometry.size[axis] - 1, box.high[axis] + 2);
  }
  return box;
}

double mm_per_pixel(const ImageGeometry& geometry, const ShownBox& box, int pixels) {
  const auto edges = geometry.voxel_mm();
  double largest = 1e-6;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    largest = std::max(largest, edges[axis] * static_cast<double>(box.high[axis] - box.low[axis] + 1));
  }
  return largest / (pixels * 0.88);
}

// Where the middle of the box lies along an axis of the picture, in voxels from its beginning.
double box_middle(const ImageGeometry& geometry, const ShownBox& box, ImageDirection direction) {
  const double middle = static_cast<double>(box.low[direction.axis] + box.high[direction.axis]) / 2;
  return direction.reversed ? static_cast<double>(geometry.size[direction.axis] - 1) - middle : middle;
}

std::uint8_t mix(double below, double above, double share) {
  return static_cast<std::uint8_t>(std::clamp(below + (above - below) * share, 0.0, 255.0) + 0.5);
}

Colour mix(Colour below, Colour above, double share) {
  return {mix(below.red, above.red, share), mix(below.green, above.green, share), mix(below.blue, above.blue, share)};
}

Picture draw_plane(const Plane& plane, const ImageGeometry& geometry, const ShownBox& box, ViewSide side, int pixels) {
  Picture picture(pixels, pixels);
  const double scale = mm_per_pixel(geometry, box, pixels);
  const PlaneAxes axes = plane_axes(geometry, side);
  const double middle_column = box_middle(geometry, box, axes.right);
  const double middle_row = box_middle(geometry, box, axes.down);
  for (int y = 0; y < pixels; ++y) {
    const double row = ((y + 0.5) - pixels / 2.0) * scale / plane.row_mm + middle_row;
    if (row < -0.5 || row >= static_cast<double>(plane.rows) - 0.5) continue;
    for (int x = 0; x < pixels; ++x) {
      const double column = ((x + 0.5) - pixels / 2.0) * scale / plane.column_mm + middle_column;
      if (column < -0.5 || column >= static_cast<double>(plane.columns) - 0.5) continue;
      Colour colour = picture_background;
      if (!plane.grey.empty()) {
        colour = mix(colour, {236, 238, 242}, plane.sample(plane.grey, column, row));
      }
      const double share = plane.sample(plane.density, column, row);
      // The anatomy shines through.
      const double opacity = plane.grey.empty() ? std::min(1.0, 0.25 + 2.2 * share) : std::min(0.78, 0.25 + share);
      if (share > 0) colour = mix(colour, density_colour(share), opacity);
      picture.set(x, y, colour);
    }
  }
  draw_orientation(picture, side);
  draw_scale_bar(picture, scale);
  return picture;
}

}  // namespace

double DensityScale::share(double count) const {
  if (!(count > 0)) return 0;
  return std::min(1.0, numerics::logarithm(1 + count) / numerics::logarithm(1 + static_cast<double>(full)));
}

DensityScale density_scale(const DensityMap& density) {
  std::vector<std::uint32_t> visited;
  for (const std::uint32_t count : density.counts()) {
    if (count > 0) visited.push_back(count);
  }
  if (visited.empty()) return {};
  const auto place = visited.begin() + static_cast<std::ptrdiff_t>((visited.size() - 1) * 199 / 200);
  std::nth_element(visited.begin(), place, visited.end());
  return {*place};
}

Colour density_colour(double share) {
  constexpr std::array<Colour, 6> stops = {
      {{38, 12, 84}, {110, 24, 110}, {188, 48, 84}, {238, 100, 40}, {252, 176, 44}, {252, 250, 190}}};
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  return mix(stops[below], stops[below + 1], place - static_cast<double>(below));
}

Anatomy make_anatomy(std::vector<float> values) {
  Anatomy anatomy;
  std::vector<float> shown;
  // A million values say enough of the percentiles.
  const std::size_t stride = std::max<std::size_t>(1, values.size() / 1'000'000);
  for (std::size_t i = 0; i < values.size(); i += stride) {
    if (numerics::is_finite(values[i]) && values[i] != 0) shown.push_back(values[i]);
  }
  if (!shown.empty()) {
    std::sort(shown.begin(), shown.end());
    anatomy.black = shown[(shown.size() - 1) / 100];
    anatomy.white = shown[(shown.size() - 1) * 199 / 200];
    // Maps from zero upwards (FA, b0) keep zero black.
    if (anatomy.black > 0) anatomy.black = 0;
  }
  if (!(anatomy.white > anatomy.black)) anatomy.white = anatomy.black + 1;
  anatomy.values = std::move(values);
  return anatomy;
}

DensityPicture draw_density_slice(const DensityMap& density, const DensityScale& scale, const Anatomy* anatomy,
                                  ViewSide side, int pixels) {
  const ImageGeometry& geometry = density.geometry();
  const PlaneAxes axes = plane_axes(geometry, side);
  DensityPicture result;
  result.axis = axes.away.axis;
  result.slice = middle_slice(density, result.axis);
  Plane plane = empty_plane(geometry, axes);
  if (anatomy != nullptr) plane.grey.assign(plane.density.size(), 0);
  for_each_in_slice(geometry, axes, result.slice, [&](std::size_t place, std::size_t voxel) {
    plane.density[place] = scale.share(density.counts()[voxel]);
    if (anatomy == nullptr) return;
    const float value = anatomy->values[voxel];
    const double range = static_cast<double>(anatomy->white) - anatomy->black;
    plane.grey[place] =
        numerics::is_finite(value) ? std::clamp((static_cast<double>(value) - anatomy->black) / range, 0.0, 1.0) : 0;
  });
  result.picture =
      draw_plane(plane, geometry, anatomy != nullptr ? whole_grid(geometry) : visited_box(density), side, pixels);
  std::array<double, 3> middle = {static_cast<double>(geometry.size[0] - 1) / 2,
                                  static_cast<double>(geometry.size[1] - 1) / 2,
                                  static_cast<double>(geometry.size[2] - 1) / 2};
  middle[result.axis] = static_cast<double>(result.slice);
  const Vec3d world = geometry.voxel_to_world.apply({middle[0], middle[1], middle[2]});
  const Vec3d away = view_axes(side).away;
  result.position_mm = dot(world, Vec3d{std::abs(away.x), std::abs(away.y), std::abs(away.z)});
  return result;
}

Picture draw_density_projection(const DensityMap& density, const DensityScale& scale, ViewSide side, int pixels) {
  const ImageGeometry& geometry = density.geometry();
  const PlaneAxes axes = plane_axes(geometry, side);
  Plane plane = empty_plane(geometry, axes);
  std::vector<std::uint32_t> largest(plane.density.size(), 0);
  for (std::int64_t slice = 0; slice < geometry.size[axes.away.axis]; ++slice) {
    for_each_in_slice(geometry, axes, slice, [&](std::size_t place, std::size_t voxel) {
      largest[place] = std::max(largest[place], density.counts()[voxel]);
    });
  }
  for (std::size_t place = 0; place < largest.size(); ++place) plane.density[place] = scale.share(largest[place]);
  return draw_plane(plane, geometry, visited_box(density), side, pixels);
}

}  // namespace cingulum
