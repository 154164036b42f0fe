// Runs the lane cases on CUDA, one warp per item. Compiled with the flags of the trackers.
#include <cuda_runtime.h>

#include <utility>

#include "numerics/lanes_warp.cuh"
#include "parity/lane_cases.hpp"

namespace cingulum::parity {
namespace {

constexpr unsigned warps_per_block = 4;

template <class Case>
__global__ void __launch_bounds__(warps_per_block* numerics::lane_count)
    run_lane_case(const float* input, float* output, std::uint32_t count) {
  const std::uint32_t item = blockIdx.x * warps_per_block + threadIdx.x / numerics::lane_count;
  if (item >= count) return;  // whole warps leave together
  Case::template run<numerics::WarpLanes>(input + static_cast<std::size_t>(item) * Case::in_words,
                                          output + static_cast<std::size_t>(item) * Case::out_words);
}

template <class Case>
cudaError_t launch(const std::uint32_t* input, std::uint32_t* output, std::uint32_t count, cudaStream_t stream) {
  const unsigned blocks = (count + warps_per_block - 1u) / warps_per_block;
  run_lane_case<Case><<<blocks, warps_per_block * numerics::lane_count, 0, stream>>>(
      reinterpret_cast<const float*>(input), reinterpret_cast<float*>(output), count);
  return cudaGetLastError();
}

using Launch = cudaError_t (*)(const std::uint32_t*, std::uint32_t*, std::uint32_t, cudaStream_t);

template <std::size_t... index>
Launch launch_of(int case_index, std::index_sequence<index...>) {
  constexpr Launch all[] = {&launch<std::tuple_element_t<index, LaneCases>>...};
  return all[case_index];
}

}  // namespace

int launch_lane_case(int case_index, const std::uint32_t* input, std::uint32_t* output, std::uint32_t count,
                     void* stream) {
  if (case_index < 0 || case_index >= lane_case_count || count == 0u) return cudaErrorInvalidValue;
  const Launch wanted = launch_of(case_index, std::make_index_sequence<lane_case_count>());
  return wanted(input, output, count, static_cast<cudaStream_t>(stream));
}

}  // namespace cingulum::parity
