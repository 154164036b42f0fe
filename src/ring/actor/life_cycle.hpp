// The states of an actor and which operation is allowed in which; the same for every backend. Called by
// ring/actor/actor.hpp.
//   created --launch--> launched --activate--> active <--deactivate / reactivate--> deactivated
//   any but terminated --terminate--> terminating --> terminated (a second terminate does nothing)
//   active, deactivated, terminating --(the body fails for good)--> failed
// Sending, receiving and requesting are allowed when active or deactivated; receiving also afterwards, until the handle
// is gone, so that what an actor left behind can be read.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace cingulum::ring {

enum class ActorState : std::uint8_t { created, launched, active, deactivated, terminating, terminated, failed };

enum class Operation : std::uint8_t {
  launch,
  activate,
  deactivate,
  reactivate,
  terminate,
  send,
  receive,
  request,
  wire
};

[[nodiscard]] std::string_view state_name(ActorState state);
[[nodiscard]] std::string_view operation_name(Operation operation);
[[nodiscard]] bool is_allowed(ActorState state, Operation operation);
// ErrorKind::invalid_state: "actor 'sum': cannot activate in state created; launch it first".
[[nodiscard]] Status check_operation(std::string_view actor, ActorState state, Operation operation);

}  // namespace cingulum::ring
