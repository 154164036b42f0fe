// The shim of wgpu-native: its functions as a table, found by dlopen. Says in one place whether the library is there,
// of the version whose headers we were built with, and complete. Only files of device/webgpu and tract/webgpu include
// it.
#pragma once

#include <webgpu.h>
#include <wgpu.h>

#include <string>

#include "base/result.hpp"
#include "device/shared_library.hpp"

// Every function of wgpu-native that Cingulum calls.
// clang-format off
#define CGL_WGPU_FUNCTIONS(X) \
  X(wgpuGetVersion) \
  X(wgpuSetLogCallback) \
  X(wgpuSetLogLevel) \
  X(wgpuCreateInstance) \
  X(wgpuInstanceRelease) \
  X(wgpuInstanceEnumerateAdapters) \
  X(wgpuAdapterGetInfo) \
  X(wgpuAdapterInfoFreeMembers) \
  X(wgpuAdapterGetLimits) \
  X(wgpuAdapterHasFeature) \
  X(wgpuAdapterRequestDevice) \
  X(wgpuAdapterRelease) \
  X(wgpuDeviceGetQueue) \
  X(wgpuDeviceRelease) \
  X(wgpuDeviceCreateBuffer) \
  X(wgpuDeviceCreateShaderModule) \
  X(wgpuDeviceCreateShaderModuleTrusted) \
  X(wgpuDeviceCreateComputePipeline) \
  X(wgpuDeviceCreateBindGroupLayout) \
  X(wgpuDeviceCreatePipelineLayout) \
  X(wgpuDeviceCreateBindGroup) \
  X(wgpuDeviceCreateCommandEncoder) \
  X(wgpuDeviceCreateQuerySet) \
  X(wgpuDevicePushErrorScope) \
  X(wgpuDevicePopErrorScope) \
  X(wgpuDevicePoll) \
  X(wgpuQueueWriteBuffer) \
  X(wgpuQueueSubmitForIndex) \
  X(wgpuQueueGetTimestampPeriod) \
  X(wgpuQueueOnSubmittedWorkDone) \
  X(wgpuQueueRelease) \
  X(wgpuBufferMapAsync) \
  X(wgpuBufferGetConstMappedRange) \
  X(wgpuBufferUnmap) \
  X(wgpuBufferDestroy) \
  X(wgpuBufferRelease) \
  X(wgpuCommandEncoderCopyBufferToBuffer) \
  X(wgpuCommandEncoderClearBuffer) \
  X(wgpuCommandEncoderWriteTimestamp) \
  X(wgpuCommandEncoderResolveQuerySet) \
  X(wgpuCommandEncoderBeginComputePass) \
  X(wgpuCommandEncoderFinish) \
  X(wgpuCommandEncoderRelease) \
  X(wgpuComputePassEncoderSetPipeline) \
  X(wgpuComputePassEncoderSetBindGroup) \
  X(wgpuComputePassEncoderDispatchWorkgroups) \
  X(wgpuComputePassEncoderEnd) \
  X(wgpuComputePassEncoderRelease) \
  X(wgpuCommandBufferRelease) \
  X(wgpuShaderModuleRelease) \
  X(wgpuComputePipelineRelease) \
  X(wgpuPipelineLayoutRelease) \
  X(wgpuBindGroupLayoutRelease) \
  X(wgpuBindGroupRelease) \
  X(wgpuQuerySetRelease)
// clang-format on

namespace cingulum {

struct WgpuLibrary {
#define CGL_DECLARE(name) decltype(::name)* name = nullptr;
  CGL_WGPU_FUNCTIONS(CGL_DECLARE)
#undef CGL_DECLARE

  std::string path;
  std::string version;  // "29.0.1.0"

  // Opened on the first call, once for the process; the failure is kept as well. Later calls ignore `override_path`.
  [[nodiscard]] static const Result<WgpuLibrary>& get(const std::optional<std::filesystem::path>& override_path);
};

// Text for and from the C API.
[[nodiscard]] inline WGPUStringView wgpu_text(std::string_view text) {
  return {text.data(), text.size()};
}
[[nodiscard]] inline std::string wgpu_text(WGPUStringView text) {
  if (text.data == nullptr) return {};
  return text.length == WGPU_STRLEN ? std::string(text.data) : std::string(text.data, text.length);
}

}  // namespace cingulum
