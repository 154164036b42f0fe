// Stands in for the WebGPU backend in builds without it.
#include "device/backends.hpp"

namespace cingulum {

BackendReport probe_webgpu(const ProbeOptions&) {
  return {.backend = Backend::webgpu,
          .absent_reason = "this build has no WebGPU (CINGULUM_WEBGPU=OFF)",
          .library = {},
          .devices = {}};
}

}  // namespace cingulum
