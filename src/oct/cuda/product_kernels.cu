// Products of planes: a warp makes the lane sum of a row of one product, another that of the rows.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/product_terms.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned rows_per_block = 8;

// The tree of the lane sum over the lanes of a warp.
__device__ float folded(float partial) {
#pragma unroll
  for (unsigned distance = 16; distance != 0; distance /= 2) {
    partial = partial + __shfl_xor_sync(0xffffffffu, partial, static_cast<int>(distance));
  }
  return partial;
}

__global__ void __launch_bounds__(32 * rows_per_block)
    product_rows_kernel(ProductRowsRecord record, const float* a, const float* b, const std::uint32_t* items,
                        float* sums) {
  const std::uint32_t row = blockIdx.y * rows_per_block + threadIdx.y;
  const std::uint32_t* const item = items + std::size_t{product_words} * blockIdx.z;
  if (row >= item[7]) return;
  const ProductRow at = product_row(item, record, a, b, row);
  const auto term = [&](std::uint32_t i) { return i < at.columns ? product_term(at, i) : 0.0f; };
  float partial = term(threadIdx.x);
#pragma unroll 4
  for (std::uint32_t first = 32; first < at.columns; first += 32) partial = partial + term(first + threadIdx.x);
  const float sum = folded(partial);
  if (threadIdx.x == 0) sums[std::size_t{blockIdx.z} * record.most_rows + row] = sum;
}

__global__ void __launch_bounds__(32)
    product_fold_kernel(ProductFoldRecord record, const std::uint32_t* items, const float* sums, float* results) {
  const std::uint32_t product = blockIdx.y;
  const std::uint32_t rows = items[std::size_t{product_words} * product + 7];
  const float* const from = sums + std::size_t{product} * record.most_rows;
  const auto term = [&](std::uint32_t i) { return i < rows ? from[i] : 0.0f; };
  float partial = term(threadIdx.x);
  for (std::uint32_t first = 32; first < rows; first += 32) partial = partial + term(first + threadIdx.x);
  const float sum = folded(partial);
  if (threadIdx.x == 0) results[product] = sum;
}

}  // namespace

cudaError_t launch_product_rows(const CudaCall& call) {
  return launch_on(call, dim3(32, rows_per_block), product_rows_kernel);
}

cudaError_t launch_product_fold(const CudaCall& call) {
  return launch_on(call, dim3(32), product_fold_kernel);
}

}  // namespace cingulum::oct
