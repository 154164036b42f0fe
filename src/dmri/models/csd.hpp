// Constrained spherical deconvolution for one shell: the fibre orientation distribution of every voxel as spherical
// harmonics, from the signal and the response of a single fibre. Called by `cingulum fit --model csd` and by trackers
// that start from raw data. The response comes from response.hpp, amplitudes and peaks from their own headers.
//   J.-D. Tournier, F. Calamante, A. Connelly, NeuroImage 35, 1459-1472, 2007.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "dmri/models/aligned_numbers.hpp"
#include "dmri/models/csd_kernel.hpp"
#include "dmri/models/fit_device.hpp"
#include "numerics/pack.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct CsdOptions {
  int degree = 8;
  double lambda = 1;    // weight of the constraint
  double tau = 0.1;     // amplitudes below this share of the mean count as negative
  int iterations = 50;  // at most; a voxel ends when its set of small directions stays the same
  numerics::HarmonicConvention convention = numerics::HarmonicConvention::tournier07;
};

class CsdModel {
 public:
  // `directions` of the diffusion-weighted volumes, `response` the zonal coefficients (l = 0, 2, ...) of the signal of
  // a fibre along z, at least up to the degree. `constraint` are the directions where amplitudes are kept from being
  // negative; a hemisphere and the whole sphere give the same result.
  [[nodiscard]] static Result<CsdModel> create(std::span<const numerics::Vec3d> directions,
                                               std::span<const double> response,
                                               std::span<const numerics::Vec3d> constraint, const CsdOptions& options);

  [[nodiscard]] std::size_t coefficient_count() const { return static_cast<std::size_t>(count_); }
  [[nodiscard]] numerics::HarmonicBasis basis() const { return basis_; }
  [[nodiscard]] CsdView view() const;  // valid while the model lives

 private:
  numerics::HarmonicBasis basis_ = {};
  int count_ = 0;
  int low_order_count_ = 0;
  int gradients_ = 0;
  int directions_ = 0;
  int iterations_ = 0;
  double threshold_factor_ = 0;
  AlignedNumbers projection_;
  AlignedNumbers start_;
  AlignedNumbers amplitudes_;
  AlignedNumbers constraint_;
  AlignedNumbers negated_constraint_;
  AlignedNumbers gram_;
  AlignedNumbers gram_all_;
};

struct CsdFit {
  MappedVector<float> coefficients;  // voxels x coefficient_count
  std::size_t unconstrained = 0;     // voxels whose first solution had no small amplitude
  std::size_t not_converged = 0;     // voxels that used all iterations; their last solution is kept
  std::size_t not_solvable = 0;      // voxels whose system was singular; their coefficients are zero
  std::uint64_t iterations = 0;      // of all voxels together
};

// `signals` holds `stride` numbers per voxel; `volumes` are the positions of the diffusion-weighted ones, in the order
// of the model's directions. The result does not depend on threads, on which voxels are fitted together or on the
// instruction set. `advance` is called with the number of voxels done, from any thread.
[[nodiscard]] Result<CsdFit> fit_csd(const CsdModel& model, std::span<const float> signals, std::size_t stride,
                                     std::span<const std::uint32_t> volumes, const FitMachine& machine,
                                     const std::function<void(std::size_t)>& advance = {},
                                     numerics::SimdLevel level = numerics::best_simd_level());

}  // namespace cingulum
