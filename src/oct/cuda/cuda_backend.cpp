// The OCT kernels on CUDA.
#include <array>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "oct/cuda/oct_launch.hpp"
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {
namespace {

// In the order of OctKernel.
using Launcher = cudaError_t (*)(const CudaCall& call);
#define CGL_POINTER(name) launch_##name,
constexpr std::array<Launcher, oct_kernel_count> launchers = {CGL_OCT_KERNELS(CGL_POINTER)};
#undef CGL_POINTER

class CudaOctBackend final : public KernelBackend {
 public:
  explicit CudaOctBackend(CudaDevice& device) : device_(device) {}

  [[nodiscard]] Status launch(Queue& queue, const KernelLaunch& launch) override {
    CGL_TRY(device_.make_current());
    const Launcher launcher = launchers[static_cast<std::size_t>(launch.kernel)];
    return cuda_status(launcher({pointers_of(launch), launch.threads, cuda_stream_of(queue)}), "device {}: kernel {}",
                       device_.id(), kernel_facts(launch.kernel).name);
  }

 private:
  CudaDevice& device_;
};

}  // namespace

Result<std::unique_ptr<KernelBackend>> make_cuda_oct_backend(Device& device) {
  return std::make_unique<CudaOctBackend>(static_cast<CudaDevice&>(device));
}

}  // namespace cingulum::oct
