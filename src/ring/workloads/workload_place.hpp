// The place where a workload runs: actors of the workloads' bodies and the memory they read, on the CPU or on a device.
// The drivers (extended, pagerank, anomaly) are written on it once; `cingulum ring run` chooses the place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ring/actor/actor.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/actor/runtime.hpp"

namespace cingulum {
class Device;
}

namespace cingulum::ring {

class ResidentGrid;

// A driver waits this long for one answer of an actor before it gives up.
constexpr Nanoseconds answer_limit = std::chrono::seconds(30);

enum class WorkloadBody { echo, sum, sum_of_squares, pagerank, anomaly, hop, batch_echo };

[[nodiscard]] std::string_view workload_body_name(WorkloadBody body);
// All of them, in the order of the enumeration: the names of a device program's bodies.
[[nodiscard]] std::vector<std::string> workload_body_names();

// What an actor's rings are to be good at: single answers in the shortest time, or many messages.
enum class Traffic { answers, stream };

// Memory that host and actor both see; a message with its handle passes it on.
struct SharedBuffer {
  BufferHandle handle;
  std::span<std::byte> bytes;
};

// What a device does without the runtime, in the same run; times in seconds.
struct DeviceLimits {
  std::vector<double> round_trips;  // 64 bytes to a bare kernel and back
  std::vector<double> launches;     // the alternative: a kernel launched and waited for
  double kernel_to_kernel = 0;      // between two blocks and back
  double messages_per_s = 0;        // a stream through one block
};

class WorkloadPlace {
 public:
  virtual ~WorkloadPlace() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "cpu", "cuda:0"
  [[nodiscard]] virtual Runtime& runtime() = 0;
  // Launched; wires are laid before it is activated.
  [[nodiscard]] virtual Result<ActorHandle> launch(const std::string& name, WorkloadBody body, Traffic traffic,
                                                   const ActorOptions& options) = 0;
  // Launched and activated.
  [[nodiscard]] Result<ActorHandle> start(const std::string& name, WorkloadBody body, Traffic traffic,
                                          const ActorOptions& options) {
    CGL_TRY_ASSIGN(ActorHandle actor, launch(name, body, traffic, options));
    CGL_TRY(actor->activate());
    return actor;
  }
  // Null: not measured, or not a device.
  [[nodiscard]] virtual const DeviceLimits* limits() const { return nullptr; }
  // How many share a large piece of work with profit: actors, or seats of one.
  [[nodiscard]] virtual std::uint32_t useful_workers() const = 0;
  // Whether an actor can have several seats (ActorOptions::seats), and so do with one message what would take one each.
  [[nodiscard]] virtual bool has_seats() const { return false; }
  // Whether a thread that spins while it waits for their answers takes a processor from one of them.
  [[nodiscard]] virtual bool waiting_takes_a_processor() const { return false; }

  [[nodiscard]] virtual Result<SharedBuffer> share(std::uint64_t bytes) = 0;
  // A copy of `content` in the memory that is nearest to the actors, where they may also write.
  [[nodiscard]] virtual Result<BufferHandle> keep(std::span<const std::byte> content) = 0;
  [[nodiscard]] virtual Status fetch(BufferHandle handle, std::uint64_t offset, std::span<std::byte> bytes) = 0;
  // What share and keep gave, when no actor uses it any more.
  [[nodiscard]] virtual Status release(BufferHandle handle) = 0;
};

// `waiting`: how threads wait for answers to requests.
[[nodiscard]] Result<std::unique_ptr<WorkloadPlace>> make_cpu_place(std::uint32_t threads, WaitStrategy waiting = {});

// A grid that stays on a GPU. ErrorKind::unavailable where CUDA is not compiled in or the device is none of CUDA's.
struct DevicePlaceOptions {
  std::uint32_t actors = 32;
  std::uint32_t lanes = 256;
  std::uint32_t ring_capacity = 4096;
  Nanoseconds time_limit{0};        // of the kernel, whatever happens; 0: none
  std::uint32_t limit_samples = 0;  // exchanges without the runtime that are timed before actors come; 0: none
};
[[nodiscard]] Result<std::unique_ptr<WorkloadPlace>> make_cuda_place(Device& device, const DevicePlaceOptions& options);
// Actors in a grid that is open; its program must have the workloads' bodies by workload_body_name, and `device` is the
// one whose memory they address.
[[nodiscard]] Result<std::unique_ptr<WorkloadPlace>> make_resident_place(
    std::shared_ptr<ResidentGrid> grid, Device& device, std::optional<DeviceLimits> limits = std::nullopt);

// A message whose payload begins with a BufferHandle.
template <MessagePayload T>
[[nodiscard]] Message make_buffer_message(const T& payload) {
  Message message = make_message(payload);
  message.header.flags |= mark_handle;
  return message;
}

}  // namespace cingulum::ring
