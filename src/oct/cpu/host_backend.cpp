#include "oct/cpu/host_kernels.hpp"

namespace cingulum::oct {
namespace {

struct HostCall {
  HostKernel kernel;
  KernelPointers pointers;
};

HostKernel host_kernel(OctKernel kernel) {
  switch (kernel) {
    case OctKernel::filter_axis: return host_filter_axis();
    case OctKernel::spline_axis: return host_spline_axis();
    case OctKernel::log_box: return host_log_box();
    case OctKernel::compress_lines: return host_compress_lines();
    case OctKernel::derivative_peak: return host_derivative_peak();
    case OctKernel::roll_lines: return host_roll_lines();
    case OctKernel::project_depth: return host_project_depth();
    case OctKernel::order_lines: return host_order_lines();
    case OctKernel::layer_sums: return host_layer_sums();
    case OctKernel::divide_lines: return host_divide_lines();
    case OctKernel::product_rows: return host_product_rows();
    case OctKernel::product_fold: return host_product_fold();
    case OctKernel::sample_volume: return host_sample_volume();
    case OctKernel::count_keys: return host_count_keys();
    case OctKernel::blend_add: return host_blend_add();
    case OctKernel::blend_finish: return host_blend_finish();
    case OctKernel::median_box: return host_median_box();
    case OctKernel::attenuation_lines: return host_attenuation_lines();
    case OctKernel::compensate_lines: return host_compensate_lines();
    case OctKernel::texture_noise: return host_texture_noise();
    case OctKernel::exponentiate: return host_exponentiate();
    case OctKernel::tile_voxels: return host_tile_voxels();
  }
  return {};
}

void run_piece(const BlockContext& block) {
  const auto& call = *reinterpret_cast<const HostCall*>(block.scalar<std::uint64_t>(0));
  call.kernel.run(call.pointers, block.block_index()[0]);
}

class HostOctBackend final : public KernelBackend {
 public:
  explicit HostOctBackend(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  // A queue of the CPU has done its work when a launch returns.
  [[nodiscard]] Status launch(Queue& queue, const KernelLaunch& launch) override {
    const HostCall call = {host_kernel(launch.kernel), pointers_of(launch)};
    const std::array<KernelArgument, 1> arguments = {reinterpret_cast<std::uint64_t>(&call)};
    return queue.launch(*kernel_, {{call.kernel.pieces(call.pointers), 1, 1}, {1, 1, 1}, 0}, arguments);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

Result<std::unique_ptr<KernelBackend>> make_host_oct_backend(Device& device) {
  KernelSource source;
  source.name = "oct";
  source.native = run_piece;
  source.parameters = {{"call", ParameterKind::u64}};
  CGL_TRY_ASSIGN(auto kernel, device.compile(source));
  return std::make_unique<HostOctBackend>(std::move(kernel));
}

}  // namespace cingulum::oct
