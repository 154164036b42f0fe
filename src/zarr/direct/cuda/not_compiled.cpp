// Stands in for Zarr regions on CUDA in a program built without it. (No device of CUDA exists there.)
#include "zarr/direct/box_kernels.hpp"
#include "zarr/direct/checksum_kernels.hpp"
#include "zarr/direct/nvcomp_transport.hpp"

namespace cingulum::zarr {

Result<std::unique_ptr<BoxKernels>> make_cuda_box_kernels(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

Result<std::unique_ptr<ChecksumKernels>> make_cuda_checksum_kernels(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

Result<std::unique_ptr<LeafTransport>> make_nvcomp_transport(const RegionPlan&, Staging& staging, ReadCounters&,
                                                             std::shared_ptr<const NvcompLibrary>) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", staging.device().id());
}

}  // namespace cingulum::zarr
