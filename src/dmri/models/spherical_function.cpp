#include "dmri/models/spherical_function.hpp"

#include <algorithm>

#include "dmri/models/aligned_numbers.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/voxel_lanes.hpp"

namespace cingulum {

namespace {

template <class Number>
CGL_INLINE void sample_piece(const DenseMatrix& matrix, const float* coefficients, std::size_t begin, std::size_t end,
                             bool clip, double* memory, float* amplitudes) {
  constexpr std::size_t width = Number::width;
  Number* const from = reinterpret_cast<Number*>(memory);
  Number* const to = from + matrix.columns;
  for (std::size_t first = begin; first < end; first += width) {
    const std::size_t count = std::min(width, end - first);
    gather_records(coefficients + first * matrix.columns, matrix.columns, count, from, matrix.columns);
    multiply<Number>(matrix.values.data(), matrix.rows, matrix.columns, from, to);
    if (clip) {
      const Number zero(0.0);
      for (std::size_t d = 0; d < matrix.rows; ++d) to[d] = numerics::select(to[d] > zero, to[d], zero);
    }
    scatter_records(to, matrix.rows, amplitudes + first * matrix.rows, matrix.rows, count);
  }
}

}  // namespace

Result<MappedVector<float>> sample_harmonics(numerics::HarmonicBasis basis, std::span<const float> coefficients,
                                             std::span<const numerics::Vec3d> directions, bool clip,
                                             const FitMachine& machine, numerics::SimdLevel level) {
  const DenseMatrix matrix = harmonic_matrix(basis, directions);
  const std::size_t voxels = coefficients.size() / matrix.columns;
  MappedVector<float> amplitudes(voxels * directions.size());
  if (machine.device != nullptr) {
    CGL_TRY(
        machine.device->sample(matrix, {coefficients, matrix.columns}, clip, amplitudes, machine.pool, machine.cancel));
    return amplitudes;
  }
  machine.pool.parallel_for(voxels, 512, [&](std::size_t begin, std::size_t end) {
    AlignedNumbers memory(8 * (matrix.rows + matrix.columns));
    numerics::with_packs<double>(
        [&]<class Number>() {
          sample_piece<Number>(matrix, coefficients.data(), begin, end, clip, memory.data(), amplitudes.data());
        },
        level);
  });
  return amplitudes;
}

}  // namespace cingulum
