// The arithmetic of the diffusion tensor in one voxel: least squares of the log signal, eigenvalues, maps. Templates
// over the number type: `double` on CUDA and in tests, a pack of voxels on the host; a voxel's result does not depend
// on which (contract, section 6). Called by tensor.cpp. Sums over volumes run in sequence from the first volume.
#pragma once

#include <cstdint>

#include "dmri/models/unroll.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "numerics/portable.hpp"

namespace cingulum {

inline constexpr int tensor_unknowns = 7;  // Dxx Dyy Dzz Dxy Dxz Dyz, ln S0
inline constexpr int tensor_product_count = tensor_unknowns * (tensor_unknowns + 1) / 2;

// What all voxels share. b-values are divided by the largest, so that the unknowns are of one size; tensors inside the
// kernel are therefore multiplied by it.
struct TensorDesign {
  std::uint32_t volumes;
  const double* rows;      // volumes x 7: the coefficients of the unknowns in ln S
  const double* products;  // volumes x 28: row_j row_k for k <= j, j ascending
  const double* inverse;   // volumes x 7: column i of the pseudo-inverse
  double unit;             // 1 / largest b-value
  double least_diffusivity;
  double min_signal;
  bool weighted;
};

template <class Number>
struct TensorEstimate {
  Number tensor[6];  // Dxx Dyy Dzz Dxy Dxz Dyz in mm^2/s, as fitted
  Number log_s0;
  Number eigenvalues[3];   // descending, none below the least diffusivity
  Number eigenvectors[9];  // the first, second, third: x y z each
  Number solvable;         // 1, or 0 where the weights left the equations singular and OLS stands
};

template <class Number>
CGL_HD inline Number larger_of(Number a, Number b) {
  using numerics::select;
  return select(a > b, a, b);
}
template <class Number>
CGL_HD inline Number magnitude_of(Number a) {
  using numerics::select;
  return select(a < Number(0.0), -a, a);
}

// ln of the signal, at least min_signal; what is not a number counts as min_signal.
template <class Number>
CGL_HD inline Number clamped_log_signal(Number signal, double min_signal) {
  using numerics::logarithm;
  using numerics::select;
  return logarithm(select(signal > Number(min_signal), signal, Number(min_signal)));
}

// Solves A x = g for symmetric positive definite A (row by row, k <= j) by Cholesky's L L^T in place. Returns 0 in
// lanes where a pivot is not above 2^-44 of its diagonal entry, and x = 0 there; 1 elsewhere.
template <class Number>
CGL_HD inline Number solve_symmetric(Number (&a)[tensor_product_count], Number (&x)[tensor_unknowns]) {
  using numerics::root;
  using numerics::select;
  Number good = Number(1.0);
  Number inverse_pivot[tensor_unknowns];
  CGL_UNROLL_28
  for (int j = 0; j < tensor_unknowns; ++j) {
    const int row_j = j * (j + 1) / 2;
    const Number least = a[row_j + j] * Number(0x1p-44);
    Number pivot = a[row_j + j];
    CGL_UNROLL_28
    for (int k = 0; k < j; ++k) pivot = pivot - a[row_j + k] * a[row_j + k];
    const auto is_good = pivot > least;
    good = select(is_good, good, Number(0.0));
    inverse_pivot[j] = Number(1.0) / root(select(is_good, pivot, Number(1.0)));
    CGL_UNROLL_28
    for (int i = j + 1; i < tensor_unknowns; ++i) {
      const int row_i = i * (i + 1) / 2;
      Number sum = a[row_i + j];
      CGL_UNROLL_28
      for (int k = 0; k < j; ++k) sum = sum - a[row_i + k] * a[row_j + k];
      a[row_i + j] = sum * inverse_pivot[j];
    }
  }
  CGL_UNROLL_28
  for (int j = 0; j < tensor_unknowns; ++j) {
    CGL_UNROLL_28
    for (int k = 0; k < j; ++k) x[j] = x[j] - a[j * (j + 1) / 2 + k] * x[k];
    x[j] = x[j] * inverse_pivot[j];
  }
  CGL_UNROLL_28
  for (int j = tensor_unknowns - 1; j >= 0; --j) {
    CGL_UNROLL_28
    for (int k = j + 1; k < tensor_unknowns; ++k) x[j] = x[j] - a[k * (k + 1) / 2 + j] * x[k];
    x[j] = x[j] * inverse_pivot[j];
  }
  for (int j = 0; j < tensor_unknowns; ++j) x[j] = select(good > Number(0.5), x[j], Number(0.0));
  return good;
}

// One Jacobi rotation of the plane (p, q); r is the third axis. `a` holds xx yy zz xy xz yz, `v` the vectors found so
// far as three columns of x y z.
template <class Number>
CGL_HD inline void rotate_plane(Number& app, Number& aqq, Number& apq, Number& apr, Number& aqr, Number* vp,
                                Number* vq) {
  using numerics::root;
  using numerics::select;
  // tan of the smaller angle that makes apq zero: 2 apq / (d + sign(d) sqrt(d^2 + 4 apq^2)), d = aqq - app (Golub and
  // Van Loan, Matrix Computations, section 8.5), written so that nothing overflows; 0 where apq and d are 0.
  const Number difference = aqq - app;
  const Number twice = apq + apq;
  const Number hypotenuse = root(difference * difference + twice * twice);
  const Number denominator = magnitude_of(difference) + hypotenuse;
  const Number numerator = select(difference < Number(0.0), -twice, twice);
  const Number tangent = select(denominator > Number(0.0), numerator, Number(0.0)) /
                         select(denominator > Number(0.0), denominator, Number(1.0));
  const Number cosine = Number(1.0) / root(tangent * tangent + Number(1.0));
  const Number sine = tangent * cosine;
  const Number shift = tangent * apq;
  app = app - shift;
  aqq = aqq + shift;
  apq = Number(0.0);
  const Number old_apr = apr;
  apr = cosine * old_apr - sine * aqr;
  aqr = sine * old_apr + cosine * aqr;
  for (int i = 0; i < 3; ++i) {
    const Number old = vp[i];
    vp[i] = cosine * old - sine * vq[i];
    vq[i] = sine * old + cosine * vq[i];
  }
}

template <class Number>
CGL_HD inline void exchange_if_less(Number& value_a, Number& value_b, Number* a, Number* b) {
  using numerics::select;
  const auto less = value_a < value_b;
  const Number old = value_a;
  value_a = select(less, value_b, value_a);
  value_b = select(less, old, value_b);
  for (int i = 0; i < 3; ++i) {
    const Number old_component = a[i];
    a[i] = select(less, b[i], a[i]);
    b[i] = select(less, old_component, b[i]);
  }
}

// Eigenvalues in descending order and unit eigenvectors (x y z each) of xx yy zz xy xz yz, by cyclic Jacobi rotations:
// six sweeps whatever the matrix, which reach the last digits (the fourth sweep usually does; convergence is
// quadratic).
template <class Number>
CGL_HD inline void symmetric_eigen(const Number (&matrix)[6], Number (&values)[3], Number (&vectors)[9]) {
  Number xx = matrix[0], yy = matrix[1], zz = matrix[2];
  Number xy = matrix[3], xz = matrix[4], yz = matrix[5];
  for (int i = 0; i < 9; ++i) vectors[i] = Number(i % 4 == 0 ? 1.0 : 0.0);
  for (int sweep = 0; sweep < 6; ++sweep) {
    rotate_plane(xx, yy, xy, xz, yz, vectors, vectors + 3);
    rotate_plane(xx, zz, xz, xy, yz, vectors, vectors + 6);
    rotate_plane(yy, zz, yz, xy, xz, vectors + 3, vectors + 6);
  }
  values[0] = xx;
  values[1] = yy;
  values[2] = zz;
  exchange_if_less(values[0], values[1], vectors, vectors + 3);
  exchange_if_less(values[0], values[2], vectors, vectors + 6);
  exchange_if_less(values[1], values[2], vectors + 3, vectors + 6);
}

// The opposite where that is the one kept: z > 0, or z = 0 and y > 0, or z = y = 0 and x > 0.
template <class Number>
CGL_HD inline void turn_to_kept_hemisphere(Number* vector) {
  using numerics::select;
  const Number zero = Number(0.0);
  const Number by_x = select(vector[0] < zero, Number(-1.0), Number(1.0));
  const Number by_y = select(vector[1] < zero, Number(-1.0), select(vector[1] > zero, Number(1.0), by_x));
  const Number sign = select(vector[2] < zero, Number(-1.0), select(vector[2] > zero, Number(1.0), by_y));
  for (int i = 0; i < 3; ++i) vector[i] = vector[i] * sign + zero;  // -0.0 becomes +0.0
}

// Fractional anisotropy (Basser and Pierpaoli, J. Magn. Reson. B 111, 1996) of eigenvalues that are not all zero.
template <class Number>
CGL_HD inline Number fractional_anisotropy(const Number (&values)[3]) {
  using numerics::root;
  const Number a = values[0] - values[1];
  const Number b = values[1] - values[2];
  const Number c = values[2] - values[0];
  const Number squares = (values[0] * values[0] + values[1] * values[1]) + values[2] * values[2];
  return root(Number(0.5) * ((a * a + b * b) + c * c) / squares);
}

// The maps of one voxel that are made from its estimate.
template <class Number>
struct TensorMeasures {
  Number fa, md, rd, s0;
};

template <class Number>
CGL_HD inline TensorMeasures<Number> measure_tensor(const TensorEstimate<Number>& estimate) {
  using numerics::exponential;
  const Number& l1 = estimate.eigenvalues[0];
  const Number& l2 = estimate.eigenvalues[1];
  const Number& l3 = estimate.eigenvalues[2];
  return {fractional_anisotropy(estimate.eigenvalues), ((l1 + l2) + l3) / Number(3.0), (l2 + l3) * Number(0.5),
          exponential(estimate.log_s0)};
}

// `log_signal(i)` gives clamped_log_signal of volume i. OLS; with design.weighted then WLS whose weights are the
// squares of the signals that OLS predicts (Chung et al., NeuroImage 33, 2006), solved for the change against OLS, so
// that the normal equations' loss of digits falls on a small number.
template <class Number, class LogSignal>
CGL_HD inline TensorEstimate<Number> fit_tensor(const TensorDesign& design, LogSignal&& log_signal) {
  using numerics::exponential;
  Number unknowns[tensor_unknowns];
  for (int j = 0; j < tensor_unknowns; ++j) unknowns[j] = Number(0.0);
  for (std::uint32_t i = 0; i < design.volumes; ++i) {
    const Number y = log_signal(i);
    const double* column = design.inverse + tensor_unknowns * i;
    CGL_UNROLL_28
    for (int j = 0; j < tensor_unknowns; ++j) unknowns[j] = unknowns[j] + Number(column[j]) * y;
  }
  TensorEstimate<Number> result;
  result.solvable = Number(1.0);
  if (design.weighted) {
    Number normal[tensor_product_count];
    Number change[tensor_unknowns];
    for (int j = 0; j < tensor_product_count; ++j) normal[j] = Number(0.0);
    for (int j = 0; j < tensor_unknowns; ++j) change[j] = Number(0.0);
    for (std::uint32_t i = 0; i < design.volumes; ++i) {
      const double* row = design.rows + tensor_unknowns * i;
      const double* products = design.products + tensor_product_count * i;
      Number attenuation = unknowns[0] * Number(row[0]);  // ln S / S0
      CGL_UNROLL_28
      for (int j = 1; j < 6; ++j) attenuation = attenuation + unknowns[j] * Number(row[j]);
      const Number residual = log_signal(i) - (attenuation + unknowns[6]);
      // Relative to S0, which cancels.
      const Number weight = exponential(attenuation + attenuation);
      const Number weighted_residual = weight * residual;
      CGL_UNROLL_28
      for (int j = 0; j < tensor_product_count; ++j) normal[j] = normal[j] + weight * Number(products[j]);
      CGL_UNROLL_28
      for (int j = 0; j < tensor_unknowns; ++j) change[j] = change[j] + weighted_residual * Number(row[j]);
    }
    result.solvable = solve_symmetric(normal, change);
    for (int j = 0; j < tensor_unknowns; ++j) unknowns[j] = unknowns[j] + change[j];
  }
  for (int j = 0; j < 6; ++j) result.tensor[j] = unknowns[j] * Number(design.unit);
  result.log_s0 = unknowns[6];
  symmetric_eigen(result.tensor, result.eigenvalues, result.eigenvectors);
  for (int j = 0; j < 3; ++j) {
    result.eigenvalues[j] = larger_of(result.eigenvalues[j], Number(design.least_diffusivity));
  }
  for (int j = 0; j < 3; ++j) turn_to_kept_hemisphere(result.eigenvectors + 3 * j);
  return result;
}

}  // namespace cingulum
