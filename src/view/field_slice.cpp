#include "view/field_slice.hpp"

#include <algorithm>
#include <cmath>

#include "dmri/models/spherical_function.hpp"
#include "numerics/float16.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// How far the plane may be from the centre of a voxel that it cuts: half of what its edges span along the axis.
double half_extent(const Affine& affine, int axis) {
  return 0.5 * (std::abs(affine.at(axis, 0)) + std::abs(affine.at(axis, 1)) + std::abs(affine.at(axis, 2)));
}

// For each the direction of the field's sphere that is nearest to it, either way on a hemisphere.
std::vector<std::uint32_t> nearest_directions(const Sphere& sphere, const std::vector<Vec3d>& wanted) {
  std::vector<std::uint32_t> nearest;
  for (const Vec3d one : wanted) {
    const auto closeness = [&](Vec3d direction) {
      const double cosine = dot(direction, one);
      return sphere.is_hemisphere ? std::abs(cosine) : cosine;
    };
    const auto best = std::max_element(sphere.directions.begin(), sphere.directions.end(),
                                       [&](Vec3d a, Vec3d b) { return closeness(a) < closeness(b); });
    nearest.push_back(static_cast<std::uint32_t>(best - sphere.directions.begin()));
  }
  return nearest;
}

}  // namespace

Result<FieldSlice> voxels_of_slice(const Field& field, int axis, double mm) {
  if (axis < 0 || axis > 2) return fail(ErrorKind::invalid_argument, "axis {}: 0, 1 and 2 are accepted", axis);
  if (!std::isfinite(mm)) return fail(ErrorKind::invalid_argument, "a slice at {} mm: a finite place is needed", mm);
  const ImageGeometry& grid = field.geometry;
  const Affine& affine = grid.voxel_to_world;
  const double reach = half_extent(affine, axis);
  FieldSlice slice;
  for (std::int64_t k = 0; k < grid.size[2]; ++k) {
    for (std::int64_t j = 0; j < grid.size[1]; ++j) {
      for (std::int64_t i = 0; i < grid.size[0]; ++i) {
        const std::uint32_t record = field.record_of_voxel[static_cast<std::size_t>(voxel_index(grid, i, j, k))];
        if (record == 0) continue;
        const Vec3d centre = affine.apply({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)});
        const double along = axis == 0 ? centre.x : axis == 1 ? centre.y : centre.z;
        // Half open: a plane between two layers belongs to one of them.
        if (along - mm > reach || along - mm <= -reach) continue;
        slice.centres.push_back(centre);
        slice.records.push_back(record);
      }
    }
  }
  return slice;
}

float number_of_record(const Field& field, std::uint32_t record, std::size_t channel) {
  const std::size_t place = std::size_t{record} * field.stride + channel;
  if (!field.is_float16()) return field.records[place];
  return numerics::finite_float16_to_float(field.float16_records[place]);
}

Result<MappedVector<float>> amplitudes_of_records(const Field& field, std::span<const std::uint32_t> records,
                                                  const std::vector<Vec3d>& directions, ThreadPool& pool) {
  if (field.kind == FieldKind::amplitudes) {
    const std::vector<std::uint32_t> nearest = nearest_directions(field.sphere, directions);
    MappedVector<float> values;
    values.reserve(records.size() * directions.size());
    for (const std::uint32_t record : records) {
      for (const std::uint32_t direction : nearest) values.push_back(number_of_record(field, record, direction));
    }
    return values;
  }
  constexpr auto convention = numerics::HarmonicConvention::descoteaux07_legacy;
  const std::size_t count = field.channels;
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t j = 0; j < count; ++j) order[j] = j;
  if (field.sphere.mirror_symmetric) numerics::sort_by_mirror_class(convention, field.degree, order.data());
  std::vector<float> coefficients(records.size() * count);
  for (std::size_t v = 0; v < records.size(); ++v) {
    for (std::size_t j = 0; j < count; ++j) coefficients[v * count + order[j]] = number_of_record(field, records[v], j);
  }
  return sample_harmonics({convention, field.degree, false}, coefficients, directions, true, FitMachine(pool));
}

Vec3d to_world_axes(const ImageGeometry& grid, Vec3d in_image) {
  // Unit vectors of the image lie along the columns of the affine.
  const auto edges = grid.voxel_mm();
  return grid.voxel_to_world.rotate({in_image.x / edges[0], in_image.y / edges[1], in_image.z / edges[2]});
}

}  // namespace cingulum
