#include "ring/soak/soak_place.hpp"

#include <cstring>

#include "base/settings.hpp"
#include "device/registry.hpp"
#include "ring/resident/emulated_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/soak/neighbour.hpp"
#if CINGULUM_HAS_CUDA
#include "ring/cuda/cuda_backend.hpp"
#include "ring/soak/soak_cuda.hpp"
#endif

namespace cingulum::ring::soak {
namespace {

constexpr std::uint32_t buffer_count = 1u << 16;

Result<std::unique_ptr<ResidentBackend>> make_backend(std::string_view kind) {
  if (kind == "emulated") {
    return std::unique_ptr<ResidentBackend>(
        std::make_unique<EmulatedBackend<Source, Sink>>(std::vector<std::string>{"source", "sink"}));
  }
#if CINGULUM_HAS_CUDA
  if (kind == "cuda") {
    static const Result<DeviceRegistry> devices =
        Settings::from_environment().and_then(ProbeOptions::from_settings).and_then([](const ProbeOptions& options) {
          return DeviceRegistry::probe(options);
        });
    if (!devices) return tl::make_unexpected(devices.error());
    CGL_TRY_ASSIGN(Device* const device, devices->select_one("cuda"));
    return make_cuda_backend(*device, soak_program());
  }
#endif
  return fail(ErrorKind::unavailable, "no place '{}' for the actors of the soak", kind);
}

}  // namespace

Result<std::unique_ptr<Place>> Place::open(std::string_view kind, std::uint32_t seats, Nanoseconds time_limit) {
  std::unique_ptr<Place> place(new Place());
  RuntimeOptions runtime;
  runtime.max_buffers = buffer_count;
  CGL_TRY_ASSIGN(place->runtime_, Runtime::create(runtime));
  if (kind == "cpu") return place;
  CGL_TRY_ASSIGN(auto backend, make_backend(kind));
  GridOptions options;
  options.seats = seats;
  options.lanes = 32;
  options.edges = 2 * seats;
  options.buffers = buffer_count;
  options.scratch_bytes = std::uint64_t{8} << 20;
  options.time_limit = time_limit;
  if (kind == "emulated") options.longest_nap_ns = 50000;  // threads on few processors
  CGL_TRY_ASSIGN(place->grid_, ResidentGrid::open(std::move(backend), options));
  return place;
}

Place::~Place() {
  static_cast<void>(close());
}

Status Place::close() {
  if (runtime_) static_cast<void>(runtime_->shutdown(Termination::discard()));
  if (!grid_) return {};
  const Status closed = grid_->close();
  grid_.reset();
  return closed;
}

Result<ActorHandle> Place::launch(const std::string& name, const Source& body, RingKind kind,
                                  const ActorOptions& options) {
  return grid_ ? grid_->launch(*runtime_, name, "source", body, kind, options) : runtime_->launch(name, body, options);
}

Result<ActorHandle> Place::launch(const std::string& name, const Sink& body, RingKind kind,
                                  const ActorOptions& options) {
  return grid_ ? grid_->launch(*runtime_, name, "sink", body, kind, options) : runtime_->launch(name, body, options);
}

Result<MappedMemory> Place::memory(std::uint64_t bytes) {
  if (grid_) return grid_->scratch(bytes);
  auto& own = own_memory_.emplace_back(std::make_unique<std::byte[]>(bytes));
  return MappedMemory{own.get(), own.get()};
}

BufferTable& Place::buffers() {
  return grid_ ? grid_->buffers() : runtime_->buffers();
}

std::uint32_t Place::put_some(Actor& actor, std::span<const Message> messages) {
  return actor.send_batch(messages);
}

std::uint32_t Place::take_some(Actor& actor, std::span<Message> messages) {
  return actor.receive_batch(messages);
}

#if !CINGULUM_HAS_CUDA
std::unique_ptr<Neighbour> make_neighbour(std::string& problem) {
  problem = "CUDA is not compiled in";
  return nullptr;
}
#endif

}  // namespace cingulum::ring::soak
