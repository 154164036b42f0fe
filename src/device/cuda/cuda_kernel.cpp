#include "device/cuda/cuda_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/log.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/cuda/nvrtc_library.hpp"

namespace cingulum {
namespace {

std::size_t size_of(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::i32:
    case ParameterKind::u32:
    case ParameterKind::f32: return 4;
    default: return 8;  // pointers and 64-bit scalars
  }
}

bool includes_headers(const KernelSource& source) {
  return std::any_of(source.options.begin(), source.options.end(), [](const std::string& option) {
    return option.starts_with("-I") || option.find("include") != std::string::npos;
  });
}

// An entry of the cache: the symbol, a zero, the machine code.
std::vector<std::byte> pack(const CompiledCuda& compiled) {
  std::vector<std::byte> bytes(compiled.symbol.size() + 1 + compiled.code.size());
  std::memcpy(bytes.data(), compiled.symbol.c_str(), compiled.symbol.size() + 1);
  std::memcpy(bytes.data() + compiled.symbol.size() + 1, compiled.code.data(), compiled.code.size());
  return bytes;
}

std::optional<CompiledCuda> unpack(const std::vector<std::byte>& bytes) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t length = strnlen(text, bytes.size());
  if (length == 0 || length + 1 >= bytes.size()) return std::nullopt;
  CompiledCuda compiled;
  compiled.symbol.assign(text, length);
  compiled.code.assign(bytes.begin() + static_cast<std::ptrdiff_t>(length + 1), bytes.end());
  return compiled;
}

}  // namespace

Result<std::unique_ptr<Kernel>> compile_cuda_kernel(CudaDevice& device, const KernelSource& source,
                                                    const std::optional<std::filesystem::path>& nvrtc_path,
                                                    const KernelCache* cache) {
  const auto start = std::chrono::steady_clock::now();
  const Result<NvrtcLibrary>& nvrtc = NvrtcLibrary::get(nvrtc_path);
  if (!nvrtc) {
    return fail(ErrorKind::unavailable, "compiling {}: no run-time compiler: {}", source.name, nvrtc.error().message());
  }
  const std::string& architecture = device.description().architecture;
  const KernelCacheKey key{.source = source.text,
                           .entry_point = source.name,
                           .options = nvrtc_options(source, architecture),
                           .architecture = architecture,
                           .driver = device.description().driver,
                           .toolkit = "nvrtc " + nvrtc->version};
  CompilationReport report;
  report.target = fmt::format("{} by nvrtc {}", architecture, nvrtc->version);

  // Headers that are included are not part of the key: such code is compiled every time.
  if (includes_headers(source)) cache = nullptr;
  std::optional<CompiledCuda> compiled;
  if (cache != nullptr) {
    if (const auto kept = cache->load(key)) compiled = unpack(*kept);
    report.from_cache = compiled.has_value();
  }
  if (!compiled) {
    CGL_TRY_ASSIGN(compiled, compile_cuda_source(*nvrtc, source, architecture));
    report.log = compiled->log;
    if (cache != nullptr) {
      if (const Status stored = cache->store(key, pack(*compiled)); !stored) log_warning("{}", stored.error());
    }
  }

  CGL_TRY(device.blocking_calls().check("loading a kernel"));
  CGL_TRY(device.make_current());
  cudaLibrary_t library = nullptr;
  CGL_TRY(cuda_status(cudaLibraryLoadData(&library, compiled->code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                      "device {}: loading kernel {}", device.id(), source.name));
  CudaKernel::Library owner(library, CudaKernel::LibraryDeleter{&device.blocking_calls()});
  cudaKernel_t kernel = nullptr;
  CGL_TRY(cuda_status(cudaLibraryGetKernel(&kernel, library, compiled->symbol.c_str()), "device {}: finding kernel {}",
                      device.id(), source.name));
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  auto result = std::make_unique<CudaKernel>(device, source, std::move(report), std::move(owner), kernel);
  CGL_TRY(result->check_parameters());
  return result;
}

Status CudaKernel::check_parameters() const {
  std::size_t count = 0;
  std::size_t offset = 0;
  std::size_t size = 0;
  while (cudaFuncGetParamInfo(kernel_, count, &offset, &size) == cudaSuccess) {
    if (count < parameters().size() && size != size_of(parameters()[count].kind)) {
      return fail(ErrorKind::invalid_argument,
                  "compiling {}: parameter '{}' is declared {} ({} bytes), the function's has {}", name(),
                  parameters()[count].name, parameter_kind_name(parameters()[count].kind),
                  size_of(parameters()[count].kind), size);
    }
    ++count;
  }
  static_cast<void>(cudaGetLastError());  // the end of the list is reported as an error
  if (count != parameters().size()) {
    return fail(ErrorKind::invalid_argument, "compiling {}: {} parameters are declared, the function takes {}", name(),
                parameters().size(), count);
  }
  return {};
}

Status CudaKernel::launch(const LaunchShape& shape, std::span<const KernelArgument> arguments, cudaStream_t stream) {
  std::vector<void*> pointers;
  pointers.reserve(arguments.size());
  std::vector<void*> values;
  values.reserve(arguments.size());
  for (const KernelArgument& argument : arguments) {
    values.push_back(const_cast<void*>(std::visit(
        [&](const auto& value) -> const void* {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, BufferArgument>) {
            pointers.push_back(static_cast<std::byte*>(value.buffer->device_pointer()) + value.offset);
            return &pointers.back();  // reserved: does not move
          } else {
            return &value;
          }
        },
        argument)));
  }
  if (shape.shared_bytes > shared_bytes_allowed_) {
    CGL_TRY(cuda_status(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shape.shared_bytes)),
                        "launching {}: asking for {} bytes of shared memory", name(), shape.shared_bytes));
    shared_bytes_allowed_ = shape.shared_bytes;
  }
  const dim3 grid{shape.grid[0], shape.grid[1], shape.grid[2]};
  const dim3 block{shape.block[0], shape.block[1], shape.block[2]};
  return cuda_status(cudaLaunchKernel(kernel_, grid, block, values.data(), shape.shared_bytes, stream),
                     "device {}: launching {}", device().id(), name());
}

}  // namespace cingulum
