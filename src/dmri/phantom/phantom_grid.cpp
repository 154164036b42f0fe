#include "dmri/phantom/phantom_grid.hpp"

#include <numbers>

#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

using std::numbers::pi;

// Exact at multiples of 90 degrees.
numerics::SineCosine<double> turn(double degrees) {
  const double quarters = degrees / 90;
  if (quarters == numerics::floor_of(quarters)) {
    const auto quarter = static_cast<int>(quarters) & 3;
    constexpr std::array<double, 4> sines = {0, 1, 0, -1};
    return {sines[static_cast<std::size_t>(quarter)], sines[static_cast<std::size_t>((quarter + 1) & 3)]};
  }
  return numerics::sine_cosine(degrees * (pi / 180));
}

using Matrix = std::array<std::array<double, 3>, 3>;

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) result[r][c] = (a[r][0] * b[0][c] + a[r][1] * b[1][c]) + a[r][2] * b[2][c];
  }
  return result;
}

Matrix rotation(const std::array<double, 3>& degrees) {
  const auto x = turn(degrees[0]), y = turn(degrees[1]), z = turn(degrees[2]);
  const Matrix rx = {{{1, 0, 0}, {0, x.cosine, -x.sine}, {0, x.sine, x.cosine}}};
  const Matrix ry = {{{y.cosine, 0, y.sine}, {0, 1, 0}, {-y.sine, 0, y.cosine}}};
  const Matrix rz = {{{z.cosine, -z.sine, 0}, {z.sine, z.cosine, 0}, {0, 0, 1}}};
  return multiply(rz, multiply(ry, rx));
}

}  // namespace

Result<PhantomGrid> phantom_grid(Vec3d extent_mm, const GridOptions& options) {
  for (const double edge : options.voxel_mm) {
    if (!(edge >= 0.1 && edge <= 20)) {
      return fail_argument("voxel_size", "a voxel edge of {} mm (0.1 to 20 are accepted)", edge);
    }
  }
  for (const double angle : options.rotate_deg) {
    if (!(angle >= -360 && angle <= 360)) {
      return fail_argument("rotate", "a rotation by {} degrees (-360 to 360 are accepted)", angle);
    }
  }
  const Matrix turned = rotation(options.rotate_deg);
  const std::array<double, 3> extent = {extent_mm.x, extent_mm.y, extent_mm.z};
  PhantomGrid grid;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double along = 0;
    for (std::size_t world = 0; world < 3; ++world) along += numerics::absolute(turned[world][axis]) * extent[world];
    // A thousandth of a voxel of slack: 80 mm are 40 voxels of 2 mm, not 41.
    const double voxels = along / options.voxel_mm[axis];
    grid.canonical.size[axis] = static_cast<std::int64_t>(numerics::floor_of(voxels + 0.999));
  }
  constexpr std::int64_t most_voxels = std::int64_t{1} << 30U;
  const auto& size = grid.canonical.size;
  if (size[0] > 32767 || size[1] > 32767 || size[2] > 32767 || size[0] * size[1] > most_voxels / size[2]) {
    return fail_argument("voxel_size", "a grid of {} x {} x {} voxels is too large; choose larger voxels", size[0],
                         size[1], size[2]);
  }
  Affine& affine = grid.canonical.voxel_to_world;
  for (int row = 0; row < 3; ++row) {
    double origin = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      affine.at(row, axis) = turned[static_cast<std::size_t>(row)][a] * options.voxel_mm[a];
      origin -= affine.at(row, axis) * (0.5 * static_cast<double>(size[a] - 1));
    }
    affine.at(row, 3) = origin;
  }
  // The stored axes.
  if (options.orientation.size() != 3) {
    return fail_argument("orientation", "orientation '{}': three letters, one of R/L, A/P, S/I each",
                         options.orientation);
  }
  constexpr std::string_view positive = "RAS";
  constexpr std::string_view negative = "LPI";
  std::array<bool, 3> taken = {false, false, false};
  Affine& stored = grid.stored.voxel_to_world;
  for (int row = 0; row < 3; ++row) stored.at(row, 3) = affine.at(row, 3);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const char letter = options.orientation[axis];
    const std::size_t up = positive.find(letter), down = negative.find(letter);
    const std::size_t from = up != std::string_view::npos ? up : down;
    if (from == std::string_view::npos || taken[from]) {
      return fail_argument("orientation", "orientation '{}': three letters, one of R/L, A/P, S/I each",
                           options.orientation);
    }
    taken[from] = true;
    grid.canonical_axis[axis] = static_cast<int>(from);
    grid.flipped[axis] = up == std::string_view::npos;
    grid.stored.size[axis] = size[from];
    for (int row = 0; row < 3; ++row) {
      const double step = affine.at(row, static_cast<int>(from));
      stored.at(row, static_cast<int>(axis)) = grid.flipped[axis] ? -step : step;
      if (grid.flipped[axis]) stored.at(row, 3) += step * static_cast<double>(size[from] - 1);
    }
  }
  return grid;
}

}  // namespace cingulum
