#include "device/kernel.hpp"

#include <algorithm>
#include <set>

#include "base/quantity.hpp"
#include "device/device.hpp"

namespace cingulum {
namespace {

// The alignment at which every backend accepts a buffer that starts inside another: WebGPU's default limit.
constexpr std::uint64_t buffer_offset_alignment = 256;
constexpr std::uint64_t most_blocks = std::uint64_t{1} << 62;

ParameterKind kind_of(const KernelArgument& argument) {
  // Order of the variant's members after the buffer.
  constexpr std::array scalar_kinds{ParameterKind::i32, ParameterKind::u32, ParameterKind::f32,
                                    ParameterKind::i64, ParameterKind::u64, ParameterKind::f64};
  return scalar_kinds[argument.index() - 1];
}

Status check_buffer(const Kernel& kernel, const KernelParameter& parameter, const BufferArgument& argument) {
  if (argument.buffer == nullptr) {
    return fail(ErrorKind::invalid_argument, "launching {}: argument '{}' is a null buffer", kernel.name(),
                parameter.name);
  }
  if (&argument.buffer->device() != &kernel.device()) {
    return fail(ErrorKind::invalid_argument, "launching {}: argument '{}' lies on {}, the kernel runs on {}",
                kernel.name(), parameter.name, argument.buffer->device().id(), kernel.device().id());
  }
  if (argument.offset % buffer_offset_alignment != 0 || argument.offset >= argument.buffer->bytes()) {
    return fail(ErrorKind::invalid_argument,
                "launching {}: argument '{}' starts at byte {} of {}; an offset is a multiple of {} inside the buffer",
                kernel.name(), parameter.name, argument.offset, argument.buffer->bytes(), buffer_offset_alignment);
  }
  const std::uint64_t largest = kernel.device().capabilities().largest_binding_bytes;
  const std::uint64_t rest = argument.buffer->bytes() - argument.offset;
  if (argument.bytes > rest) {
    return fail(ErrorKind::invalid_argument, "launching {}: argument '{}' spans {} bytes from byte {} of {}",
                kernel.name(), parameter.name, argument.bytes, argument.offset, argument.buffer->bytes());
  }
  const std::uint64_t bytes = argument.bytes == 0 ? rest : argument.bytes;
  if (largest != 0 && bytes > largest) {
    return fail(ErrorKind::invalid_argument,
                "launching {}: argument '{}' spans {}, {} binds at most {}; split the buffer", kernel.name(),
                parameter.name, format_bytes(bytes), kernel.device().id(), format_bytes(largest));
  }
  return {};
}

Status check_shape(const Kernel& kernel, const LaunchShape& shape) {
  const DeviceCapabilities& can = kernel.device().capabilities();
  std::uint64_t threads = 1;
  std::uint64_t blocks = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] == 0 || shape.block[axis] == 0) {
      return fail(ErrorKind::invalid_argument, "launching {}: grid and block need at least one along each axis",
                  kernel.name());
    }
    if (can.max_grid[axis] != 0 && shape.grid[axis] > can.max_grid[axis]) {
      return fail(ErrorKind::invalid_argument, "launching {}: {} blocks along axis {}, {} allows {}", kernel.name(),
                  shape.grid[axis], axis, kernel.device().id(), can.max_grid[axis]);
    }
    if (can.max_block[axis] != 0 && shape.block[axis] > can.max_block[axis]) {
      return fail(ErrorKind::invalid_argument, "launching {}: {} threads along axis {}, {} allows {}", kernel.name(),
                  shape.block[axis], axis, kernel.device().id(), can.max_block[axis]);
    }
    threads *= shape.block[axis];
    if (blocks > most_blocks / shape.grid[axis]) {
      return fail(ErrorKind::invalid_argument,
                  "launching {}: a grid of {} x {} x {} blocks is more than can be counted", kernel.name(),
                  shape.grid[0], shape.grid[1], shape.grid[2]);
    }
    blocks *= shape.grid[axis];
  }
  if (can.max_threads_per_block != 0 && threads > can.max_threads_per_block) {
    return fail(ErrorKind::invalid_argument, "launching {}: {} threads in a block, {} allows {}", kernel.name(),
                threads, kernel.device().id(), can.max_threads_per_block);
  }
  if (kernel.fixed_block()[0] != 0 && kernel.fixed_block() != shape.block) {
    const auto& fixed = kernel.fixed_block();
    return fail(ErrorKind::invalid_argument,
                "launching {}: a block of {} x {} x {} was asked for, the source says @workgroup_size({}, {}, {})",
                kernel.name(), shape.block[0], shape.block[1], shape.block[2], fixed[0], fixed[1], fixed[2]);
  }
  if (shape.shared_bytes > can.shared_bytes) {
    return fail(ErrorKind::invalid_argument, "launching {}: {} of shared memory, {} allows {}", kernel.name(),
                format_bytes(shape.shared_bytes), kernel.device().id(), format_bytes(can.shared_bytes));
  }
  return {};
}

}  // namespace

std::string_view kernel_language_name(KernelLanguage language) {
  switch (language) {
    case KernelLanguage::cuda_cpp: return "CUDA C++";
    case KernelLanguage::wgsl: return "WGSL";
    case KernelLanguage::native: return "native";
  }
  return "unknown";
}

std::string_view parameter_kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::buffer_in: return "input buffer";
    case ParameterKind::buffer_out: return "output buffer";
    case ParameterKind::buffer_inout: return "input and output buffer";
    case ParameterKind::i32: return "i32";
    case ParameterKind::u32: return "u32";
    case ParameterKind::f32: return "f32";
    case ParameterKind::i64: return "i64";
    case ParameterKind::u64: return "u64";
    case ParameterKind::f64: return "f64";
  }
  return "unknown";
}

std::span<std::byte> BlockContext::buffer_bytes(std::size_t position) const {
  const auto& argument = std::get<BufferArgument>(arguments_[position]);
  auto* start = static_cast<std::byte*>(argument.buffer->device_pointer()) + argument.offset;
  return {start, argument.bytes != 0 ? argument.bytes : argument.buffer->bytes() - argument.offset};
}

Status check_launch(const Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments) {
  const auto& parameters = kernel.parameters();
  if (arguments.size() != parameters.size()) {
    return fail(ErrorKind::invalid_argument, "launching {}: {} arguments were given, it takes {}", kernel.name(),
                arguments.size(), parameters.size());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto* buffer = std::get_if<BufferArgument>(&arguments[i]);
    if (is_buffer(parameters[i].kind)) {
      if (buffer == nullptr) {
        return fail(ErrorKind::invalid_argument, "launching {}: argument '{}' is a {}, the kernel takes an {}",
                    kernel.name(), parameters[i].name, parameter_kind_name(kind_of(arguments[i])),
                    parameter_kind_name(parameters[i].kind));
      }
      CGL_TRY(check_buffer(kernel, parameters[i], *buffer));
    } else if (buffer != nullptr || kind_of(arguments[i]) != parameters[i].kind) {
      return fail(ErrorKind::invalid_argument, "launching {}: argument '{}' is a {}, the kernel takes {}",
                  kernel.name(), parameters[i].name,
                  buffer != nullptr ? "buffer" : parameter_kind_name(kind_of(arguments[i])),
                  parameter_kind_name(parameters[i].kind));
    }
  }
  return check_shape(kernel, shape);
}

Status check_source(const Device& device, const KernelSource& source, KernelLanguage expected) {
  if (source.name.empty()) return fail(ErrorKind::invalid_argument, "device {}: a kernel needs a name", device.id());
  if (source.language != expected) {
    return fail(ErrorKind::invalid_argument, "compiling {}: {} takes {}, not {}", source.name, device.id(),
                kernel_language_name(expected), kernel_language_name(source.language));
  }
  if (expected == KernelLanguage::native ? source.native == nullptr : source.text.empty()) {
    return fail(ErrorKind::invalid_argument, "compiling {}: there is no {} code", source.name,
                kernel_language_name(expected));
  }
  std::set<std::string_view> names;
  std::uint32_t buffers = 0;
  for (const KernelParameter& parameter : source.parameters) {
    if (!names.insert(parameter.name).second) {
      return fail(ErrorKind::invalid_argument, "compiling {}: two parameters are named '{}'", source.name,
                  parameter.name);
    }
    if (is_buffer(parameter.kind)) ++buffers;
  }
  const std::uint32_t most = device.capabilities().max_bindings;
  if (most != 0 && buffers > most) {
    return fail(ErrorKind::invalid_argument, "compiling {}: it takes {} buffers, {} binds at most {}", source.name,
                buffers, device.id(), most);
  }
  return {};
}

}  // namespace cingulum
