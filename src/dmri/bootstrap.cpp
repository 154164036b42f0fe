#include "dmri/bootstrap.hpp"

#include <algorithm>

#include "base/interrupt.hpp"
#include "dmri/aligned_numbers.hpp"
#include "dmri/harmonic_fit.hpp"
#include "dmri/voxel_lanes.hpp"

namespace cingulum {

namespace {

struct Input {
  const float* signals;
  std::size_t stride;
  std::span<const std::uint32_t> volumes;
  std::span<const std::uint32_t> b0_volumes;
};

template <class Number>
CGL_INLINE void prepare_piece(const BootstrapMatrices& matrices, const Input& input, std::size_t begin, std::size_t end,
                              double* memory, BootstrapVoxels& voxels) {
  constexpr std::size_t width = Number::width;
  const std::size_t directions = voxels.direction_count;
  const std::size_t coefficients = voxels.coefficient_count;
  Number* const record = reinterpret_cast<Number*>(memory);
  Number* const signal = record + input.stride;
  Number* const result = signal + directions;
  for (std::size_t first = begin; first < end; first += width) {
    const std::size_t count = std::min(width, end - first);
    gather_records(input.signals + first * input.stride, input.stride, count, record, input.stride);
    for (std::size_t g = 0; g < directions; ++g) signal[g] = record[input.volumes[g]];
    multiply(matrices.inverse.values.data(), coefficients, directions, signal, result);
    scatter_records(result, coefficients, voxels.coefficients.data() + first * coefficients, coefficients, count);
    multiply(matrices.residual.values.data(), directions, directions, signal, result);
    scatter_records(result, directions, voxels.residuals.data() + first * directions, directions, count);
    Number sum = record[input.b0_volumes[0]];
    for (std::size_t i = 1; i < input.b0_volumes.size(); ++i) sum = sum + record[input.b0_volumes[i]];
    const Number b0 = sum / Number(static_cast<double>(input.b0_volumes.size()));
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
                                          std::span<const std::uint32_t> b0_volumes, ThreadPool& pool,
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
  const Input input = {signals.data(), stride, volumes, b0_volumes};
  pool.parallel_for(count, 512, [&](std::size_t begin, std::size_t end) {
    if (interrupt_requested()) return;
    AlignedNumbers memory(8 * (stride + volumes.size() + std::max(voxels.coefficient_count, volumes.size())));
    numerics::with_packs<double>(
        [&]<class Number>() { prepare_piece<Number>(matrices, input, begin, end, memory.data(), voxels); }, level);
  });
  CGL_TRY(check_interrupt());
  return voxels;
}

}  // namespace cingulum
