// Kernels in WGSL: compiled by wgpu-native, their bindings made from the declared parameters (device/kernel.hpp).
#pragma once

#include <memory>
#include <span>

#include "device/webgpu/webgpu_device.hpp"

namespace cingulum {

class WebgpuKernel final : public Kernel {
 public:
  struct Objects {
    WgpuHandle<WGPUBindGroupLayout> layout;
    WgpuHandle<WGPUComputePipeline> pipeline;
    WgpuHandle<WGPUBuffer> scalars;  // the uniform block; none without scalar parameters
    std::uint64_t scalar_bytes = 0;
  };
  WebgpuKernel(WebgpuDevice& device, const KernelSource& source, CompilationReport report,
               std::array<std::uint32_t, 3> fixed_block, Objects objects)
      : Kernel(device, source, std::move(report), fixed_block), webgpu_(device), objects_(std::move(objects)) {}

  [[nodiscard]] WGPUComputePipeline pipeline() const { return objects_.pipeline.get(); }
  // Writes the scalars (in queue order, so one block serves all launches) and binds the buffers.
  [[nodiscard]] Result<WgpuHandle<WGPUBindGroup>> bind(std::span<const KernelArgument> arguments);

 private:
  WebgpuDevice& webgpu_;
  Objects objects_;
};

[[nodiscard]] Result<std::unique_ptr<Kernel>> compile_wgsl(WebgpuDevice& device, const KernelSource& source);

// The literal numbers of @workgroup_size at the entry point `name`; exposed for its test.
[[nodiscard]] Result<std::array<std::uint32_t, 3>> find_workgroup_size(std::string_view wgsl, std::string_view name);

}  // namespace cingulum
