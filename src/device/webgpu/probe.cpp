// Finds the adapters of wgpu-native and opens a device on each.
#include <vector>

#include "device/backends.hpp"
#include "device/webgpu/webgpu_device.hpp"

namespace cingulum {

BackendReport probe_webgpu(const ProbeOptions& options) {
  BackendReport report{.backend = Backend::webgpu, .absent_reason = {}, .library = {}, .devices = {}};
  const Result<WgpuLibrary>& library = WgpuLibrary::get(options.wgpu_library);
  if (!library) {
    report.absent_reason = library.error().message();
    return report;
  }
  report.library = fmt::format("{} (wgpu-native {})", library->path, library->version);

  // OpenGL is left out: it lacks what the kernels need, and would list each GPU twice.
  WGPUInstanceExtras extras{};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Primary;
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &extras.chain;
  const WgpuHandle<WGPUInstance> instance(library->wgpuCreateInstance(&descriptor), library->wgpuInstanceRelease);
  if (!instance) {
    report.absent_reason = fmt::format("{}: no instance could be made", library->path);
    return report;
  }
  WGPUInstanceEnumerateAdapterOptions which{};
  which.backends = WGPUInstanceBackend_Primary;
  std::vector<WGPUAdapter> adapters(library->wgpuInstanceEnumerateAdapters(instance.get(), &which, nullptr));
  adapters.resize(library->wgpuInstanceEnumerateAdapters(instance.get(), &which, adapters.data()));
  for (WGPUAdapter adapter : adapters) {
    auto device =
        WebgpuDevice::create(*library, {adapter, library->wgpuAdapterRelease}, static_cast<int>(report.devices.size()));
    if (device) {
      report.devices.push_back(std::move(*device));
    } else {
      report.failures.push_back(device.error().message());
    }
  }
  if (adapters.empty()) report.absent_reason = "wgpu-native finds no adapter (no Vulkan or Metal driver)";
  if (report.devices.empty() && !report.failures.empty()) report.absent_reason = report.failures.front();
  return report;
}

}  // namespace cingulum
