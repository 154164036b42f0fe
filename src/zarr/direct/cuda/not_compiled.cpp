// Stands in for Zarr regions on CUDA in a program built without it. (No device of CUDA exists there.)
#include "zarr/direct/box_kernels.hpp"
#include "zarr/direct/checksum_kernels.hpp"

namespace cingulum::zarr {

Result<std::unique_ptr<BoxKernels>> make_cuda_box_kernels(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

Result<std::unique_ptr<ChecksumKernels>> make_cuda_checksum_kernels(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

}  // namespace cingulum::zarr
