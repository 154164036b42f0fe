// The tracker on WebGPU: WGSL kernels with the bits of the CPU's (webgpu_shader.hpp), a field that may lie in several
// bindings, points in pages that the host empties. Made by make_webgpu_tracker of tract/run/backends.hpp; the options
// here are for tests and measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/shader_library.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

// The result depends on none of them.
struct WebgpuTrackerOptions {
  std::uint64_t largest_binding_bytes = 0;  // 0: the adapter's
  std::uint32_t bindings = 0;               // of buffers, at least 8; 0: the adapter's
  std::uint32_t pages = 0;                  // of 32 points; 0: as the adapter likes
  std::uint32_t workgroups = 0;             // at work at the same time
  std::uint32_t budget = 0;                 // getter calls of a workgroup in one dispatch; 0: by time
  std::optional<LaneForm> lanes = {};       // none: subgroups where they are 32 wide
  std::optional<bool> specialised = {};     // none: when there are many seeds
  std::optional<bool> probes = {};          // ptt by ptt_probes.wgsl where it can; none: where lanes are subgroups
  std::optional<bool> int64 = {};           // none: where the adapter has them
};

[[nodiscard]] std::unique_ptr<Tracker> make_webgpu_tracker(Device& device, const WebgpuTrackerOptions& options);

}  // namespace cingulum
