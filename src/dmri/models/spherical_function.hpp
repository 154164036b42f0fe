// Amplitudes of spherical-harmonic functions on a set of directions, voxel by voxel: ODFs and FODs for peaks, for
// trackers that sample amplitudes and for files. Half or whole spheres are the caller's choice of directions.
#pragma once

#include <span>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "numerics/pack.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// `coefficients`: coefficient_count(basis) numbers per voxel. Result: directions.size() per voxel; each is the
// sequential sum over the coefficients in float64, rounded once. `clip` makes negative amplitudes zero.
[[nodiscard]] Result<MappedVector<float>> sample_harmonics(numerics::HarmonicBasis basis,
                                                           std::span<const float> coefficients,
                                                           std::span<const numerics::Vec3d> directions, bool clip,
                                                           const FitMachine& machine,
                                                           numerics::SimdLevel level = numerics::best_simd_level());

}  // namespace cingulum
