// What a resident grid (ring/resident/resident_grid.hpp) needs of the machine that runs it: memory that both sides see,
// memory of the device alone, and one launch of a kernel that stays. CUDA has one (ring/cuda/cuda_backend.hpp); a grid
// of host threads (ring/resident/emulated_backend.hpp) stands in for it in the tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ring/resident/body_type.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

struct MappedMemory {
  std::byte* host = nullptr;
  std::byte* device = nullptr;  // the same bytes, as the grid sees them
};

class ResidentBackend {
 public:
  virtual ~ResidentBackend() = default;
  ResidentBackend(const ResidentBackend&) = delete;
  ResidentBackend& operator=(const ResidentBackend&) = delete;

  [[nodiscard]] virtual std::string id() const = 0;  // "cuda:0"
  // The bodies of the program, by name; the index is SeatPlan::actor.
  [[nodiscard]] virtual const std::vector<std::string>& actors() const = 0;
  // In the same order; may be shorter.
  [[nodiscard]] virtual const std::vector<BodyType>& body_types() const = 0;

  // Zeroed, and kept until the backend goes. Called before the first launch only.
  [[nodiscard]] virtual Result<MappedMemory> allocate_mapped(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<std::byte*> allocate_device(std::uint64_t bytes) = 0;
  // Also while the grid runs; done when it returns.
  [[nodiscard]] virtual Status clear_device(std::byte* memory, std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Status store_device_word(std::uint64_t* word, std::uint64_t value) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> load_device_word(const std::uint64_t* word) = 0;

  // How many blocks of `lanes` threads run at the same time on `most_processors` (0: all): no seat beyond this would
  // ever be scheduled.
  [[nodiscard]] virtual Result<std::uint32_t> most_seats(std::uint32_t lanes, std::uint32_t most_processors) = 0;
  // The driver ends kernels that run long (a display is attached): event mode only.
  [[nodiscard]] virtual bool ends_long_kernels() const = 0;

  [[nodiscard]] virtual Status launch(const GridPlan& plan, std::uint32_t lanes) = 0;
  // Whether the launched grid has ended. A failure means that the device's context is lost, with all its memory.
  [[nodiscard]] virtual Result<bool> has_ended() = 0;

 protected:
  ResidentBackend() = default;
};

}  // namespace cingulum::ring
