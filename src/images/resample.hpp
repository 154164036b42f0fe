// The values of an image at the voxel centres of another grid: of the nearest voxel, or interpolated between eight. A
// point belongs to the image where it lies in a voxel, [-0.5, n - 0.5) along each axis: what is outside is 0, and in
// the outer half of a border voxel the border's value holds. Nothing is smoothed: a coarser grid takes samples. Called
// by `cingulum resample` and, for masks and maps, by on_grid.hpp. Float64; the result does not depend on threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

enum class Interpolation { nearest, linear };

class Resampler {
 public:
  // Fails where the affine of `from` cannot be inverted.
  [[nodiscard]] static Result<Resampler> create(const ImageGeometry& from, const ImageGeometry& to,
                                                Interpolation interpolation);

  // One volume: from.voxel_count() values to to.voxel_count(). Where linear interpolation gives weight to what is not
  // finite, the result is not finite; a weight of zero gives none.
  void volume(std::span<const float> from, std::span<float> to, ThreadPool* pool = nullptr) const;
  void volume(std::span<const double> from, std::span<double> to, ThreadPool* pool = nullptr) const;

 private:
  Resampler() = default;

  template <class T>
  void resample(std::span<const T> from, std::span<T> to, ThreadPool* pool) const;

  ImageGeometry from_;
  ImageGeometry to_;
  Affine to_from_voxels_;  // from the voxels of `to` to those of `from`
  Interpolation interpolation_ = Interpolation::nearest;
};

// Whether a point, in voxels of the grid, lies in one of them.
[[nodiscard]] bool is_inside(const ImageGeometry& grid, numerics::Vec3d voxel);

// Whether the axes of both point the same way, within a ten-thousandth: edges and origins may differ.
[[nodiscard]] bool have_same_axes(const ImageGeometry& a, const ImageGeometry& b);

// The same axes and centre with other edges: as many voxels as cover the image, the last rounded up.
[[nodiscard]] Result<ImageGeometry> with_voxel_size(const ImageGeometry& grid, const std::array<double, 3>& edges_mm);

}  // namespace cingulum
