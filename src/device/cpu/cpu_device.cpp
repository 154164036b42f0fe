#include "device/cpu/cpu_device.hpp"

#include <dlpack/dlpack.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "device/host_memory.hpp"

namespace cingulum {
namespace {

// More than a kernel's block should need; a native kernel's scratch is ordinary memory.
constexpr std::uint64_t scratch_limit_bytes = 1u << 20;

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(Device& device, AlignedBytes memory, std::uint64_t bytes)
      : Buffer(device, bytes), memory_(std::move(memory)), charge_(device.budget(), bytes) {}
  [[nodiscard]] void* device_pointer() const override { return memory_.get(); }

 private:
  AlignedBytes memory_;
  BudgetCharge charge_;
};

class CpuEvent final : public Event {
 public:
  [[nodiscard]] Result<bool> done() override { return true; }
  [[nodiscard]] Status wait() override { return {}; }
  [[nodiscard]] Result<double> milliseconds_since(const Event& earlier) const override {
    const auto* other = dynamic_cast<const CpuEvent*>(&earlier);
    if (other == nullptr) return fail(ErrorKind::invalid_argument, "timing: the events belong to different devices");
    return std::chrono::duration<double, std::milli>(time_ - other->time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

class CpuKernel final : public Kernel {
 public:
  CpuKernel(Device& device, const KernelSource& source)
      : Kernel(device, source, {false, 0, "native function", {}}), function_(source.native) {}
  [[nodiscard]] NativeKernel function() const { return function_; }

 private:
  NativeKernel function_;
};

class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(CpuDevice& device) : Queue(device), cpu_(device) {}

  [[nodiscard]] Status wait_for(Event& event) override { return event.wait(); }
  [[nodiscard]] Status synchronise() override { return {}; }

 protected:
  Result<std::unique_ptr<Event>> do_record() override { return std::make_unique<CpuEvent>(); }
  Status do_upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) override {
    std::memcpy(address(to, offset), from.data(), from.size());
    return {};
  }
  Status do_download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset) override {
    std::memcpy(to.data(), address(from, offset), to.size());
    return {};
  }
  Status do_copy(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                 std::uint64_t bytes) override {
    std::memcpy(address(to, to_offset), address(from, from_offset), bytes);
    return {};
  }
  Status do_fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value) override {
    std::memset(address(to, offset), std::to_integer<int>(value), bytes);
    return {};
  }
  Status do_launch(Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments) override {
    const NativeKernel function = static_cast<CpuKernel&>(kernel).function();
    const std::uint64_t row = shape.grid[0];
    const std::uint64_t plane = row * shape.grid[1];
    try {
      cpu_.thread_pool().parallel_for(plane * shape.grid[2], 0, [&](std::size_t begin, std::size_t end) {
        std::vector<std::byte> scratch(shape.shared_bytes);
        for (std::uint64_t i = begin; i < end; ++i) {
          const std::array<std::uint32_t, 3> block{static_cast<std::uint32_t>(i % row),
                                                   static_cast<std::uint32_t>(i % plane / row),
                                                   static_cast<std::uint32_t>(i / plane)};
          function(BlockContext(shape, block, arguments, scratch));
        }
      });
      return {};
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return fail(ErrorKind::device, "device cpu: kernel {}: {}", kernel.name(), error.what());
    } catch (...) {
      return fail(ErrorKind::device, "device cpu: kernel {} threw something that is not an exception", kernel.name());
    }
  }

 private:
  static std::byte* address(const Buffer& buffer, std::uint64_t offset) {
    return static_cast<std::byte*>(buffer.device_pointer()) + offset;
  }

  CpuDevice& cpu_;
};

std::uint64_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) : 0;
}

// "MemAvailable: 123 kB" of /proc/meminfo; absent where there is no such file.
std::optional<std::uint64_t> available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  std::string rest;
  while (file >> key >> kibibytes && std::getline(file, rest)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "CPU";
}

std::string instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return "x86-64 avx2";
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "portable";
#endif
}

}  // namespace

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(int threads) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<CpuDevice>> {
    if (threads == 0) threads = default_thread_count();
    DeviceDescription description;
    description.backend = Backend::cpu;
    description.id = "cpu";
    description.name = processor_name();
    description.architecture = instruction_set();
    description.driver = "none";
    description.kernel_code = "ahead of time";
    description.dlpack = DlpackDevice{kDLCPU, 0};
    DeviceCapabilities& can = description.capabilities;
    can.compute_units = static_cast<std::uint32_t>(threads);
    can.shared_bytes = scratch_limit_bytes;
    can.max_threads_per_block = 1024;
    can.max_block = {1024, 1024, 1024};
    can.max_grid.fill(std::numeric_limits<std::uint32_t>::max());
    can.largest_buffer_bytes = physical_memory_bytes();
    can.largest_binding_bytes = can.largest_buffer_bytes;
    can.shares_host_memory = true;
    can.pinned_host_memory = true;
    can.mapped_host_memory = true;
    can.device_timestamps = true;
    can.float64 = true;
    can.runtime_compiler_note = "kernels are registered functions";
    can.determinism = Determinism::exact;
    CGL_TRY_ASSIGN(auto pool, ThreadPool::create(threads));
    return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(description), std::move(pool)));
  });
}

Result<std::unique_ptr<Queue>> CpuDevice::do_create_queue() {
  return std::make_unique<CpuQueue>(*this);
}

Result<std::unique_ptr<Kernel>> CpuDevice::do_compile(const KernelSource& source) {
  return std::make_unique<CpuKernel>(*this, source);
}

DeviceReading CpuDevice::read_sensors() {
  DeviceReading reading;
  reading.memory_total_bytes = physical_memory_bytes();
  if (const auto available = available_memory_bytes()) {
    reading.memory_used_bytes = *reading.memory_total_bytes - *available;
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1) reading.utilisation = std::min(1.0, load / default_thread_count());
  reading.note = "utilisation is the one-minute load average";
  return reading;
}

Result<std::unique_ptr<Buffer>> CpuDevice::do_allocate(std::uint64_t bytes) {
  AlignedBytes memory = allocate_aligned(bytes);
  if (memory == nullptr) {
    return fail(ErrorKind::out_of_memory, "device cpu: {} needed, {} free; process less at a time", format_bytes(bytes),
                format_bytes(available_memory_bytes().value_or(0)));
  }
  return std::make_unique<CpuBuffer>(*this, std::move(memory), bytes);
}

Result<std::unique_ptr<HostMemory>> CpuDevice::do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) {
  // Every host memory is as good as pinned to a device that is the host, and kernels address it as it is.
  return allocate_ordinary_host_memory(*this, bytes, kind);
}

Result<Device::DriverMemory> CpuDevice::driver_memory() const {
  return DriverMemory{physical_memory_bytes(), available_memory_bytes()};
}

}  // namespace cingulum
