// Products of planes on the CPU. A piece takes a few rows of every product: the planes of a band are read once, and
// their rows stay in the nearest cache.
#include <algorithm>

#include "numerics/lanes_portable.hpp"
#include "numerics/pack.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/product_terms.hpp"

namespace cingulum::oct {
namespace {

using numerics::lane_count;

constexpr std::uint32_t product_rows_per_piece = 4;

std::uint32_t product_pieces(const KernelPointers& call) {
  const auto record = call.record<ProductRowsRecord>();
  return (record.most_rows + product_rows_per_piece - 1) / product_rows_per_piece;
}

// The lane sum of `columns` terms; term<Number>(i) gives those of slots i to i + lanes - 1, tail(i) that of one slot.
template <class Number, class Terms, class Tail>
CGL_INLINE float lane_sum_of(std::uint32_t columns, Terms terms, Tail tail) {
  constexpr std::uint32_t lanes = static_cast<std::uint32_t>(Number::width);
  constexpr std::uint32_t registers = lane_count / lanes;
  Number sums[registers];
  const std::uint32_t whole = columns / lane_count;
  for (std::uint32_t r = 0; r < registers; ++r) sums[r] = Number(0.0f);
  if (whole > 0) {
    for (std::uint32_t r = 0; r < registers; ++r) sums[r] = terms(r * lanes);
    for (std::uint32_t row = 1; row < whole; ++row) {
      for (std::uint32_t r = 0; r < registers; ++r) sums[r] = sums[r] + terms(row * lane_count + r * lanes);
    }
  }
  float partial[lane_count];
  for (std::uint32_t r = 0; r < registers; ++r) sums[r].store(partial + r * lanes);
  if (columns % lane_count != 0) {
    for (std::uint32_t l = 0; l < lane_count; ++l) {
      const std::uint32_t slot = whole * lane_count + l;
      const float term = slot < columns ? tail(slot) : 0.0f;
      partial[l] = whole == 0 ? term : partial[l] + term;
    }
  }
  for (std::uint32_t distance = lane_count / 2; distance != 0; distance /= 2) {
    for (std::uint32_t l = 0; l < distance; ++l) partial[l] = partial[l] + partial[l + distance];
  }
  return partial[0];
}

void product_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<ProductRowsRecord>();
  const std::uint32_t* const items = call.words_at(2);
  float* const sums = call.at[3];
  const std::uint32_t first = piece * product_rows_per_piece;
  const std::uint32_t end = std::min(first + product_rows_per_piece, record.most_rows);
  numerics::with_packs<float>([&]<class Number>() {
    for (std::uint32_t row = first; row < end; ++row) {
      for (std::uint32_t p = 0; p < record.products; ++p) {
        const std::uint32_t* const item = items + std::size_t{product_words} * p;
        if (row >= item[7]) continue;
        const ProductRow at = product_row(item, record, call.at[0], call.at[1], row);
        const Number a_offset = Number(at.a_offset);
        const Number b_offset = Number(at.b_offset);
        const auto tail = [&](std::uint32_t i) { return product_term(at, i); };
        float& sum = sums[std::size_t{p} * record.most_rows + row];
        if (at.kind == product_of_one) {
          sum = lane_sum_of<Number>(
              at.columns, [&](std::uint32_t i) { return Number::load(at.a + i) - a_offset; }, tail);
        } else if (at.kind == product_of_square) {
          sum = lane_sum_of<Number>(
              at.columns,
              [&](std::uint32_t i) {
                const Number value = Number::load(at.a + i) - a_offset;
                return value * value;
              },
              tail);
        } else {
          sum = lane_sum_of<Number>(
              at.columns,
              [&](std::uint32_t i) {
                return (Number::load(at.a + i) - a_offset) * (Number::load(at.b + i) - b_offset);
              },
              tail);
        }
      }
    }
  });
}

std::uint32_t fold_pieces(const KernelPointers& call) {
  return (call.record<ProductFoldRecord>().products + lane_count - 1) / lane_count;
}

void fold_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<ProductFoldRecord>();
  const std::uint32_t* const items = call.words_at(0);
  numerics::with_packs<float>([&]<class Number>() {
    const std::uint32_t end = std::min((piece + 1) * lane_count, record.products);
    for (std::uint32_t p = piece * lane_count; p < end; ++p) {
      const float* const rows = call.at[1] + std::size_t{p} * record.most_rows;
      call.at[2][p] = lane_sum_of<Number>(
          items[std::size_t{product_words} * p + 7], [&](std::uint32_t i) { return Number::load(rows + i); },
          [&](std::uint32_t i) { return rows[i]; });
    }
  });
}

}  // namespace

constinit const HostKernel host_product_rows = {product_pieces, product_piece};
constinit const HostKernel host_product_fold = {fold_pieces, fold_piece};

}  // namespace cingulum::oct
