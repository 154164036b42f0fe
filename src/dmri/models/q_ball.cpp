#include "dmri/models/q_ball.hpp"

#include <algorithm>

#include "dmri/models/aligned_numbers.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "numerics/pack_elementary.hpp"

namespace cingulum {

namespace {

constexpr double pi = 0x1.921fb54442d18p+1;

struct Piece {
  const float* signals;
  std::size_t stride;
  std::size_t begin;
  std::size_t end;
  float* coefficients;
  float* gfa;
};

template <class Number>
CGL_INLINE void fit_piece(const QBallView& view, const Piece& piece, double* memory) {
  constexpr std::size_t width = Number::width;
  Number* const signal = reinterpret_cast<Number*>(memory);
  Number* const normalised = signal + piece.stride;
  Number* const work = normalised + view.directions;
  Number* const coefficients = work + view.directions + view.count;
  for (std::size_t first = piece.begin; first < piece.end; first += width) {
    const std::size_t count = std::min(width, piece.end - first);
    gather_records(piece.signals + first * piece.stride, piece.stride, count, signal, piece.stride);
    normalise_signal<Number>(view, signal, normalised);
    fit_q_ball_voxel<Number>(view, normalised, work, coefficients);
    scatter_records(coefficients, view.count, piece.coefficients + first * view.count, view.count, count);
    const Number gfa = generalised_fractional_anisotropy<Number>(coefficients, view.count);
    scatter_records(&gfa, 1, piece.gfa + first, 1, count);
  }
}

}  // namespace

Result<QBallMatrices> make_q_ball_matrices(std::span<const numerics::Vec3d> directions, const QBallOptions& options) {
  if (options.degree < 0 || options.degree % 2 != 0 || options.degree > numerics::largest_harmonic_degree) {
    return fail_argument("sh_order", "degree {} is not an even number from 0 to {}", options.degree,
                         numerics::largest_harmonic_degree);
  }
  if (directions.empty()) {
    return fail(ErrorKind::invalid_argument, "there is no diffusion-weighted volume");
  }
  QBallMatrices matrices;
  matrices.basis = {options.convention, options.degree, false};
  const DenseMatrix basis_matrix = harmonic_matrix(matrices.basis, directions);
  const DenseMatrix inverse = regularised_inverse(basis_matrix, matrices.basis, options.smoothing);
  std::vector<double> linear, quadratic;
  for (int i = 0; i < static_cast<int>(inverse.rows); ++i) {
    const int l = numerics::harmonic_of_coefficient(i, false).l;
    const double funk = legendre_at_zero(l);  // Funk-Radon transform, without its 2 pi
    const double laplacian = -static_cast<double>(l * (l + 1));
    const double factor = funk * laplacian;
    linear.push_back(options.kind == QBallModelKind::opdt ? factor : factor / (8 * pi));
    quadratic.push_back(4 * funk);
  }
  matrices.linear = scale_rows(inverse, linear);
  if (options.kind == QBallModelKind::opdt) matrices.quadratic = scale_rows(inverse, quadratic);
  return matrices;
}

Result<QBallFit> fit_q_ball(const QBallMatrices& matrices, const QBallOptions& options, std::span<const float> signals,
                            std::size_t stride, std::span<const std::uint32_t> volumes,
                            std::span<const std::uint32_t> b0_volumes, const FitMachine& machine,
                            const std::function<void(std::size_t)>& advance, numerics::SimdLevel level) {
  if (b0_volumes.empty()) {
    return fail_argument("b0_threshold",
                         "there is no b0 volume to divide the signals by; raise {} where the lowest b-value is one",
                         argument_name("b0_threshold"));
  }
  if (!(options.min_signal > 0)) {
    return fail_argument("min_signal", "the smallest signal is {}; it must be above 0", options.min_signal);
  }
  const std::size_t voxels = stride == 0 ? 0 : signals.size() / stride;
  const std::size_t count = matrices.linear.rows;
  const QBallView view = {.kind = options.kind,
                          .count = count,
                          .directions = volumes.size(),
                          .b0_count = b0_volumes.size(),
                          .min_signal = options.min_signal,
                          .volumes = volumes.data(),
                          .b0_volumes = b0_volumes.data(),
                          .linear = matrices.linear.values.data(),
                          .quadratic = matrices.quadratic.values.data()};
  QBallFit fit;
  fit.coefficients.resize(voxels * count);
  fit.gfa.resize(voxels);
  if (machine.device != nullptr) {
    CGL_TRY(machine.device->fit_q_ball(view, {signals, stride}, fit, machine.pool, machine.cancel, advance));
    return fit;
  }
  machine.pool.parallel_for(voxels, 1024, [&](std::size_t begin, std::size_t end) {
    if (machine.cancel.cancelled()) return;
    AlignedNumbers memory(8 * (stride + 2 * volumes.size() + 2 * count));
    const Piece piece = {signals.data(), stride, begin, end, fit.coefficients.data(), fit.gfa.data()};
    numerics::with_packs<double>([&]<class Number>() { fit_piece<Number>(view, piece, memory.data()); }, level);
    if (advance) advance(end - begin);
  });
  CGL_TRY(machine.cancel.check());
  return fit;
}

}  // namespace cingulum
