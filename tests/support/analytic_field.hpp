// Small fields that are known exactly, for tests of trackers: a spherical function, series, tensor or peaks given as a
// function of the voxel, and a stopping map given likewise. All voxels are stored.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "numerics/spherical_harmonics.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum::test {

using numerics::Vec3d;
using StopMap = std::function<float(Vec3d voxel)>;

inline ImageGeometry grid(std::int64_t x, std::int64_t y, std::int64_t z, Vec3d edges = {1, 1, 1}) {
  ImageGeometry geometry;
  geometry.size = {x, y, z};
  geometry.voxel_to_world.rows = {edges.x, 0, 0, 0, 0, edges.y, 0, 0, 0, 0, edges.z, 0};
  return geometry;
}

inline Vec3d unit(Vec3d v) {
  return numerics::normalise(v);
}

inline StopMap everywhere() {
  return [](Vec3d) { return 1.0f; };
}

// Values of all voxels in memory order.
template <class Value, class Function>
std::vector<Value> over_voxels(const ImageGeometry& geometry, std::size_t channels, Function&& write) {
  std::vector<Value> values(static_cast<std::size_t>(geometry.voxel_count()) * channels);
  std::size_t at = 0;
  for (std::int64_t k = 0; k < geometry.size[2]; ++k) {
    for (std::int64_t j = 0; j < geometry.size[1]; ++j) {
      for (std::int64_t i = 0; i < geometry.size[0]; ++i, at += channels) {
        write(Vec3d{static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)}, &values[at]);
      }
    }
  }
  return values;
}

struct AllVoxels {
  AllVoxels(const ImageGeometry& geometry, std::size_t channels_, const std::function<void(Vec3d, float*)>& write,
            const StopMap& stop_map)
      : channels(channels_),
        voxels(static_cast<std::size_t>(geometry.voxel_count())),
        values(over_voxels<float>(geometry, channels_, write)),
        stop(over_voxels<float>(geometry, 1, [&](Vec3d p, float* v) { *v = stop_map(p); })) {
    std::iota(voxels.begin(), voxels.end(), 0u);
  }
  [[nodiscard]] VoxelRecords records() const { return {voxels, channels, values}; }

  std::size_t channels;
  std::vector<std::uint32_t> voxels;
  std::vector<float> values;
  std::vector<float> stop;
};

using SphericalFunction = std::function<double(Vec3d voxel, Vec3d direction)>;

inline Field amplitude_field(const ImageGeometry& geometry, const Sphere& sphere, const SphericalFunction& function,
                             const StopMap& stop_map = everywhere()) {
  const AllVoxels all(
      geometry, sphere.size(),
      [&](Vec3d p, float* values) {
        for (std::size_t i = 0; i < sphere.size(); ++i) {
          values[i] = static_cast<float>(function(p, sphere.directions[i]));
        }
      },
      stop_map);
  return make_amplitude_field(geometry, all.stop, all.records(), sphere).value();
}

inline Field harmonic_field(const ImageGeometry& geometry, const Sphere& sphere, int degree,
                            const std::function<void(Vec3d voxel, double* coefficients)>& write,
                            const StopMap& stop_map = everywhere()) {
  const auto count = static_cast<std::size_t>(numerics::coefficient_count(degree, false));
  std::vector<double> coefficients(count);
  const AllVoxels all(
      geometry, count,
      [&](Vec3d p, float* values) {
        write(p, coefficients.data());
        for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(coefficients[i]);
      },
      stop_map);
  return make_harmonic_field(geometry, all.stop, all.records(),
                             {numerics::HarmonicConvention::descoteaux07_legacy, degree, false}, DirectionFrame::image,
                             sphere)
      .value();
}

// Adds the zonal series sum over l of weight(l) Y(axis) Y(.), a lobe along the axis.
inline void add_lobe(int degree, Vec3d axis, double size, double* coefficients) {
  const numerics::HarmonicBasis basis{numerics::HarmonicConvention::descoteaux07_legacy, degree, false};
  std::vector<double> at_axis(static_cast<std::size_t>(numerics::coefficient_count(degree, false)));
  numerics::evaluate_harmonics(basis, axis, at_axis.data());
  for (std::size_t j = 0; j < at_axis.size(); ++j) {
    const int l = numerics::harmonic_of_coefficient(static_cast<int>(j), false).l;
    coefficients[j] += size * at_axis[j] / (1 + 0.02 * l * (l + 1));
  }
}

inline Field tensor_field(const ImageGeometry& geometry, const std::function<Vec3d(Vec3d voxel)>& direction,
                          const StopMap& stop_map = everywhere()) {
  const AllVoxels all(
      geometry, 6,
      [&](Vec3d p, float* values) {
        const Vec3d v = direction(p);
        const double tensor[6] = {0.3 + 1.4 * v.x * v.x, 0.3 + 1.4 * v.y * v.y, 0.3 + 1.4 * v.z * v.z,
                                  1.4 * v.x * v.y,       1.4 * v.x * v.z,       1.4 * v.y * v.z};
        for (std::size_t c = 0; c < 6; ++c) values[c] = static_cast<float>(1e-3 * tensor[c]);
      },
      stop_map);
  return make_tensor_field(geometry, all.stop, all.records(), TensorOrder::mrtrix, DirectionFrame::image).value();
}

inline Field peak_field(const ImageGeometry& geometry, std::size_t peaks,
                        const std::function<void(Vec3d voxel, Vec3d* peaks)>& write,
                        const StopMap& stop_map = everywhere()) {
  std::vector<Vec3d> vectors(peaks);
  const AllVoxels all(
      geometry, 3 * peaks,
      [&](Vec3d p, float* values) {
        for (Vec3d& v : vectors) v = {0, 0, 0};
        write(p, vectors.data());
        for (std::size_t i = 0; i < peaks; ++i) {
          values[3 * i] = static_cast<float>(vectors[i].x);
          values[3 * i + 1] = static_cast<float>(vectors[i].y);
          values[3 * i + 2] = static_cast<float>(vectors[i].z);
        }
      },
      stop_map);
  return make_peak_field(geometry, all.stop, all.records(), DirectionFrame::image).value();
}

}  // namespace cingulum::test
