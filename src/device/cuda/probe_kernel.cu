#include "device/cuda/ahead_kernels.hpp"

namespace cingulum {
namespace {

__global__ void probe_kernel() {}

}  // namespace

cudaError_t read_probe_kernel_attributes(cudaFuncAttributes& attributes) {
  return cudaFuncGetAttributes(&attributes, probe_kernel);
}

}  // namespace cingulum
