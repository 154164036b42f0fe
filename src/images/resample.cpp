#include "images/resample.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace cingulum {
namespace {

using numerics::Vec3d;

// Affines come from float32 headers and were inverted: a centre that should lie on a centre or on a face does so within
// this, in voxels, and counts as if it did.
constexpr double voxel_tolerance = 1e-6;
constexpr std::int64_t most_voxels_along_an_axis = 1 << 20;

// The voxel along one axis; -1 outside.
std::int64_t voxel_of(double position, std::int64_t size) {
  const double voxel = std::floor(position + 0.5 + voxel_tolerance);
  return voxel >= 0 && voxel < static_cast<double>(size) ? static_cast<std::int64_t>(voxel) : -1;
}

// Between which two voxels of an axis a point lies, and the second one's weight.
struct Between {
  std::int64_t low = 0;
  std::int64_t high = 0;
  double share = 0;
};

Between between(double position, std::int64_t size) {
  const double nearest = std::floor(position + 0.5);
  if (std::abs(position - nearest) < voxel_tolerance) position = nearest;
  position = std::clamp(position, 0.0, static_cast<double>(size - 1));
  const double low = std::floor(position);
  Between result{static_cast<std::int64_t>(low), static_cast<std::int64_t>(low), position - low};
  if (result.share > 0) ++result.high;
  return result;
}

double mix(double low, double high, double share) {
  return share == 0 ? low : low * (1 - share) + high * share;
}

}  // namespace

Result<Resampler> Resampler::create(const ImageGeometry& from, const ImageGeometry& to, Interpolation interpolation) {
  Resampler resampler;
  CGL_TRY_ASSIGN(const Affine inverse, from.voxel_to_world.inverse());
  resampler.from_ = from;
  resampler.to_ = to;
  resampler.to_from_voxels_ = compose(inverse, to.voxel_to_world);
  resampler.interpolation_ = interpolation;
  return resampler;
}

template <class T>
void Resampler::resample(std::span<const T> from, std::span<T> to, ThreadPool* pool) const {
  const auto [nx, ny, nz] = from_.size;
  const auto value = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return from[static_cast<std::size_t>(voxel_index(from_, i, j, k))];
  };
  const auto sample = [&](Vec3d point) -> T {
    const std::int64_t i = voxel_of(point.x, nx), j = voxel_of(point.y, ny), k = voxel_of(point.z, nz);
    if (i < 0 || j < 0 || k < 0) return T{0};
    if (interpolation_ == Interpolation::nearest) return value(i, j, k);
    const Between x = between(point.x, nx), y = between(point.y, ny), z = between(point.z, nz);
    const auto along_x = [&](std::int64_t jj, std::int64_t kk) {
      return mix(static_cast<double>(value(x.low, jj, kk)), static_cast<double>(value(x.high, jj, kk)), x.share);
    };
    const auto along_y = [&](std::int64_t kk) { return mix(along_x(y.low, kk), along_x(y.high, kk), y.share); };
    return static_cast<T>(mix(along_y(z.low), along_y(z.high), z.share));
  };
  const auto row_length = static_cast<std::size_t>(to_.size[0]);
  const auto rows = static_cast<std::size_t>(to_.size[1] * to_.size[2]);
  const auto work = [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const auto j = static_cast<double>(static_cast<std::int64_t>(row) % to_.size[1]);
      const auto k = static_cast<double>(static_cast<std::int64_t>(row) / to_.size[1]);
      for (std::size_t i = 0; i < row_length; ++i) {
        to[row * row_length + i] = sample(to_from_voxels_.apply({static_cast<double>(i), j, k}));
      }
    }
  };
  if (pool == nullptr) return work(0, rows);
  pool->parallel_for(rows, 64, work);
}

void Resampler::volume(std::span<const float> from, std::span<float> to, ThreadPool* pool) const {
  resample(from, to, pool);
}

void Resampler::volume(std::span<const double> from, std::span<double> to, ThreadPool* pool) const {
  resample(from, to, pool);
}

bool is_inside(const ImageGeometry& grid, Vec3d voxel) {
  return voxel_of(voxel.x, grid.size[0]) >= 0 && voxel_of(voxel.y, grid.size[1]) >= 0 &&
         voxel_of(voxel.z, grid.size[2]) >= 0;
}

bool have_same_axes(const ImageGeometry& a, const ImageGeometry& b) {
  const auto edges_a = a.voxel_mm(), edges_b = b.voxel_mm();
  for (int column = 0; column < 3; ++column) {
    const auto axis = static_cast<std::size_t>(column);
    for (int row = 0; row < 3; ++row) {
      const double cosine_a = a.voxel_to_world.at(row, column) / edges_a[axis];
      const double cosine_b = b.voxel_to_world.at(row, column) / edges_b[axis];
      if (!(std::abs(cosine_a - cosine_b) < 1e-4)) return false;
    }
  }
  return true;
}

Result<ImageGeometry> with_voxel_size(const ImageGeometry& grid, const std::array<double, 3>& edges_mm) {
  ImageGeometry result = grid;
  const std::array<double, 3> old = grid.voxel_mm();
  std::array<double, 3> shift{};  // of the first centre, in old voxels
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double ratio = edges_mm[axis] / old[axis];
    const double voxels = std::ceil(static_cast<double>(grid.size[axis]) / ratio - voxel_tolerance);
    if (!(ratio > 0) || !(voxels >= 1) || voxels > static_cast<double>(most_voxels_along_an_axis)) {
      return fail_argument("voxel_size", "{} {} mm along axis {}: {} voxels of {:.4g} mm would become {:.4g}",
                           argument_name("voxel_size"), edges_mm[axis], axis + 1, grid.size[axis], old[axis], voxels);
    }
    result.size[axis] = static_cast<std::int64_t>(voxels);
    shift[axis] = (static_cast<double>(grid.size[axis] - 1) - (voxels - 1) * ratio) / 2;
    for (int row = 0; row < 3; ++row) {
      result.voxel_to_world.at(row, static_cast<int>(axis)) =
          grid.voxel_to_world.at(row, static_cast<int>(axis)) * ratio;
    }
  }
  const Vec3d origin = grid.voxel_to_world.apply({shift[0], shift[1], shift[2]});
  result.voxel_to_world.at(0, 3) = origin.x;
  result.voxel_to_world.at(1, 3) = origin.y;
  result.voxel_to_world.at(2, 3) = origin.z;
  return result;
}

}  // namespace cingulum
