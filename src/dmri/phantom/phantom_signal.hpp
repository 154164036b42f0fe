// What the voxels of a phantom contain and what a scanner would measure there. PhantomField divides every voxel into
// sub-samples, asks the bundles which fibres run through them and in which direction, and keeps a short summary;
// synthesise() turns the summary into one volume of a diffusion series, noise included. Called by the phantom's writer.
// Own arithmetic and counter-based noise: the same numbers on every machine and for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/phantom/phantom_bundle.hpp"
#include "dmri/phantom/phantom_grid.hpp"
#include "dmri/phantom/phantom_presets.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct WeightedDirection {
  numerics::Vec3d direction;
  double weight;
};

// A few directions that stand for many: a tensor-product rule of at most 3 x 3 nodes around the mean, which keeps the
// weight, the mean and, along both principal axes of the spread, the second, third and fourth moments. Averages of
// smooth functions over the two sets agree to the fifth order of the spread. Axes along which the directions spread by
// less than 0.02 degrees count as none. `directions` point the same way (within 90 degrees of their mean). Weights are
// positive and sum to the sum of the given ones.
[[nodiscard]] std::vector<WeightedDirection> merge_directions(std::span<const WeightedDirection> directions);

// Signals without diffusion weighting and diffusivities, in mm^2/s.
struct PhantomTissueSignals {
  double white_s0 = 100;
  double grey_s0 = 110;
  double fluid_s0 = 250;
  double fibre_along = 1.7e-3;
  double fibre_across = 0.3e-3;
  double grey = 0.8e-3;
  double fluid = 3.0e-3;
};

// A bundle in a voxel.
struct VoxelBundle {
  std::uint32_t bundle = 0;
  float fraction = 0;        // of the voxel inside the tube
  float start_fraction = 0;  // of the voxel inside the end region at the start
  float end_fraction = 0;
  std::uint32_t first_direction = 0;
  std::uint32_t direction_count = 0;
};

// Directions in world axes; the weights of a voxel's directions are shares of its volume (where tubes overlap each has
// an equal part of the place) and sum to the voxel's white matter.
struct FieldDirection {
  float x, y, z, weight;
};

struct PhantomField {
  PhantomGrid grid;
  std::vector<Bundle> bundles;
  int subsamples = 5;
  // `first`, `white`, `grey` and `fluid` are indexed by canonical voxel.
  std::vector<std::uint32_t> first;  // voxels + 1, into `contents`
  std::vector<VoxelBundle> contents;
  std::vector<FieldDirection> directions;
  std::vector<float> white, grey, fluid;  // volume fractions; the rest is air

  // Sub-samples each voxel subsamples^3 times (1 to 15).
  [[nodiscard]] static Result<PhantomField> create(const PhantomModel& model, PhantomGrid grid, int subsamples,
                                                   ThreadPool& pool);
};

struct PhantomNoise {
  double sigma = 0;  // of each of the two channels; 0: none
  std::uint64_t seed = 0;
};

// Volume `volume` of the series, in stored order.
void synthesise(const PhantomField& field, const PhantomTissueSignals& signals, double b_value,
                numerics::Vec3d direction, const PhantomNoise& noise, std::uint32_t volume, std::span<float> stored,
                ThreadPool& pool);

// The true fODF up to degree 8 in the tournier07 convention and world axes: for each voxel of canonical index
// `voxels[i]` 45 coefficients. A fibre is a delta function whose degree l is damped by exp(-l (l + 1) t), which leaves
// no negative lobes worth the name; the integral over the sphere is the voxel's white matter.
constexpr int true_fod_degree = 8;
[[nodiscard]] double true_fod_damping(int degree);
struct TrueFod {
  std::vector<std::uint32_t> voxels;
  std::vector<float> coefficients;  // voxels x 45
};
[[nodiscard]] TrueFod true_fod(const PhantomField& field, ThreadPool& pool);

}  // namespace cingulum
