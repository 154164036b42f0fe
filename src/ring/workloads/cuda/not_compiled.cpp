#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

Result<std::unique_ptr<WorkloadPlace>> make_cuda_place(Device&, const DevicePlaceOptions&) {
  return fail(ErrorKind::unavailable, "actors on a GPU: this program was built without CUDA; use {} cpu",
              argument_name("device"));
}

}  // namespace cingulum::ring
