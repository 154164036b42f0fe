// Kernels that are compiled at run time, or, on the CPU, registered: what a kernel takes, its launch shape, and the
// check of arguments against parameters that is the same on every backend. The trackers' own kernels are compiled ahead
// and do not pass through here.
//
// How parameters reach the code:
//   CUDA C++  the parameters of the __global__ function, in order: a pointer per buffer, a value per scalar.
//   WGSL      buffers are @group(0) @binding(0), (1), ... in order of declaration (var<storage, read> for `in`,
//             var<storage, read_write> else); all scalars together are one uniform struct at the next binding, in
//             order, each of 4 bytes (i32, u32, f32).
//   native    the function reads them from its BlockContext by position.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

class Buffer;
class Device;

enum class KernelLanguage { cuda_cpp, wgsl, native };

[[nodiscard]] std::string_view kernel_language_name(KernelLanguage language);

enum class ParameterKind { buffer_in, buffer_out, buffer_inout, i32, u32, f32, i64, u64, f64 };

[[nodiscard]] std::string_view parameter_kind_name(ParameterKind kind);
[[nodiscard]] constexpr bool is_buffer(ParameterKind kind) {
  return kind <= ParameterKind::buffer_inout;
}

struct KernelParameter {
  std::string name;
  ParameterKind kind;
};

// A buffer, or a piece of one from `offset` on (a multiple of 256, the alignment every device accepts). A device that
// binds less than a buffer (WebGPU) is given the bytes of it that a launch touches.
struct BufferArgument {
  const Buffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0: all from the offset on
};

using KernelArgument =
    std::variant<BufferArgument, std::int32_t, std::uint32_t, float, std::int64_t, std::uint64_t, double>;

[[nodiscard]] inline KernelArgument argument(const Buffer& buffer, std::uint64_t offset = 0, std::uint64_t bytes = 0) {
  return BufferArgument{&buffer, offset, bytes};
}

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // blocks (workgroups)
  std::array<std::uint32_t, 3> block{1, 1,
                                     1};  // threads in a block; WGSL fixes them in the source, and both must agree
  std::uint32_t shared_bytes = 0;         // CUDA's dynamic shared memory, the CPU block's scratch
};

// What a native (CPU) kernel sees: one block of the grid.
class BlockContext {
 public:
  BlockContext(const LaunchShape& shape, std::array<std::uint32_t, 3> block_index,
               std::span<const KernelArgument> arguments, std::span<std::byte> scratch)
      : shape_(shape), block_index_(block_index), arguments_(arguments), scratch_(scratch) {}

  [[nodiscard]] const LaunchShape& shape() const { return shape_; }
  [[nodiscard]] const std::array<std::uint32_t, 3>& block_index() const { return block_index_; }
  // Index of this block's first thread and number of threads along x: the usual one-dimensional kernel.
  [[nodiscard]] std::uint64_t first_thread() const { return std::uint64_t{block_index_[0]} * shape_.block[0]; }
  template <class T>
  [[nodiscard]] T scalar(std::size_t position) const {
    return std::get<T>(arguments_[position]);
  }
  template <class T>
  [[nodiscard]] std::span<T> buffer(std::size_t position) const {
    const std::span<std::byte> bytes = buffer_bytes(position);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  [[nodiscard]] std::span<std::byte> scratch() const { return scratch_; }

 private:
  [[nodiscard]] std::span<std::byte> buffer_bytes(std::size_t position) const;

  const LaunchShape& shape_;
  std::array<std::uint32_t, 3> block_index_;
  std::span<const KernelArgument> arguments_;
  std::span<std::byte> scratch_;
};

using NativeKernel = void (*)(const BlockContext&);

struct KernelSource {
  std::string name;  // the entry point
  KernelLanguage language = KernelLanguage::native;
  std::string text;               // CUDA C++ or WGSL
  NativeKernel native = nullptr;  // for KernelLanguage::native
  std::vector<KernelParameter> parameters;
  // CUDA: compile with the roundings of the bit contract (no contraction, exact division and root). Our own kernels say
  // true; users' kernels have the compiler's defaults.
  bool contract_arithmetic = false;
  std::vector<std::string> options;  // further options of the CUDA compiler
  // WGSL: a text of our own whose indices stay in bounds and whose loops end, so that no checks of them are put in
  // (they would keep loops from being unrolled). Users' kernels are checked.
  bool trusted = false;
};

// What became of a source.
struct CompilationReport {
  bool from_cache = false;
  double milliseconds = 0;
  std::string target;  // "sm_90 by nvrtc 13.0", "wgpu-native", "native function"
  std::string log;     // warnings
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<KernelParameter>& parameters() const { return parameters_; }
  [[nodiscard]] const CompilationReport& report() const { return report_; }
  // The block that the source fixes (WGSL); zeros where any block will do.
  [[nodiscard]] const std::array<std::uint32_t, 3>& fixed_block() const { return fixed_block_; }

 protected:
  Kernel(Device& device, const KernelSource& source, CompilationReport report,
         std::array<std::uint32_t, 3> fixed_block = {})
      : device_(device),
        name_(source.name),
        parameters_(source.parameters),
        report_(std::move(report)),
        fixed_block_(fixed_block) {}

 private:
  Device& device_;
  std::string name_;
  std::vector<KernelParameter> parameters_;
  CompilationReport report_;
  std::array<std::uint32_t, 3> fixed_block_;
};

// The check that Queue::launch makes: count and kinds of arguments, buffers of the right device, shape within limits.
[[nodiscard]] Status check_launch(const Kernel& kernel, const LaunchShape& shape,
                                  std::span<const KernelArgument> arguments);

// The check that Device::compile makes before it compiles: a name, a text of the right language, distinct parameters.
[[nodiscard]] Status check_source(const Device& device, const KernelSource& source, KernelLanguage expected);

}  // namespace cingulum
