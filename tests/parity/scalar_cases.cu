// Runs the scalar cases on CUDA, one thread per item. Compiled with the flags of the trackers.
#include <cuda_runtime.h>

#include "parity/scalar_cases.hpp"

namespace cingulum::parity {
namespace {

constexpr unsigned threads_per_block = 128;

template <class Case>
__global__ void __launch_bounds__(threads_per_block)
    run_scalar_case(const std::uint32_t* input, std::uint32_t* output, std::uint32_t count) {
  const std::uint32_t item = blockIdx.x * threads_per_block + threadIdx.x;
  if (item >= count) return;
  std::uint32_t in[Case::in_words];
  std::uint32_t out[Case::out_words];
  for (int i = 0; i < Case::in_words; ++i) in[i] = input[static_cast<std::size_t>(item) * Case::in_words + i];
  Case::run(in, out);
  for (int i = 0; i < Case::out_words; ++i) output[static_cast<std::size_t>(item) * Case::out_words + i] = out[i];
}

template <class Case>
cudaError_t launch(const std::uint32_t* input, std::uint32_t* output, std::uint32_t count, cudaStream_t stream) {
  const unsigned blocks = (count + threads_per_block - 1u) / threads_per_block;
  run_scalar_case<Case><<<blocks, threads_per_block, 0, stream>>>(input, output, count);
  return cudaGetLastError();
}

using Launch = cudaError_t (*)(const std::uint32_t*, std::uint32_t*, std::uint32_t, cudaStream_t);

template <std::size_t... index>
Launch launch_of(int case_index, std::index_sequence<index...>) {
  constexpr Launch all[] = {&launch<std::tuple_element_t<index, ScalarCases>>...};
  return all[case_index];
}

}  // namespace

int launch_scalar_case(int case_index, const std::uint32_t* input, std::uint32_t* output, std::uint32_t count,
                       void* stream) {
  if (case_index < 0 || case_index >= scalar_case_count || count == 0u) return cudaErrorInvalidValue;
  const Launch wanted = launch_of(case_index, std::make_index_sequence<scalar_case_count>());
  return wanted(input, output, count, static_cast<cudaStream_t>(stream));
}

}  // namespace cingulum::parity
