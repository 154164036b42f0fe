// The probes of the backends, each in its own folder. Only registry.cpp calls them.
#pragma once

#include "device/registry.hpp"

namespace cingulum {

[[nodiscard]] BackendReport probe_cuda(const ProbeOptions& options);
[[nodiscard]] BackendReport probe_webgpu(const ProbeOptions& options);
[[nodiscard]] BackendReport probe_cpu(const ProbeOptions& options);

}  // namespace cingulum
