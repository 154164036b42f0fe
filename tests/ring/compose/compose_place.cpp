#include "ring/compose/compose_place.hpp"

#include <cstring>

#include "base/settings.hpp"
#include "device/registry.hpp"
#include "ring/child/child_service.hpp"
#include "ring/lanes/live_lanes.hpp"
#include "ring/resident/emulated_backend.hpp"
#if CINGULUM_HAS_CUDA
#include "ring/compose/compose_cuda.hpp"
#include "ring/cuda/cuda_backend.hpp"
#endif

namespace cingulum::ring::testing {
namespace {

Result<std::unique_ptr<ResidentBackend>> make_compose_backend(std::string_view device) {
  const std::vector<std::string> names = {"router"};
  if (device == "emulated") {
    return std::unique_ptr<ResidentBackend>(std::make_unique<EmulatedBackend<Router>>(names));
  }
  if (device == "lanes") {
    return std::unique_ptr<ResidentBackend>(std::make_unique<ThreadBackend<LiveLaneMachine, Router>>(names));
  }
#if CINGULUM_HAS_CUDA
  if (device == "cuda") {
    static const Result<DeviceRegistry> devices =
        Settings::from_environment().and_then(ProbeOptions::from_settings).and_then([](const ProbeOptions& options) {
          return DeviceRegistry::probe(options);
        });
    if (!devices) return tl::make_unexpected(devices.error());
    CGL_TRY_ASSIGN(Device* const chosen, devices->select_one("cuda"));
    return make_cuda_backend(*chosen, compose_program());
  }
#endif
  return fail(ErrorKind::unavailable, "no place '{}' for the actors of the composed test", device);
}

// Routers on threads of the child.
class ThreadWork final : public ChildWork {
 public:
  Result<ActorHandle> launch(Runtime& runtime, const std::string& name, const std::string&,
                             std::span<const std::byte> arguments, RingKind, const ActorOptions& options) override {
    Router router;
    std::memcpy(&router, arguments.data(), std::min(sizeof router, arguments.size()));
    return runtime.launch(name, router, options);
  }
};

}  // namespace

Result<std::shared_ptr<ResidentGrid>> open_compose_grid(std::string_view device, std::uint32_t lanes) {
  if (device == "cpu") return std::shared_ptr<ResidentGrid>();
  CGL_TRY_ASSIGN(auto backend, make_compose_backend(device));
  GridOptions options;
  options.seats = Router::most_seats;
  options.reply_buffers = compose_reply_buffers;
  options.reply_buffer_bytes = reply_words * sizeof(std::uint64_t);
  options.lanes = lanes;
  options.edges = 64;
  options.edge_capacity = 2048;
  options.ring_capacity = 256;
  options.time_limit = std::chrono::minutes(5);
  if (device != "cuda") options.longest_nap_ns = 50000;  // threads on few processors
  return ResidentGrid::open(std::move(backend), options);
}

Result<std::shared_ptr<ChildHost>> start_compose_child(const std::string& program, std::string_view device) {
  ChildOptions options;
  options.command = {program, "--serve", std::string(device)};
  return ChildHost::start(options);
}

int serve_compose_parent(std::string_view device) {
  return serve_parent([&]() -> Result<std::unique_ptr<ChildWork>> {
    if (device == "cpu") return std::make_unique<ThreadWork>();
    CGL_TRY_ASSIGN(auto grid, open_compose_grid(device, 32));
    return child_work_of(std::move(grid));
  });
}

}  // namespace cingulum::ring::testing
