// A matrix of doubles, row by row: what the set-up of a model hands to the kernels that run over voxels. It computes
// nothing itself; Eigen does, in the .cpp files of the models.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cingulum {

struct DenseMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;  // rows x columns, a row is contiguous

  DenseMatrix() = default;
  DenseMatrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count, 0.0) {}

  [[nodiscard]] double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
  double& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  [[nodiscard]] std::span<const double> row(std::size_t index) const {
    return std::span(values).subspan(index * columns, columns);
  }
};

}  // namespace cingulum
