// The launch of a kernel by a call: enough blocks of the kernel's own size for the threads that are asked for; its
// arguments are the record of the call and the addresses of its ranges, in their order.
#pragma once

#include <cstddef>
#include <utility>

#include "oct/cuda/oct_launch.hpp"

namespace cingulum::oct {

inline dim3 blocks_for(const std::array<std::uint32_t, 3>& threads, dim3 block) {
  return {(threads[0] + block.x - 1) / block.x, (threads[1] + block.y - 1) / block.y,
          (threads[2] + block.z - 1) / block.z};
}

template <class Record, class... Pointers, std::size_t... range>
cudaError_t launch_ranges(const CudaCall& call, dim3 block, void (*kernel)(Record, Pointers...),
                          std::size_t shared_bytes, std::index_sequence<range...>) {
  kernel<<<blocks_for(call.threads, block), block, shared_bytes, call.stream>>>(
      call.pointers.record<Record>(), reinterpret_cast<Pointers>(call.pointers.at[range])...);
  return cudaGetLastError();
}

template <class Record, class... Pointers>
cudaError_t launch_on(const CudaCall& call, dim3 block, void (*kernel)(Record, Pointers...),
                      std::size_t shared_bytes = 0) {
  static_assert(sizeof...(Pointers) <= most_kernel_buffers);
  return launch_ranges(call, block, kernel, shared_bytes, std::index_sequence_for<Pointers...>());
}

}  // namespace cingulum::oct
