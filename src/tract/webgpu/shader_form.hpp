// Which WGSL runs a plan on a field of an adapter, and in which form: the one place that decides it. Called by the
// WebGPU tracker, and by tests without an adapter. Reads the counts of the input alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "tract/kernel/views.hpp"
#include "tract/webgpu/webgpu_shader.hpp"
#include "tract/webgpu/webgpu_tracker.hpp"

namespace cingulum {

// What every WebGPU device has.
constexpr std::uint32_t guaranteed_workgroup_bytes = 16384;

// Mesa's software adapter leaves every loop of an invocation once all of them together have gone round 65535 times
// (the limiter of its compiler), without a word. A dispatch there must stay below.
constexpr std::uint64_t most_software_rounds = 60000;

// No fewer than the rounds of all loops in one getter call.
[[nodiscard]] std::uint64_t rounds_of_a_call(const TrackingInput& input, bool probes);

[[nodiscard]] bool subgroups_are_32_wide(const DeviceCapabilities& can);

// What decides besides plan, field, options and adapter.
struct ShaderSituation {
  bool starts_are_unit = true;  // probe_words.hpp
  bool in_bricks = false;
  std::uint32_t field_pieces = 1;  // bindings of the field
  std::uint64_t largest_binding_bytes = 0;
  std::uint64_t seeds = 0;
  bool probe_tables_there = true;  // false: there was no memory for them, or they were not wanted
};

[[nodiscard]] ShaderForm choose_shader_form(const TrackingInput& input, const WebgpuTrackerOptions& options,
                                            const DeviceCapabilities& can, const ShaderSituation& situation);

}  // namespace cingulum
