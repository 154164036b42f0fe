#include "oct/cpu/host_kernels.hpp"

namespace cingulum::oct {
namespace {

struct HostCall {
  HostKernel kernel;
  KernelPointers pointers;
};

// In the order of OctKernel.
#define CGL_POINTER(name) &host_##name,
constexpr std::array<const HostKernel*, oct_kernel_count> host_kernels = {CGL_OCT_KERNELS(CGL_POINTER)};
#undef CGL_POINTER

void run_piece(const BlockContext& block) {
  const auto& call = *reinterpret_cast<const HostCall*>(block.scalar<std::uint64_t>(0));
  call.kernel.run(call.pointers, block.block_index()[0]);
}

class HostOctBackend final : public KernelBackend {
 public:
  explicit HostOctBackend(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  // A queue of the CPU has done its work when a launch returns.
  [[nodiscard]] Status launch(Queue& queue, const KernelLaunch& launch) override {
    const HostCall call = {*host_kernels[static_cast<std::size_t>(launch.kernel)], pointers_of(launch)};
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
