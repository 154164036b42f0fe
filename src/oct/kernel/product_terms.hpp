// The terms of sums of products of two planes (PlaneProduct), one per pixel. Mirrored by webgpu/product_rows.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"

namespace cingulum::oct {

// In the order of ProductKind.
inline constexpr std::uint32_t product_of_one = 0;
inline constexpr std::uint32_t product_of_square = 1;
inline constexpr std::uint32_t product_of_both = 2;
inline constexpr std::uint32_t product_of_other = 3;  // from there on: as 0 and 1, of the other volume

// A row of one product: its first terms, and what is taken from them.
struct ProductRow {
  std::uint32_t kind;  // of one, of square or of both
  std::uint32_t columns;
  const float* a;
  const float* b;
  float a_offset;
  float b_offset;
};

CGL_HD inline ProductRow product_row(const std::uint32_t* item, const ProductRowsRecord& record, const float* a,
                                     const float* b, std::uint32_t row) {
  const float* const in_a = a + (std::size_t{item[1]} * record.a_y + item[2] + row) * record.a_x + item[3];
  const float* const in_b = b + (std::size_t{item[4]} * record.b_y + item[5] + row) * record.b_x + item[6];
  if (item[0] >= product_of_other) {
    return {item[0] - product_of_other, item[8], in_b, in_b, record.b_offset, record.b_offset};
  }
  return {item[0], item[8], in_a, in_b, record.a_offset, record.b_offset};
}

CGL_HD inline float product_term(const ProductRow& row, std::uint32_t column) {
  const float first = row.a[column] - row.a_offset;
  if (row.kind == product_of_one) return first;
  return first * (row.kind == product_of_square ? first : row.b[column] - row.b_offset);
}

}  // namespace cingulum::oct
