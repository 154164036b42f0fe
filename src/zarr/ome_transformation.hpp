// The coordinate transformations of OME-Zarr as one kind of thing: an affine map. Parsed from JSON, composed, and told
// apart from plain scales and translations. What is not an affine map, or is stored in an array, is refused by name.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.hpp"
#include "zarr/metadata_field.hpp"

namespace cingulum::zarr {

// From the indices of an array to coordinates: rows of rank + 1 numbers.
struct OmeTransformation {
  std::size_t rank = 0;
  std::vector<double> rows;

  explicit OmeTransformation(std::size_t dimensions) : rank(dimensions), rows(dimensions * (dimensions + 1)) {
    for (std::size_t i = 0; i < rank; ++i) at(i, i) = 1;
  }
  double& at(std::size_t row, std::size_t column) { return rows[row * (rank + 1) + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const { return rows[row * (rank + 1) + column]; }
  [[nodiscard]] bool is_diagonal() const {
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t j = 0; j < rank; ++j) {
        if (i != j && at(i, j) != 0) return false;
      }
    }
    return true;
  }
  // This one first, then `next`. Terms that are zero are left out: a scale of a scale is one product.
  [[nodiscard]] OmeTransformation followed_by(const OmeTransformation& next) const {
    OmeTransformation result(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t j = 0; j <= rank; ++j) {
        double sum = j == rank ? next.at(i, rank) : 0;
        for (std::size_t k = 0; k < rank; ++k) {
          if (next.at(i, k) != 0) sum += next.at(i, k) * at(k, j);
        }
        result.at(i, j) = sum;
      }
    }
    return result;
  }
};

// identity, scale, translation, affine, or a sequence of these.
[[nodiscard]] Result<OmeTransformation> parse_ome_transformation(const Json& json, std::size_t rank,
                                                                 const MetadataField& field, int depth = 0);
// All of a list, one after the other.
[[nodiscard]] Result<OmeTransformation> parse_ome_transformations(const Json& list, std::size_t rank,
                                                                  const MetadataField& field);

}  // namespace cingulum::zarr
