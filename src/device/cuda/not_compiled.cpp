// Stands in for the CUDA backend in builds without it.
#include "device/backends.hpp"
#include "device/selfcheck.hpp"

namespace cingulum {

BackendReport probe_cuda(const ProbeOptions&) {
  return {.backend = Backend::cuda,
          .absent_reason = "this build has no CUDA (CINGULUM_CUDA=OFF)",
          .library = {},
          .devices = {}};
}

Status queue_selfcheck_on_cuda(Queue&, Buffer&, std::uint32_t) {
  return fail(ErrorKind::unavailable, "this build has no CUDA");
}

}  // namespace cingulum
