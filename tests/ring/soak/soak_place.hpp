// The places where the actors of the soak live: CPU threads, the emulated grid or a CUDA grid, behind one set of calls.
// Used by ring_soak.cpp and ring_host.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/actor/runtime.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/soak/soak_bodies.hpp"

namespace cingulum::ring::soak {

class Place {
 public:
  // `kind` is "cpu", "emulated" or "cuda". A grid has `seats` seats and ends by itself after `time_limit`.
  [[nodiscard]] static Result<std::unique_ptr<Place>> open(std::string_view kind, std::uint32_t seats,
                                                           Nanoseconds time_limit);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] Runtime& runtime() { return *runtime_; }
  [[nodiscard]] bool is_resident() const { return grid_ != nullptr; }
  [[nodiscard]] Result<ActorHandle> launch(const std::string& name, const Source& body, RingKind kind,
                                           const ActorOptions& options);
  [[nodiscard]] Result<ActorHandle> launch(const std::string& name, const Sink& body, RingKind kind,
                                           const ActorOptions& options);

  // Zeroed memory that both sides see, as long as the place.
  [[nodiscard]] Result<MappedMemory> memory(std::uint64_t bytes);
  [[nodiscard]] BufferTable& buffers();

  // Without waiting: how many were stored, and how many were taken.
  [[nodiscard]] static std::uint32_t put_some(Actor& actor, std::span<const Message> messages);
  [[nodiscard]] static std::uint32_t take_some(Actor& actor, std::span<Message> messages);

  [[nodiscard]] Status close();

 private:
  Place() = default;
  std::shared_ptr<ResidentGrid> grid_;
  std::vector<std::unique_ptr<std::byte[]>> own_memory_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace cingulum::ring::soak
