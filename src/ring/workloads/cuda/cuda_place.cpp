#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/cuda/workload_program.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

Result<std::unique_ptr<WorkloadPlace>> make_cuda_place(Device& device, const DevicePlaceOptions& options) {
  CGL_TRY_ASSIGN(std::unique_ptr<ResidentBackend> backend, make_cuda_backend(device, workload_program()));
  GridOptions grid_options;
  grid_options.lanes = options.lanes;
  grid_options.ring_capacity = options.ring_capacity;
  grid_options.time_limit = options.time_limit;
  grid_options.scratch_bytes = std::uint64_t{16} << 20U;
  CGL_TRY_ASSIGN(const std::uint32_t most, backend->most_seats(grid_options.lanes, 0));
  grid_options.seats = most < options.actors ? most : options.actors;
  CGL_TRY_ASSIGN(std::shared_ptr<ResidentGrid> grid, ResidentGrid::open(std::move(backend), grid_options));
  return make_resident_place(std::move(grid), device);
}

}  // namespace cingulum::ring
