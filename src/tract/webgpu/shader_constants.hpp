// The numbers that the tracking shaders share with the kernels and with the host, as WGSL constants. Put before the
// text by webgpu_shader.cpp; no .wgsl file defines any of them (tests/check_shared_constants.py).
#pragma once

#include <string>

namespace cingulum {

[[nodiscard]] std::string tracking_constants_wgsl();

}  // namespace cingulum
