#include "dmri/models/bootstrap.hpp"

#include <algorithm>

#include "dmri/models/aligned_numbers.hpp"
#include "dmri/models/bootstrap_kernel.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/voxel_lanes.hpp"

namespace cingulum {

namespace {

template <class Number>
CGL_INLINE void prepare_piece(const BootstrapPreparationView& view, const float* signals, std::size_t stride,
                              std::size_t begin, std::size_t end, double* memory, BootstrapVoxels& voxels) {
  constexpr std::size_t width = Number::width;
  Number* const record = reinterpret_cast<Number*>(memory);
  Number* const signal = record + stride;
  Number* const result = signal + view.directions;
  for (std::size_t first = begin; first < end; first += width) {
    const std::size_t count = std::min(width, end - first);
    gather_records(signals + first * stride, stride, count, record, stride);
    take_weighted_signals<Number>(view, record, signal);
    multiply<Number>(view.inverse, view.count, view.directions, signal, result);
    scatter_records(result, view.count, voxels.coefficients.data() + first * view.count, view.count, count);
    multiply<Number>(view.residual, view.directions, view.directions, signal, result);
    scatter_records(result, view.directions, voxels.residuals.data() + first * view.directions, view.directions, count);
    const Number b0 = mean_b0_signal<Number>(view, record);
    scatter_records(&b0, 1, voxels.b0.data() + first, 1, count);
  }
}

}  // namespace

Result<BootstrapMatrices> make_bootstrap_matrices(std::span<const numerics::Vec3d> directions,
                                                  const QBallOptions& options) {
  BootstrapMatrices result;
  CGL_TRY_ASSIGN(result.model, make_q_ball_matrices(directions, options));
  result.basis_matrix = harmonic_matrix(result.model.basis, directions);
  result.inverse = regularised_inverse(result.basis_matrix, result.model.basis, 0.0);
  result.hat = hat_matrix(result.basis_matrix);
  CGL_TRY_ASSIGN(ResidualMatrix residual, leveraged_residual_matrix(result.hat));
  result.residual = std::move(residual.matrix);
  result.exact_directions = residual.exact_rows;
  return result;
}

Result<BootstrapVoxels> prepare_bootstrap(const BootstrapMatrices& matrices, std::span<const float> signals,
                                          std::size_t stride, std::span<const std::uint32_t> volumes,
                                          std::span<const std::uint32_t> b0_volumes, const FitMachine& machine,
                                          numerics::SimdLevel level) {
  if (volumes.size() != matrices.residual.rows) {
    return fail(ErrorKind::invalid_argument, "residual bootstrap: {} volumes for matrices of {} directions",
                volumes.size(), matrices.residual.rows);
  }
  if (b0_volumes.empty()) {
    return fail(ErrorKind::invalid_argument, "residual bootstrap: there is no b0 volume to divide the signals by");
  }
  const std::size_t count = stride == 0 ? 0 : signals.size() / stride;
  BootstrapVoxels voxels;
  voxels.coefficient_count = matrices.inverse.rows;
  voxels.direction_count = volumes.size();
  voxels.coefficients.resize(count * voxels.coefficient_count);
  voxels.residuals.resize(count * voxels.direction_count);
  voxels.b0.resize(count);
  const BootstrapPreparationView view = {.count = voxels.coefficient_count,
                                         .directions = voxels.direction_count,
                                         .b0_count = b0_volumes.size(),
                                         .volumes = volumes.data(),
                                         .b0_volumes = b0_volumes.data(),
                                         .inverse = matrices.inverse.values.data(),
                                         .residual = matrices.residual.values.data()};
  if (machine.device != nullptr) {
    CGL_TRY(machine.device->prepare_bootstrap(view, {signals, stride}, voxels, machine.pool, machine.cancel));
    return voxels;
  }
  machine.pool.parallel_for(count, 512, [&](std::size_t begin, std::size_t end) {
    if (machine.cancel.cancelled()) return;
    AlignedNumbers memory(8 * (stride + volumes.size() + std::max(voxels.coefficient_count, volumes.size())));
    numerics::with_packs<double>(
        [&]<class Number>() { prepare_piece<Number>(view, signals.data(), stride, begin, end, memory.data(), voxels); },
        level);
  });
  CGL_TRY(machine.cancel.check());
  return voxels;
}

}  // namespace cingulum
