// Orientation distributions that are linear in a transformed signal: OPDT (Tristan-Vega et al., NeuroImage 47, 2009,
// and 49, 2010) and CSA (Aganj et al., Magn. Reson. Med. 64, 2010), as DIPY's OpdtModel and CsaOdfModel have them but
// in float64. Called by `cingulum fit` and, for its matrices, by the bootstrap tracker. One shell is the caller's
// choice.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "dmri/models/dense_matrix.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/q_ball_kernel.hpp"
#include "numerics/pack.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct QBallOptions {
  QBallModelKind kind = QBallModelKind::opdt;
  int degree = 4;
  double smoothing = 0.006;  // Laplace-Beltrami lambda
  double min_signal = 1e-5;  // smaller signals count as this, before the division by the mean b0
  numerics::HarmonicConvention convention = numerics::HarmonicConvention::descoteaux07_legacy;
};

struct QBallMatrices {
  numerics::HarmonicBasis basis = {};
  // OPDT: c = quadratic [-ln s (3/2 + ln s) s] - linear s. CSA: c = linear [ln(-ln s)], c_0 = 1/(2 sqrt(pi)).
  DenseMatrix linear;     // coefficients x directions: delta_b, or the fit matrix of CSA
  DenseMatrix quadratic;  // delta_q; empty for CSA
};

[[nodiscard]] Result<QBallMatrices> make_q_ball_matrices(std::span<const numerics::Vec3d> directions,
                                                         const QBallOptions& options);

struct QBallFit {
  MappedVector<float> coefficients;  // voxels x coefficient count
  MappedVector<float> gfa;           // generalised fractional anisotropy (Tuch, Magn. Reson. Med. 52, 2004)
};

// `signals` holds `stride` numbers per voxel; `volumes` are the positions of the diffusion-weighted ones in the order
// of the directions, `b0_volumes` (at least one) those of b0.
[[nodiscard]] Result<QBallFit> fit_q_ball(const QBallMatrices& matrices, const QBallOptions& options,
                                          std::span<const float> signals, std::size_t stride,
                                          std::span<const std::uint32_t> volumes,
                                          std::span<const std::uint32_t> b0_volumes, const FitMachine& machine,
                                          const std::function<void(std::size_t)>& advance = {},
                                          numerics::SimdLevel level = numerics::best_simd_level());

}  // namespace cingulum
