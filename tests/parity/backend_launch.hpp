// What the parity test needs of the backends and of the build: the stream of a CUDA queue, and the text of the WGSL
// cases.
#pragma once

#include <string_view>

#include "device/device.hpp"

namespace cingulum::parity {

// The cudaStream_t behind a queue; null in builds without CUDA.
[[nodiscard]] void* native_stream_of(const Queue& queue);

[[nodiscard]] std::string_view scalar_cases_wgsl();
[[nodiscard]] std::string_view lane_cases_wgsl();

}  // namespace cingulum::parity
