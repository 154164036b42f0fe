#include <optional>
#include <utility>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_status.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/cuda/bare_exchanges.hpp"
#include "ring/workloads/cuda/workload_program.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {
namespace {

Result<DeviceLimits> measure_limits(Device& device, std::uint32_t samples) {
  auto* const cuda = dynamic_cast<CudaDevice*>(&device);
  if (cuda == nullptr) return fail(ErrorKind::invalid_argument, "{} is not a CUDA device", device.id());
  CGL_TRY(cuda->make_current());
  DeviceLimits limits;
  const auto ran = [&](int code, std::string_view what) {
    return cuda_status(static_cast<cudaError_t>(code), "device {}: {}", device.id(), what);
  };
  CGL_TRY(ran(bare_round_trips(samples, limits.round_trips), "round trips to a bare kernel"));
  CGL_TRY(ran(launch_and_synchronise(samples / 5, limits.launches), "launching kernels"));
  CGL_TRY(ran(bare_kernel_to_kernel(samples, limits.kernel_to_kernel), "messages between bare blocks"));
  CGL_TRY(ran(bare_stream(std::uint64_t{samples} * 20, limits.messages_per_s), "a stream through a bare block"));
  return limits;
}

}  // namespace

Result<std::unique_ptr<WorkloadPlace>> make_cuda_place(Device& device, const DevicePlaceOptions& options) {
  std::optional<DeviceLimits> limits;
  if (options.limit_samples != 0) {
    CGL_TRY_ASSIGN(limits, measure_limits(device, options.limit_samples));
  }
  CGL_TRY_ASSIGN(std::unique_ptr<ResidentBackend> backend,
                 make_cuda_backend(device, workload_program(workload_body_names())));
  GridOptions grid_options;
  grid_options.lanes = options.lanes;
  grid_options.ring_capacity = options.ring_capacity;
  grid_options.time_limit = options.time_limit;
  grid_options.scratch_bytes = std::uint64_t{16} << 20U;
  CGL_TRY_ASSIGN(const std::uint32_t most, backend->most_seats(grid_options.lanes, 0));
  grid_options.seats = most < options.actors ? most : options.actors;
  CGL_TRY_ASSIGN(std::shared_ptr<ResidentGrid> grid, ResidentGrid::open(std::move(backend), grid_options));
  return make_resident_place(std::move(grid), device, std::move(limits));
}

}  // namespace cingulum::ring
