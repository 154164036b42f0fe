#include "device/webgpu/webgpu_device.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "device/host_memory.hpp"
#include "device/shader_library.hpp"
#include "device/webgpu/webgpu_kernel.hpp"
#include "device/webgpu/webgpu_queue.hpp"

namespace cingulum {
namespace {

std::string graphics_api_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan: return "vulkan";
    case WGPUBackendType_Metal: return "metal";
    case WGPUBackendType_D3D12: return "d3d12";
    case WGPUBackendType_OpenGL:
    case WGPUBackendType_OpenGLES: return "opengl";
    default: return "unknown";
  }
}

DeviceDescription describe(const WgpuLibrary& library, WGPUAdapter adapter, const WGPULimits& limits, int index) {
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  library.wgpuAdapterGetInfo(adapter, &info);
  DeviceDescription description;
  description.backend = Backend::webgpu;
  description.index = index;
  description.id = fmt::format("webgpu:{}", index);
  description.name = wgpu_text(info.device);
  description.architecture = graphics_api_name(info.backendType);
  description.driver = wgpu_text(info.description);
  description.kernel_code = "compiled by the driver from WGSL";
  DeviceCapabilities& can = description.capabilities;
  can.software = info.adapterType == WGPUAdapterType_CPU;
  can.subgroups = library.wgpuAdapterHasFeature(adapter, static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup)) != 0;
  can.shader_int64 =
      library.wgpuAdapterHasFeature(adapter, static_cast<WGPUFeatureName>(WGPUNativeFeature_ShaderInt64)) != 0;
  can.device_timestamps =
      library.wgpuAdapterHasFeature(adapter,
                                    static_cast<WGPUFeatureName>(WGPUNativeFeature_TimestampQueryInsideEncoders)) != 0;
  library.wgpuAdapterInfoFreeMembers(info);
  can.shared_bytes = limits.maxComputeWorkgroupStorageSize;
  can.max_threads_per_block = limits.maxComputeInvocationsPerWorkgroup;
  can.max_block = {limits.maxComputeWorkgroupSizeX, limits.maxComputeWorkgroupSizeY, limits.maxComputeWorkgroupSizeZ};
  can.max_grid.fill(limits.maxComputeWorkgroupsPerDimension);
  // Sizes are rounded up to whole words.
  can.largest_buffer_bytes = limits.maxBufferSize / 4 * 4;
  can.largest_binding_bytes = limits.maxStorageBufferBindingSize / 4 * 4;
  can.max_bindings = limits.maxStorageBuffersPerShaderStage;
  can.runtime_compiler = true;
  can.runtime_compiler_note = "WGSL by wgpu-native " + library.version;
  can.determinism = Determinism::guarded;
  return description;
}

struct ScopeError {
  WGPUErrorType type = WGPUErrorType_NoError;
  std::string message;
};

void receive_scope_error(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message, void* error,
                         void*) {
  auto& received = *static_cast<ScopeError*>(error);
  if (status == WGPUPopErrorScopeStatus_Success) received.type = type;
  received.message = wgpu_text(message);
}

ErrorKind kind_of(WGPUErrorType type) {
  return type == WGPUErrorType_OutOfMemory ? ErrorKind::out_of_memory : ErrorKind::device;
}

}  // namespace

Result<std::unique_ptr<WebgpuDevice>> WebgpuDevice::create(const WgpuLibrary& library, WgpuHandle<WGPUAdapter> adapter,
                                                           int index) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  if (library.wgpuAdapterGetLimits(adapter.get(), &limits) != WGPUStatus_Success) {
    return fail(ErrorKind::device, "the adapter does not tell its limits");
  }
  DeviceDescription description = describe(library, adapter.get(), limits, index);
  std::unique_ptr<WebgpuDevice> device(new WebgpuDevice(library, std::move(description), std::move(adapter)));
  CGL_TRY(device->open(limits));
  device->measure_subgroups();
  return device;
}

// Subgroups are used only where their lanes are known to follow the invocations in order; anything else, a probe that
// does not compile included, counts as no subgroups.
void WebgpuDevice::measure_subgroups() {
  DeviceCapabilities& can = mutable_description().capabilities;
  if (!can.subgroups) return;
  std::array<std::uint32_t, 3> words{~0u, 0, 0};  // smallest, largest, disorder
  const Status measured = [&]() -> Status {
    KernelSource source;
    source.name = "subgroup_probe";
    source.language = KernelLanguage::wgsl;
    source.text = embedded_shader("subgroup_probe.wgsl");
    source.parameters = {{"probe", ParameterKind::buffer_inout}};
    CGL_TRY_ASSIGN(const auto kernel, compile(source));
    CGL_TRY_ASSIGN(const auto queue, create_queue());
    CGL_TRY_ASSIGN(const auto buffer, allocate(sizeof words));
    CGL_TRY(upload(*queue, *buffer, std::span<const std::uint32_t>(words)));
    const std::array<KernelArgument, 1> arguments = {argument(*buffer)};
    CGL_TRY(queue->launch(*kernel, {{16, 1, 1}, {64, 1, 1}, 0}, arguments));
    CGL_TRY(download(*queue, std::span<std::uint32_t>(words), *buffer));
    return queue->synchronise();
  }();
  can.subgroups = measured && words[2] == 0 && words[0] > 1 && words[0] <= words[1];
  if (!can.subgroups) {
    log_debug("device {}: subgroups are not used: {}", id(),
              measured ? "their lanes do not follow the invocations" : measured.error().message());
    return;
  }
  can.subgroup_min = words[0];
  can.subgroup_max = words[1];
}

WebgpuDevice::~WebgpuDevice() {
  // Everything submitted must have ended before the objects it uses go.
  if (device_) library_.wgpuDevicePoll(device_.get(), 1, nullptr);
}

Status WebgpuDevice::open(const WGPULimits& limits) {
  std::vector<WGPUFeatureName> features;
  if (capabilities().shader_int64) features.push_back(static_cast<WGPUFeatureName>(WGPUNativeFeature_ShaderInt64));
  if (capabilities().subgroups) features.push_back(static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup));
  if (capabilities().device_timestamps) {
    features.push_back(WGPUFeatureName_TimestampQuery);
    features.push_back(static_cast<WGPUFeatureName>(WGPUNativeFeature_TimestampQueryInsideEncoders));
  }
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.label = wgpu_text("cingulum");
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = this;
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType type, WGPUStringView message,
                                                       void* self, void*) {
    auto* const device = static_cast<WebgpuDevice*>(self);
    device->keep_error(device->uncaptured_, kind_of(type), wgpu_text(message));
  };
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = this;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason reason,
                                                  WGPUStringView message, void* self, void*) {
    if (reason == WGPUDeviceLostReason_Destroyed) return;
    auto* const device = static_cast<WebgpuDevice*>(self);
    device->keep_error(device->lost_, ErrorKind::device, "the device is lost: " + wgpu_text(message));
  };

  struct Answer {
    WGPUDevice device = nullptr;
    std::string message;
  } answer;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = &answer;
  callback.callback = [](WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void* to, void*) {
    auto& received = *static_cast<Answer*>(to);
    if (status == WGPURequestDeviceStatus_Success) received.device = device;
    received.message = wgpu_text(message);
  };
  library_.wgpuAdapterRequestDevice(adapter_.get(), &descriptor, callback);
  if (answer.device == nullptr) return fail(ErrorKind::device, "{}: no device: {}", description().name, answer.message);
  device_ = {answer.device, library_.wgpuDeviceRelease};
  queue_ = {library_.wgpuDeviceGetQueue(answer.device), library_.wgpuQueueRelease};
  return {};
}

void WebgpuDevice::push_scopes() {
  // wgpu-native aborts on the third filter, "internal": such errors reach the uncaptured-error callback.
  library_.wgpuDevicePushErrorScope(device_.get(), WGPUErrorFilter_OutOfMemory);
  library_.wgpuDevicePushErrorScope(device_.get(), WGPUErrorFilter_Validation);
}

Status WebgpuDevice::pop_scopes(std::string_view what) {
  Status status;
  for (int scope = 0; scope < 2; ++scope) {
    ScopeError error;
    WGPUPopErrorScopeCallbackInfo callback = WGPU_POP_ERROR_SCOPE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.callback = receive_scope_error;
    callback.userdata1 = &error;
    library_.wgpuDevicePopErrorScope(device_.get(), callback);
    if (error.type != WGPUErrorType_NoError && status) {
      status = fail(kind_of(error.type), "device {}: {}: {}", id(), what, error.message);
    }
  }
  return status;
}

void WebgpuDevice::keep_error(std::optional<Error>& place, ErrorKind kind, std::string message) {
  const std::lock_guard lock(error_mutex_);
  if (!place) place.emplace(kind, fmt::format("device {}: {}", id(), message));
}

Status WebgpuDevice::check_not_lost() {
  const std::lock_guard lock(error_mutex_);
  if (!lost_) return {};
  return tl::make_unexpected(*lost_);
}

Status WebgpuDevice::take_uncaptured_error() {
  const std::lock_guard lock(error_mutex_);
  if (!uncaptured_) return {};
  Error error = std::move(*uncaptured_);
  uncaptured_.reset();
  return tl::make_unexpected(std::move(error));
}

Result<WgpuHandle<WGPUBuffer>> WebgpuDevice::create_buffer(std::uint64_t bytes, WGPUBufferUsage usage,
                                                           std::string_view what) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = bytes;
  descriptor.usage = usage;
  auto created = checked(what, [&] {
    return WgpuHandle<WGPUBuffer>(library_.wgpuDeviceCreateBuffer(device_.get(), &descriptor),
                                  library_.wgpuBufferRelease);
  });
  if (created && !*created) return fail(ErrorKind::out_of_memory, "device {}: {}: no buffer was made", id(), what);
  return created;
}

Result<std::unique_ptr<Queue>> WebgpuDevice::do_create_queue() {
  return make_webgpu_queue(*this);
}

Result<std::unique_ptr<Kernel>> WebgpuDevice::do_compile(const KernelSource& source) {
  return compile_wgsl(*this, source);
}

DeviceReading WebgpuDevice::read_sensors() {
  DeviceReading reading;
  reading.note = "WebGPU has no sensors";
  return reading;
}

Result<std::unique_ptr<Buffer>> WebgpuDevice::do_allocate(std::uint64_t bytes) {
  const std::uint64_t padded = (bytes + 3) / 4 * 4;
  auto buffer = create_buffer(padded, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
                              "allocating " + format_bytes(bytes));
  if (!buffer) {
    // Whatever wgpu calls it, a well-formed request that fails is a lack of memory.
    return fail(ErrorKind::out_of_memory, "{}; {} are in use by this program; ask for less at a time or use {} cpu",
                buffer.error().message(), format_bytes(budget().used_bytes() - bytes), argument_name("device"));
  }
  return std::make_unique<WebgpuBuffer>(*this, std::move(*buffer), bytes);
}

Result<std::unique_ptr<HostMemory>> WebgpuDevice::do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) {
  return allocate_ordinary_host_memory(*this, bytes, kind);
}

Result<Device::DriverMemory> WebgpuDevice::driver_memory() const {
  return DriverMemory{0, std::nullopt};
}

WebgpuBuffer::~WebgpuBuffer() {
  // Gives the memory back as soon as submitted work is done, instead of when the last reference inside wgpu goes.
  if (buffer_) static_cast<WebgpuDevice&>(device()).library().wgpuBufferDestroy(buffer_.get());
}

}  // namespace cingulum
