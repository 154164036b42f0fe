#include "device/cuda/cuda_device.hpp"

#include <dlpack/dlpack.h>

#include "base/quantity.hpp"
#include "device/cuda/ahead_kernels.hpp"
#include "device/cuda/cuda_kernel.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/cuda/nvrtc_library.hpp"
#include "device/host_memory.hpp"
#include "device/nvml_library.hpp"

namespace cingulum {
namespace {

// Unified addressing: cudaFree finds the device by the pointer.
struct DeviceDeleter {
  BlockingCalls* calls;
  void operator()(void* memory) const {
    calls->free_or_keep(
        "freeing device memory", [](void* address) { static_cast<void>(cudaFree(address)); }, memory);
  }
};
using DeviceMemory = std::unique_ptr<void, DeviceDeleter>;

struct HostDeleter {
  BlockingCalls* calls;
  void operator()(void* memory) const {
    calls->free_or_keep(
        "freeing pinned memory", [](void* address) { static_cast<void>(cudaFreeHost(address)); }, memory);
  }
};
using PinnedMemory = std::unique_ptr<void, HostDeleter>;

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(CudaDevice& device, DeviceMemory memory, std::uint64_t bytes)
      : Buffer(device, bytes), memory_(std::move(memory)), charge_(device.budget(), bytes) {}
  [[nodiscard]] void* device_pointer() const override { return memory_.get(); }

 private:
  DeviceMemory memory_;
  BudgetCharge charge_;
};

class CudaHostMemory final : public HostMemory {
 public:
  CudaHostMemory(const Device& device, PinnedMemory memory, std::uint64_t bytes, HostMemoryKind kind,
                 void* device_address)
      : HostMemory(device, {static_cast<std::byte*>(memory.get()), bytes}, kind),
        memory_(std::move(memory)),
        device_address_(device_address) {}
  [[nodiscard]] void* device_pointer() const override { return device_address_; }

 private:
  PinnedMemory memory_;
  void* device_address_;
};

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return value;
}

bool can_access_peer(int ordinal, int other) {
  int possible = 0;
  if (cudaDeviceCanAccessPeer(&possible, ordinal, other) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  return possible != 0;
}

// How kernels that were compiled ahead came to run on the current device.
Result<std::string> describe_kernel_code() {
  cudaFuncAttributes attributes{};
  CGL_TRY(cuda_status(read_probe_kernel_attributes(attributes), "looking at the compiled kernels"));
  // The build's list, "75-virtual,90-real"; an entry without a suffix is both. Machine code that was compiled ahead is
  // of a real architecture in it and of that architecture's own PTX.
  constexpr std::string_view compiled = CINGULUM_CUDA_ARCHS_TEXT;
  const std::string number = std::to_string(attributes.binaryVersion);
  bool ahead = false;
  for (std::size_t at = compiled.find(number); at != std::string_view::npos; at = compiled.find(number, at + 1)) {
    ahead = ahead || !compiled.substr(at + number.size()).starts_with("-virtual");
  }
  if (ahead && attributes.ptxVersion == attributes.binaryVersion) return fmt::format("sm_{} binary", number);
  return fmt::format("compiled by the driver for sm_{} from PTX of compute_{}", number, attributes.ptxVersion);
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(int ordinal, int driver_version, const ProbeOptions& options) {
  CGL_TRY(cuda_status(cudaSetDevice(ordinal), "device cuda:{}: opening", ordinal));
  cudaDeviceProp properties{};
  CGL_TRY(cuda_status(cudaGetDeviceProperties(&properties, ordinal), "device cuda:{}: opening", ordinal));
  int runtime_version = 0;
  CGL_TRY(cuda_status(cudaRuntimeGetVersion(&runtime_version), "device cuda:{}: opening", ordinal));

  DeviceDescription description;
  description.backend = Backend::cuda;
  description.index = ordinal;
  description.id = fmt::format("cuda:{}", ordinal);
  description.name = properties.name;
  description.architecture = fmt::format("sm_{}{}", properties.major, properties.minor);
  description.driver =
      fmt::format("CUDA driver {}, runtime {}", cuda_version_text(driver_version), cuda_version_text(runtime_version));
  CGL_TRY_ASSIGN(description.kernel_code, describe_kernel_code());
  description.dlpack = DlpackDevice{kDLCUDA, ordinal};
  DeviceCapabilities& can = description.capabilities;
  can.compute_units = static_cast<std::uint32_t>(properties.multiProcessorCount);
  can.subgroup_min = can.subgroup_max = static_cast<std::uint32_t>(properties.warpSize);
  can.subgroups = true;
  can.shared_bytes = properties.sharedMemPerBlockOptin;
  can.max_threads_per_block = static_cast<std::uint32_t>(properties.maxThreadsPerBlock);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    can.max_block[axis] = static_cast<std::uint32_t>(properties.maxThreadsDim[axis]);
    can.max_grid[axis] = static_cast<std::uint64_t>(properties.maxGridSize[axis]);
  }
  can.largest_buffer_bytes = properties.totalGlobalMem;
  can.largest_binding_bytes = properties.totalGlobalMem;
  can.shares_host_memory = false;
  can.pinned_host_memory = true;
  can.mapped_host_memory = properties.canMapHostMemory != 0;
  can.device_timestamps = true;
  can.float64 = true;
  int count = 0;
  CGL_TRY(cuda_status(cudaGetDeviceCount(&count), "device cuda:{}: opening", ordinal));
  for (int other = 0; other < count; ++other) {
    if (other != ordinal && can_access_peer(ordinal, other)) can.peer_copies = true;
  }
  // A driver that ends long kernels (a display is attached) makes persistent ones impossible.
  can.persistent_kernels = attribute(cudaDevAttrKernelExecTimeout, ordinal) == 0;
  can.determinism = Determinism::exact;
  const Result<NvrtcLibrary>& nvrtc = NvrtcLibrary::get(options.nvrtc_library);
  can.runtime_compiler = nvrtc.has_value();
  can.runtime_compiler_note = nvrtc ? "CUDA C++ by nvrtc " + nvrtc->version : nvrtc.error().message();

  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(description), options));
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal) == cudaSuccess) device->bus_id_ = bus_id;
  return device;
}

Status CudaDevice::make_current() const {
  return cuda_status(cudaSetDevice(ordinal()), "device {}: making it current", id());
}

Status CudaDevice::synchronise_device() const {
  CGL_TRY(blocking_calls().check("synchronising the device"));
  CGL_TRY(make_current());
  return cuda_status(cudaDeviceSynchronize(), "device {}: synchronising", id());
}

Result<std::unique_ptr<Queue>> CudaDevice::do_create_queue() {
  return make_cuda_queue(*this);
}

Result<std::unique_ptr<Kernel>> CudaDevice::do_compile(const KernelSource& source) {
  return compile_cuda_kernel(*this, source, options_.nvrtc_library, cache_ ? &*cache_ : nullptr);
}

DeviceReading CudaDevice::read_sensors() {
  return read_nvml_sensors(bus_id_, options_.nvml_library);
}

bool CudaDevice::can_copy_directly_to(const Device& other) const {
  if (&other == this) return true;
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (peer == nullptr) return false;
  return can_access_peer(ordinal(), peer->ordinal());
}

Result<std::unique_ptr<Buffer>> CudaDevice::do_allocate(std::uint64_t bytes) {
  CGL_TRY(make_current());
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    const auto driver = driver_memory();
    return fail(ErrorKind::out_of_memory, "device {}: {} needed, {} free of {}; ask for less at a time or use {} cpu",
                id(), format_bytes(bytes), driver ? format_bytes(driver->free_bytes.value_or(0)) : "an unknown amount",
                driver ? format_bytes(driver->total_bytes) : "an unknown amount", argument_name("device"));
  }
  CGL_TRY(cuda_status(code, "device {}: allocating {}", id(), format_bytes(bytes)));
  return std::make_unique<CudaBuffer>(*this, DeviceMemory(memory, DeviceDeleter{&blocking_calls()}), bytes);
}

Result<std::unique_ptr<HostMemory>> CudaDevice::do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) {
  if (kind == HostMemoryKind::pageable) return allocate_ordinary_host_memory(*this, bytes, kind);
  CGL_TRY(make_current());
  const bool mapped = kind == HostMemoryKind::mapped;
  const unsigned flags = cudaHostAllocPortable | (mapped ? cudaHostAllocMapped : cudaHostAllocDefault);
  void* address = nullptr;
  const cudaError_t code = cudaHostAlloc(&address, bytes, flags);
  PinnedMemory memory(address, HostDeleter{&blocking_calls()});
  CGL_TRY(cuda_status(code, "device {}: {} of {} host memory; ask for less at a time or for pageable memory", id(),
                      format_bytes(bytes), host_memory_kind_name(kind)));
  void* device_address = nullptr;
  if (mapped) {
    CGL_TRY(cuda_status(cudaHostGetDevicePointer(&device_address, address, 0), "device {}: mapping host memory", id()));
  }
  return std::make_unique<CudaHostMemory>(*this, std::move(memory), bytes, kind, device_address);
}

Result<Device::DriverMemory> CudaDevice::driver_memory() const {
  CGL_TRY(make_current());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  CGL_TRY(cuda_status(cudaMemGetInfo(&free_bytes, &total_bytes), "device {}: reading its memory", id()));
  return DriverMemory{total_bytes, free_bytes};
}

}  // namespace cingulum
