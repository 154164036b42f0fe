// CUDA C++ compiled at run time: NVRTC's machine code, from the cache or new, loaded into the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "device/cuda/cuda_device.hpp"

namespace cingulum {

class CudaKernel final : public Kernel {
 public:
  struct LibraryDeleter {
    BlockingCalls* calls;
    void operator()(cudaLibrary_t library) const {
      calls->free_or_keep(
          "unloading a kernel",
          [](void* loaded) { static_cast<void>(cudaLibraryUnload(static_cast<cudaLibrary_t>(loaded))); }, library);
    }
  };
  using Library = std::unique_ptr<std::remove_pointer_t<cudaLibrary_t>, LibraryDeleter>;

  CudaKernel(CudaDevice& device, const KernelSource& source, CompilationReport report, Library library,
             cudaKernel_t kernel)
      : Kernel(device, source, std::move(report)), library_(std::move(library)), kernel_(kernel) {}

  // Compares the declared parameters with those of the compiled function.
  [[nodiscard]] Status check_parameters() const;
  // For launches of another kind (cooperative ones).
  [[nodiscard]] cudaKernel_t handle() const { return kernel_; }
  [[nodiscard]] Status launch(const LaunchShape& shape, std::span<const KernelArgument> arguments, cudaStream_t stream);

 private:
  Library library_;
  cudaKernel_t kernel_;
  std::atomic<std::uint32_t> shared_bytes_allowed_{48u << 10};  // more than this must be asked for once
};

// `cache` may be null.
[[nodiscard]] Result<std::unique_ptr<Kernel>> compile_cuda_kernel(
    CudaDevice& device, const KernelSource& source, const std::optional<std::filesystem::path>& nvrtc_path,
    const KernelCache* cache);

}  // namespace cingulum
