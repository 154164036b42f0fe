// What the residual bootstrap needs, once per gradient table and once per voxel: the trackers draw signals as
// B c + (residuals in random order) instead of multiplying by the hat matrix at every step. The products are linear, so
// interpolating c and r between voxels is interpolating the signal. Called by the set-up of bootstrap tracking.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "dmri/models/dense_matrix.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/q_ball.hpp"
#include "numerics/pack.hpp"

namespace cingulum {

struct BootstrapMatrices {
  QBallMatrices model;               // OPDT or CSA: from a drawn signal to coefficients
  DenseMatrix basis_matrix;          // B, directions x coefficients: H s = B c
  DenseMatrix inverse;               // B^+, coefficients x directions, unregularised
  DenseMatrix hat;                   // H = B B^+
  DenseMatrix residual;              // R
  std::size_t exact_directions = 0;  // whose residual is 0 (harmonic_fit.hpp)
};

[[nodiscard]] Result<BootstrapMatrices> make_bootstrap_matrices(std::span<const numerics::Vec3d> directions,
                                                                const QBallOptions& options);

// The bootstrap's numbers of every voxel, of raw signals in the units of the data: clamping and division by b0 come
// after the draw.
struct BootstrapVoxels {
  std::size_t coefficient_count = 0;
  std::size_t direction_count = 0;
  MappedVector<float> coefficients;  // c = B^+ s, voxels x coefficient_count
  MappedVector<float> residuals;     // r = R s, voxels x direction_count
  MappedVector<float> b0;            // mean of the b0 volumes
};

[[nodiscard]] Result<BootstrapVoxels> prepare_bootstrap(const BootstrapMatrices& matrices,
                                                        std::span<const float> signals, std::size_t stride,
                                                        std::span<const std::uint32_t> volumes,
                                                        std::span<const std::uint32_t> b0_volumes,
                                                        const FitMachine& machine,
                                                        numerics::SimdLevel level = numerics::best_simd_level());

}  // namespace cingulum
