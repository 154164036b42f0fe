// What a device is: plain records that the registry, the verbs and the planners read. No behaviour, no GPU headers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cingulum {

enum class Backend { cuda, webgpu, cpu };

[[nodiscard]] std::string_view backend_name(Backend backend);

// How a device keeps the bit contract.
enum class Determinism {
  exact,    // plain arithmetic is rounded once per operation (CPU, CUDA with our flags)
  guarded,  // the driver may contract and divides inexactly: kernels use the guarded forms of numerics/wgsl/exact.wgsl
};

[[nodiscard]] std::string_view determinism_name(Determinism determinism);

struct DeviceCapabilities {
  std::uint32_t compute_units = 0;  // cores, multiprocessors; 0 where the API does not say
  std::uint32_t subgroup_min = 1;   // threads that run in step; 1 where there are no such operations
  std::uint32_t subgroup_max = 1;
  std::uint64_t shared_bytes = 0;  // per block or workgroup
  std::uint32_t max_threads_per_block = 0;
  std::array<std::uint32_t, 3> max_block{};
  std::array<std::uint64_t, 3> max_grid{};
  std::uint64_t largest_buffer_bytes = 0;
  std::uint64_t largest_binding_bytes = 0;  // what one kernel argument may span
  std::uint32_t max_bindings = 0;           // storage buffers a kernel may take; 0: no limit
  bool software = false;                    // a GPU interface emulated on the CPU (lavapipe)
  bool shares_host_memory = false;          // device memory is host memory: copies are not needed
  bool pinned_host_memory = false;
  bool mapped_host_memory = false;  // pinned memory that kernels can address
  bool subgroups = false;
  bool peer_copies = false;
  bool persistent_kernels = false;
  bool direct_io = false;
  bool device_timestamps = false;  // Event::milliseconds_since measures on the device
  bool float64 = false;
  bool shader_int64 = false;  // 64-bit integers in WGSL, of which the specification has none
  bool runtime_compiler = false;
  std::string runtime_compiler_note;  // which compiler, or why there is none
  Determinism determinism = Determinism::exact;
};

// The DLPack device code of this device's memory; absent where DLPack 0.6 has none that others would understand.
struct DlpackDevice {
  std::int32_t type = 0;
  std::int32_t id = 0;
};

struct DeviceDescription {
  Backend backend = Backend::cpu;
  int index = 0;
  std::string id;  // "cuda:0", "webgpu:0", "cpu": what the argument `device` takes
  std::string name;
  std::string architecture;  // "sm_90", "avx2", "vulkan"
  std::string driver;        // driver and its version
  std::string kernel_code;   // where precompiled kernels came from: "sm_90 binary", "compiled by the driver from PTX"
  std::optional<DlpackDevice> dlpack;
  DeviceCapabilities capabilities;
};

struct MemoryState {
  std::uint64_t total_bytes = 0;
  std::optional<std::uint64_t> free_bytes;   // as the driver says; absent where the API does not say (WebGPU)
  std::uint64_t used_bytes = 0;              // by this process through this Device
  std::optional<std::uint64_t> limit_bytes;  // CINGULUM_MEMORY_LIMIT
};

// A reading of the sensors; absent members print as "n/a".
struct DeviceReading {
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<double> utilisation;         // 0 to 1
  std::optional<double> memory_utilisation;  // 0 to 1
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::string note;  // why members are absent, where they are
};

}  // namespace cingulum
