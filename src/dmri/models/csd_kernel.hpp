// Constrained spherical deconvolution of one voxel, in the arithmetic that every backend keeps: what each number of the
// fit is the sum of, and in which order. csd.cpp does the same eight voxels at a time; its test holds the two equal in
// bits. For CUDA a voxel per thread. Tournier, Calamante and Connelly, NeuroImage 35, 2007, with the scaling of lambda
// of MRtrix3 and DIPY.
#pragma once

#include <cstdint>

#include "dmri/models/cholesky_kernel.hpp"
#include "numerics/portable.hpp"

namespace cingulum {

// Rows of coefficients are padded to eight, sets of directions to 64, with zeros.
inline constexpr int csd_largest_count = 96;         // degree 12: 91
inline constexpr int csd_largest_directions = 1536;  // 724 points on the whole sphere and more

CGL_HD constexpr int padded_count(int count) {
  return (count + 7) / 8 * 8;
}
// Row i of a padded lower triangle has its first 8 (i / 8 + 1) entries; where it begins.
CGL_HD constexpr int padded_row_offset(int row) {
  const int block = row / 8;
  return 32 * block * (block + 1) + (row % 8) * 8 * (block + 1);
}

struct CsdView {
  int count;                 // coefficients
  int stride;                // padded_count(count)
  int low_order_count;       // coefficients of degree <= 4, by which the first constraints are found
  int gradients;             // diffusion-weighted volumes
  int directions;            // of the constraint
  int direction_stride;      // padded to 64
  int iterations;            // at most
  double threshold_factor;   // tau Y_00: times c_0 it is tau times the mean amplitude
  const double* projection;  // X', gradients x stride: z = X' s
  const double* start;       // (X'X)^-1 X', gradients x stride
  const double* amplitudes;  // basis at the directions, count x direction_stride
  const double* constraint;  // lambda-scaled basis, directions x stride
  const double* negated_constraint;
  const double* gram;      // X'X, padded triangle
  const double* gram_all;  // X'X + sum over all directions of h h', padded triangle
};

enum class CsdEnd : std::uint8_t { unconstrained = 0, converged = 1, iterations_spent = 2, not_solvable = 3 };

// Vectors by coefficients: terms in the order of the volumes.
CGL_HD inline void csd_project(const CsdView& view, const double* matrix, const float* signal,
                               const std::uint32_t* volumes, double* result) {
  for (int i = 0; i < view.stride; ++i) result[i] = 0.0;
  for (int g = 0; g < view.gradients; ++g) {
    const double value = static_cast<double>(signal[volumes[g]]);
    for (int i = 0; i < view.stride; ++i) result[i] = result[i] + matrix[g * view.stride + i] * value;
  }
}

// Which directions have an amplitude below the threshold, a bit each. Terms in the order of the coefficients.
CGL_HD inline void csd_find_small(const CsdView& view, const double* coefficients, int count, double threshold,
                                  std::uint64_t* small) {
  for (int d = 0; d < view.direction_stride; ++d) {
    double sum = 0.0;
    for (int i = 0; i < count; ++i) sum = sum + view.amplitudes[i * view.direction_stride + d] * coefficients[i];
    if (d % 64 == 0) small[d / 64] = 0;
    if (d < view.directions && sum < threshold) small[d / 64] |= std::uint64_t{1} << (d % 64);
  }
}

CGL_HD inline int csd_count_bits(std::uint64_t bits) {
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

CGL_HD inline void csd_add_direction(const CsdView& view, int direction, double sign, double* gram) {
  const double* const h = view.constraint + direction * view.stride;
  for (int row = 0; row < view.count; ++row) {
    double* const entries = gram + padded_row_offset(row);
    for (int column = 0; column <= row; ++column) entries[column] = entries[column] + sign * (h[row] * h[column]);
  }
}

// The Gram matrix of the constrained system for the set `small`. It starts from what needs fewer changes: the one of
// the set before (`before`; null at first), of no direction, or of all directions, in this order among equals, and
// takes the changes in ascending order.
CGL_HD inline void csd_change_gram(const CsdView& view, const std::uint64_t* small, const std::uint64_t* before,
                                   double* gram) {
  const int words = view.direction_stride / 64;
  int chosen = 0;
  int changed = 0;
  for (int w = 0; w < words; ++w) {
    chosen += csd_count_bits(small[w]);
    if (before != nullptr) changed += csd_count_bits(small[w] ^ before[w]);
  }
  const int others = view.directions - chosen;
  const bool from_none = chosen <= others;
  const bool from_before = before != nullptr && changed <= (from_none ? chosen : others);
  if (!from_before) {
    const double* const from = from_none ? view.gram : view.gram_all;
    for (int i = 0; i < padded_row_offset(view.stride); ++i) gram[i] = from[i];
  }
  for (int d = 0; d < view.directions; ++d) {
    const std::uint64_t bit = std::uint64_t{1} << (d % 64);
    const bool now = (small[d / 64] & bit) != 0;
    const bool was = from_before ? (before[d / 64] & bit) != 0 : !from_none;
    if (now != was) csd_add_direction(view, d, now ? 1.0 : -1.0, gram);
  }
}

// `volumes` are the positions of the diffusion-weighted values in `signal`. Writes `count` coefficients.
CGL_HD inline CsdEnd csd_fit_voxel(const CsdView& view, const float* signal, const std::uint32_t* volumes,
                                   double* coefficients, int& iterations) {
  double right_side[csd_largest_count];
  double solution[csd_largest_count];
  std::uint64_t small[csd_largest_directions / 64];
  std::uint64_t before[csd_largest_directions / 64];
  double gram[padded_row_offset(csd_largest_count)];
  double factor[csd_largest_count * (csd_largest_count + 1) / 2];
  double inverse_diagonal[csd_largest_count];
  const int words = view.direction_stride / 64;
  const auto count_all = [&] {
    int count = 0;
    for (int w = 0; w < words; ++w) count += csd_count_bits(small[w]);
    return count;
  };
  iterations = 0;
  csd_project(view, view.projection, signal, volumes, right_side);
  csd_project(view, view.start, signal, volumes, solution);
  const double threshold = view.threshold_factor * solution[0];
  csd_find_small(view, solution, view.low_order_count, threshold, small);
  if (count_all() == 0) csd_find_small(view, solution, view.count, threshold, small);
  CsdEnd end = count_all() == 0 ? CsdEnd::unconstrained : CsdEnd::iterations_spent;
  bool first = true;
  while (end == CsdEnd::iterations_spent && iterations < view.iterations) {
    csd_change_gram(view, small, first ? nullptr : before, gram);
    first = false;
    ++iterations;
    for (int row = 0; row < view.count; ++row) {
      for (int column = 0; column <= row; ++column) {
        factor[triangle_index(row, column)] = gram[padded_row_offset(row) + column];
      }
      solution[row] = right_side[row];
    }
    double failed = 0.0;
    factor_cholesky(view.count, factor, inverse_diagonal, failed);
    if (failed != 0.0) {
      end = CsdEnd::not_solvable;
      break;
    }
    solve_cholesky(view.count, factor, inverse_diagonal, solution);
    bool equal = true;
    for (int w = 0; w < words; ++w) before[w] = small[w];
    csd_find_small(view, solution, view.count, threshold, small);
    for (int w = 0; w < words; ++w) equal = equal && before[w] == small[w];
    if (equal) end = CsdEnd::converged;
  }
  for (int i = 0; i < view.count; ++i) coefficients[i] = end == CsdEnd::not_solvable ? 0.0 : solution[i];
  return end;
}

}  // namespace cingulum
