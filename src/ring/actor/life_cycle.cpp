#include "ring/actor/life_cycle.hpp"

namespace cingulum::ring {
namespace {

// What to do first, for the message of an operation that is not allowed.
std::string_view advice(ActorState state, Operation operation) {
  switch (state) {
    case ActorState::created: return "launch it first";
    case ActorState::launched: return operation == Operation::launch ? "it is launched already" : "activate it first";
    case ActorState::active: return operation == Operation::wire ? "deactivate it first" : "it is active already";
    case ActorState::deactivated: return "reactivate it, or terminate it";
    case ActorState::terminating:
    case ActorState::terminated: return "launch a new one";
    case ActorState::failed: return "terminate it and launch a new one";
  }
  return "";
}

}  // namespace

std::string_view state_name(ActorState state) {
  switch (state) {
    case ActorState::created: return "created";
    case ActorState::launched: return "launched";
    case ActorState::active: return "active";
    case ActorState::deactivated: return "deactivated";
    case ActorState::terminating: return "terminating";
    case ActorState::terminated: return "terminated";
    case ActorState::failed: return "failed";
  }
  return "unknown";
}

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::launch: return "launch";
    case Operation::activate: return "activate";
    case Operation::deactivate: return "deactivate";
    case Operation::reactivate: return "reactivate";
    case Operation::terminate: return "terminate";
    case Operation::send: return "send";
    case Operation::receive: return "receive";
    case Operation::request: return "request";
    case Operation::wire: return "wire";
  }
  return "unknown";
}

bool is_allowed(ActorState state, Operation operation) {
  const bool talking = state == ActorState::active || state == ActorState::deactivated;
  switch (operation) {
    case Operation::launch: return state == ActorState::created;
    case Operation::activate: return state == ActorState::launched;
    case Operation::deactivate: return state == ActorState::active;
    case Operation::reactivate: return state == ActorState::deactivated;
    case Operation::terminate: return true;
    case Operation::send:
    case Operation::request: return talking;
    case Operation::receive:
      return talking || state == ActorState::terminating || state == ActorState::terminated ||
             state == ActorState::failed;
    case Operation::wire:
      return state == ActorState::created || state == ActorState::launched || state == ActorState::deactivated;
  }
  return false;
}

Status check_operation(std::string_view actor, ActorState state, Operation operation) {
  if (is_allowed(state, operation)) return {};
  return fail(ErrorKind::invalid_state, "actor '{}': cannot {} in state {}; {}", actor, operation_name(operation),
              state_name(state), advice(state, operation));
}

}  // namespace cingulum::ring
