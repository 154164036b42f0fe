// The child's side: a process that holds a device and runs actors on it for the program that started it
// (ring/child/child_host.hpp). Its main calls serve_parent and returns what that answers. It ends when it is told to,
// when the parent is gone (its end of the socket closes), and when the device is lost; whoever started it then starts
// another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ring/actor/runtime.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

// What the child can run: a GPU's grid, or CPU actors in the tests.
class ChildWork {
 public:
  virtual ~ChildWork() = default;
  [[nodiscard]] virtual Result<ActorHandle> launch(Runtime& runtime, const std::string& name, const std::string& body,
                                                   std::span<const std::byte> arguments, RingKind kind,
                                                   const ActorOptions& options) = 0;
  // Why the device can no longer be used, when that is so.
  [[nodiscard]] virtual std::optional<Error> lost() { return std::nullopt; }
};

// Exit codes.
constexpr int child_left = 0;
constexpr int child_lost_device = 3;
constexpr int child_lost_parent = 4;

// `open` is called once, in the child; its failure answers every launch.
[[nodiscard]] int serve_parent(const std::function<Result<std::unique_ptr<ChildWork>>()>& open);

// The work of a resident grid.
class ResidentGrid;
[[nodiscard]] std::unique_ptr<ChildWork> child_work_of(std::shared_ptr<ResidentGrid> grid);

}  // namespace cingulum::ring
