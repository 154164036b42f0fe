// The OCT kernels on CUDA.
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "oct/cuda/oct_launch.hpp"
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {
namespace {

cudaError_t launch_kernel(OctKernel kernel, const CudaCall& call) {
  switch (kernel) {
    case OctKernel::filter_axis: return launch_filter_axis(call);
    case OctKernel::spline_axis: return launch_spline_axis(call);
    case OctKernel::log_box: return launch_log_box(call);
    case OctKernel::compress_lines: return launch_compress_lines(call);
    case OctKernel::derivative_peak: return launch_derivative_peak(call);
    case OctKernel::roll_lines: return launch_roll_lines(call);
    case OctKernel::project_depth: return launch_project_depth(call);
    case OctKernel::order_lines: return launch_order_lines(call);
    case OctKernel::layer_sums: return launch_layer_sums(call);
    case OctKernel::divide_lines: return launch_divide_lines(call);
    case OctKernel::product_rows: return launch_product_rows(call);
    case OctKernel::product_fold: return launch_product_fold(call);
    case OctKernel::sample_volume: return launch_sample_volume(call);
    case OctKernel::count_keys: return launch_count_keys(call);
    case OctKernel::blend_add: return launch_blend_add(call);
    case OctKernel::blend_finish: return launch_blend_finish(call);
    case OctKernel::median_box: return launch_median_box(call);
    case OctKernel::attenuation_lines: return launch_attenuation_lines(call);
    case OctKernel::compensate_lines: return launch_compensate_lines(call);
    case OctKernel::texture_noise: return launch_texture_noise(call);
    case OctKernel::exponentiate: return launch_exponentiate(call);
    case OctKernel::tile_voxels: return launch_tile_voxels(call);
  }
  return cudaErrorInvalidValue;
}

class CudaOctBackend final : public KernelBackend {
 public:
  explicit CudaOctBackend(CudaDevice& device) : device_(device) {}

  [[nodiscard]] Status launch(Queue& queue, const KernelLaunch& launch) override {
    CGL_TRY(device_.make_current());
    return cuda_status(launch_kernel(launch.kernel, {pointers_of(launch), launch.threads, cuda_stream_of(queue)}),
                       "device {}: kernel {}", device_.id(), kernel_facts(launch.kernel).name);
  }

 private:
  CudaDevice& device_;
};

}  // namespace

Result<std::unique_ptr<KernelBackend>> make_cuda_oct_backend(Device& device) {
  return std::make_unique<CudaOctBackend>(static_cast<CudaDevice&>(device));
}

}  // namespace cingulum::oct
