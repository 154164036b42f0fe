// Kernels in WGSL: compiled by wgpu-native, their bindings made from the declared parameters (device/kernel.hpp).
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "device/webgpu/webgpu_device.hpp"

namespace cingulum {

class WebgpuKernel final : public Kernel {
 public:
  struct Objects {
    std::shared_ptr<const WebgpuPipeline> pipeline;
    WgpuHandle<WGPUBuffer> scalars;  // the uniform block; none without scalar parameters
    std::uint64_t scalar_bytes = 0;
  };
  WebgpuKernel(WebgpuDevice& device, const KernelSource& source, CompilationReport report, Objects objects)
      : Kernel(device, source, std::move(report), objects.pipeline->workgroup),
        webgpu_(device),
        objects_(std::move(objects)) {}

  [[nodiscard]] WGPUComputePipeline pipeline() const { return objects_.pipeline->pipeline.get(); }
  // Held from bind() to the submission of the launch.
  [[nodiscard]] std::mutex& launch_mutex() { return launch_mutex_; }
  // Writes the scalars and binds the buffers. Refuses one buffer as both input and output, which WebGPU forbids.
  [[nodiscard]] Result<WgpuHandle<WGPUBindGroup>> bind(std::span<const KernelArgument> arguments);

 private:
  WebgpuDevice& webgpu_;
  Objects objects_;
  std::mutex launch_mutex_;
};

[[nodiscard]] Result<std::unique_ptr<Kernel>> compile_wgsl(WebgpuDevice& device, const KernelSource& source);

// Refuses text that would end the process inside wgpu-native: not UTF-8, or nested so deep that its parser runs out of
// stack. Exposed for its test.
[[nodiscard]] Status check_wgsl_text(std::string_view wgsl, std::string_view name);

// The literal numbers of @workgroup_size at the entry point `name`; exposed for its test.
[[nodiscard]] Result<std::array<std::uint32_t, 3>> find_workgroup_size(std::string_view wgsl, std::string_view name);

}  // namespace cingulum
