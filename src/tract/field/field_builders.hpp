// Makes the Field that trackers read from what models fitted or files hold: directions brought into image axes and into
// one basis, the stopping map appended, numbers that backends must not see replaced and counted (contract, section 1:
// what is not finite or beyond 2^60, and what is below 2^-40 of the largest). Called by the command line and Python.
// Nothing is fitted here but the bootstrap's coefficients.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

// Numbers of some voxels: those of voxels[i] are values[i * channels .. (i + 1) * channels - 1]. Only these voxels are
// stored; elsewhere the field, its stopping map included, is zero.
struct VoxelRecords {
  std::span<const std::uint32_t> voxels;  // ascending, x fastest
  std::size_t channels = 0;
  std::span<const float> values;
};

// The axes in which directions are written.
enum class DirectionFrame : std::uint32_t { image, world };

// `stop_map` has a number per voxel of the geometry, x fastest. All builders fail where sizes do not fit together.
// Builders of large fields copy with the threads of a pool.

// Amplitudes have a number per direction of `sphere`, in its order.
[[nodiscard]] Result<Field> make_amplitude_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                                 const VoxelRecords& amplitudes, Sphere sphere,
                                                 ThreadPool* pool = nullptr);
// Coefficients of an even basis; the sphere is where kernels sample the series.
[[nodiscard]] Result<Field> make_harmonic_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                                const VoxelRecords& coefficients, numerics::HarmonicBasis basis,
                                                DirectionFrame frame, Sphere sphere, ThreadPool* pool = nullptr);
// 3n numbers, x y z of each peak; length = amplitude, zero = no peak.
[[nodiscard]] Result<Field> make_peak_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                            const VoxelRecords& peaks, DirectionFrame frame);
[[nodiscard]] Result<Field> make_tensor_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                              const VoxelRecords& tensors, TensorOrder order, DirectionFrame frame);

struct BootstrapOptions {
  bool csa = false;  // else OPDT
  int degree = 4;
  double lambda = 0.006;
};
// `signals` are the raw signals of all volumes. `gradients` are unit vectors in image axes, one per volume; `is_b0`
// says which volumes have none. Signals below the plan's smallest are raised to it by the kernel.
[[nodiscard]] Result<Field> make_bootstrap_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                                 const VoxelRecords& signals,
                                                 std::span<const numerics::Vec3d> gradients,
                                                 std::span<const std::uint8_t> is_b0, const BootstrapOptions& options,
                                                 Sphere sphere, const FitMachine& machine);

}  // namespace cingulum
