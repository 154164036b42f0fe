#include "device/cuda/cuda_status.hpp"

namespace cingulum {

Status cuda_failure(cudaError_t code, const std::string& doing) {
  static_cast<void>(cudaGetLastError());
  const bool sticky = cudaPeekAtLastError() != cudaSuccess;
  const ErrorKind kind = code == cudaErrorMemoryAllocation ? ErrorKind::out_of_memory : ErrorKind::device;
  return fail(kind, "{}: {} ({}){}", doing, cudaGetErrorString(code), cudaGetErrorName(code),
              sticky ? "; the CUDA context of this process is lost" : "");
}

}  // namespace cingulum
