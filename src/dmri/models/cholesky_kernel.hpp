// Cholesky factor and solution of one small symmetric positive definite system, for `double` or a pack of eight systems
// at once. Every entry of the factor is one sequential sum, ascending in the inner index, whatever the tiles: scalar
// and packed results agree in bits. Called by the CSD fit.
#pragma once

#include <cstddef>

#include "dmri/models/unroll.hpp"
#include "numerics/pack.hpp"
#include "numerics/portable.hpp"

namespace cingulum {

// Where entry (row, column), column <= row, of a lower triangle stored row by row lies.
CGL_HD constexpr int triangle_index(int row, int column) {
  return row * (row + 1) / 2 + column;
}

// T[Count] for a signed Count.
template <class T, int Count>
using FixedArray = T[static_cast<unsigned>(Count)];

// A tile of Rows x Columns entries at (row, column), strictly below the diagonal tile of `column`.
// L_ij = (A_ij - sum over k < j of L_ik L_jk) (1 / L_jj).
template <int Rows, int Columns, class Number>
CGL_HD CGL_INLINE void factor_tile(Number* triangle, const Number* inverse_diagonal, int row, int column) {
  FixedArray<FixedArray<Number, Columns>, Rows> sum;
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) {
    CGL_UNROLL_8
    for (int c = 0; c < Columns; ++c) sum[r][c] = triangle[triangle_index(row + r, column + c)];
  }
  FixedArray<const Number*, Rows> left;
  FixedArray<const Number*, Columns> right;
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) left[r] = triangle + triangle_index(row + r, 0);
  CGL_UNROLL_8
  for (int c = 0; c < Columns; ++c) right[c] = triangle + triangle_index(column + c, 0);
  for (int k = 0; k < column; ++k) {
    FixedArray<Number, Columns> factor;
    CGL_UNROLL_8
    for (int c = 0; c < Columns; ++c) factor[c] = right[c][k];
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) {
      const Number value = left[r][k];
      CGL_UNROLL_8
      for (int c = 0; c < Columns; ++c) sum[r][c] = sum[r][c] - value * factor[c];
    }
  }
  CGL_UNROLL_8
  for (int c = 0; c < Columns; ++c) {
    CGL_UNROLL_8
    for (int k = 0; k < c; ++k) {
      const Number factor = right[c][column + k];
      CGL_UNROLL_8
      for (int r = 0; r < Rows; ++r) sum[r][c] = sum[r][c] - sum[r][k] * factor;
    }
    const Number scale = inverse_diagonal[column + c];
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) {
      sum[r][c] = sum[r][c] * scale;
      triangle[triangle_index(row + r, column + c)] = sum[r][c];
    }
  }
}

// The tile on the diagonal. A pivot that is not positive is replaced by 1 and sets `failed` to 1 in its lane.
template <int Rows, class Number>
CGL_HD CGL_INLINE void factor_diagonal_tile(Number* triangle, Number* inverse_diagonal, int row, Number& failed) {
  FixedArray<FixedArray<Number, Rows>, Rows> sum;
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) {
    CGL_UNROLL_8
    for (int c = 0; c <= r; ++c) sum[r][c] = triangle[triangle_index(row + r, row + c)];
  }
  for (int k = 0; k < row; ++k) {
    FixedArray<Number, Rows> value;
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) value[r] = triangle[triangle_index(row + r, k)];
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) {
      CGL_UNROLL_8
      for (int c = 0; c <= r; ++c) sum[r][c] = sum[r][c] - value[r] * value[c];
    }
  }
  CGL_UNROLL_8
  for (int c = 0; c < Rows; ++c) {
    Number pivot = sum[c][c];
    CGL_UNROLL_8
    for (int k = 0; k < c; ++k) pivot = pivot - sum[c][k] * sum[c][k];
    const auto positive = pivot > Number(0.0);
    failed = numerics::select(positive, failed, Number(1.0));
    pivot = numerics::root(numerics::select(positive, pivot, Number(1.0)));
    const Number scale = Number(1.0) / pivot;
    inverse_diagonal[row + c] = scale;
    CGL_UNROLL_8
    for (int r = c + 1; r < Rows; ++r) {
      Number entry = sum[r][c];
      CGL_UNROLL_8
      for (int k = 0; k < c; ++k) entry = entry - sum[r][k] * sum[c][k];
      sum[r][c] = entry * scale;
      triangle[triangle_index(row + r, row + c)] = sum[r][c];
    }
  }
}

// Replaces the lower triangle by its factor below the diagonal; the diagonal's reciprocals go to `inverse_diagonal`.
template <class Number>
CGL_HD CGL_INLINE void factor_cholesky(int size, Number* triangle, Number* inverse_diagonal, Number& failed) {
  const int whole = size - size % 4;
  for (int row = 0; row < whole; row += 4) {
    for (int column = 0; column < row; column += 4) factor_tile<4, 4>(triangle, inverse_diagonal, row, column);
    factor_diagonal_tile<4>(triangle, inverse_diagonal, row, failed);
  }
  switch (size - whole) {
    case 1:
      for (int column = 0; column < whole; column += 4) factor_tile<1, 4>(triangle, inverse_diagonal, whole, column);
      factor_diagonal_tile<1>(triangle, inverse_diagonal, whole, failed);
      break;
    case 2:
      for (int column = 0; column < whole; column += 4) factor_tile<2, 4>(triangle, inverse_diagonal, whole, column);
      factor_diagonal_tile<2>(triangle, inverse_diagonal, whole, failed);
      break;
    case 3:
      for (int column = 0; column < whole; column += 4) factor_tile<3, 4>(triangle, inverse_diagonal, whole, column);
      factor_diagonal_tile<3>(triangle, inverse_diagonal, whole, failed);
      break;
    default: break;
  }
}

// Four rows at a time: their sums are independent until the last three terms.
template <int Rows, class Number>
CGL_HD CGL_INLINE void substitute_forward(const Number* triangle, const Number* inverse_diagonal, Number* x, int row) {
  FixedArray<Number, Rows> sum;
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) sum[r] = x[row + r];
  for (int k = 0; k < row; ++k) {
    const Number value = x[k];
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) sum[r] = sum[r] - triangle[triangle_index(row + r, k)] * value;
  }
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) {
    CGL_UNROLL_8
    for (int k = 0; k < r; ++k) sum[r] = sum[r] - triangle[triangle_index(row + r, row + k)] * sum[k];
    sum[r] = sum[r] * inverse_diagonal[row + r];
    x[row + r] = sum[r];
  }
}

// Sums descend from the last row.
template <int Rows, class Number>
CGL_HD CGL_INLINE void substitute_backward(const Number* triangle, const Number* inverse_diagonal, int size, Number* x,
                                           int row) {
  FixedArray<Number, Rows> sum;
  CGL_UNROLL_8
  for (int r = 0; r < Rows; ++r) sum[r] = x[row + r];
  for (int k = size - 1; k >= row + Rows; --k) {
    const Number value = x[k];
    CGL_UNROLL_8
    for (int r = 0; r < Rows; ++r) sum[r] = sum[r] - triangle[triangle_index(k, row + r)] * value;
  }
  CGL_UNROLL_8
  for (int r = Rows - 1; r >= 0; --r) {
    CGL_UNROLL_8
    for (int k = Rows - 1; k > r; --k) sum[r] = sum[r] - triangle[triangle_index(row + k, row + r)] * sum[k];
    sum[r] = sum[r] * inverse_diagonal[row + r];
    x[row + r] = sum[r];
  }
}

// Replaces the right side x by the solution of L L' x.
template <class Number>
CGL_HD CGL_INLINE void solve_cholesky(int size, const Number* triangle, const Number* inverse_diagonal, Number* x) {
  const int whole = size - size % 4;
  for (int row = 0; row < whole; row += 4) substitute_forward<4>(triangle, inverse_diagonal, x, row);
  for (int row = whole; row < size; ++row) substitute_forward<1>(triangle, inverse_diagonal, x, row);
  for (int row = size - 1; row >= whole; --row) substitute_backward<1>(triangle, inverse_diagonal, size, x, row);
  for (int row = whole - 4; row >= 0; row -= 4) substitute_backward<4>(triangle, inverse_diagonal, size, x, row);
}

}  // namespace cingulum
