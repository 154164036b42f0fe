// Records of several voxels laid side by side in packs, a voxel per lane, and back: the frame of every model kernel
// that is a template over its number type. Called by the fits of this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmri/models/unroll.hpp"
#include "numerics/pack.hpp"

namespace cingulum {

// Number i of lane l goes to to[i].lanes[l]. Lanes from `count` on repeat the last voxel.
template <class Number>
CGL_INLINE void gather_records(const float* records, std::size_t stride, std::size_t count, Number* to,
                               std::size_t length) {
  double lanes[8];
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t l = 0; l < static_cast<std::size_t>(Number::width); ++l) {
      lanes[l] = static_cast<double>(records[(l < count ? l : count - 1) * stride + i]);
    }
    to[i] = Number::load(lanes);
  }
}

template <class Number>
CGL_INLINE void scatter_records(const Number* from, std::size_t length, float* records, std::size_t stride,
                                std::size_t count) {
  double lanes[8];
  for (std::size_t i = 0; i < length; ++i) {
    from[i].store(lanes);
    for (std::size_t l = 0; l < count; ++l) records[l * stride + i] = static_cast<float>(lanes[l]);
  }
}

// result = matrix (rows x columns, row by row) times vector; every entry is the sequential sum of its terms. `Vector`
// and `Result` are pointers, or what a device needs to find a number of its voxel.
template <class Number, class Vector, class Result>
CGL_HD CGL_INLINE void multiply(const double* matrix, std::size_t rows, std::size_t columns, const Vector& vector,
                                const Result& result) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const double* const m = matrix + r * columns;
    Number sum[4];
    CGL_UNROLL_8
    for (std::size_t k = 0; k < 4; ++k) sum[k] = Number(m[k * columns]) * vector[0];
    for (std::size_t c = 1; c < columns; ++c) {
      const Number value = vector[c];
      CGL_UNROLL_8
      for (std::size_t k = 0; k < 4; ++k) sum[k] = sum[k] + Number(m[k * columns + c]) * value;
    }
    CGL_UNROLL_8
    for (std::size_t k = 0; k < 4; ++k) result[r + k] = sum[k];
  }
  for (; r < rows; ++r) {
    Number sum = Number(matrix[r * columns]) * vector[0];
    for (std::size_t c = 1; c < columns; ++c) sum = sum + Number(matrix[r * columns + c]) * vector[c];
    result[r] = sum;
  }
}

}  // namespace cingulum
