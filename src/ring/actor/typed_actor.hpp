// An actor seen by the types that it takes and answers with: what comes back as something else is an error, not bytes
// read as the wrong type.
//   TypedActor<Ping, Pong> pinger(*runtime, handle);
//   Result<Pong> pong = pinger.request(Ping{1}, 1s);
#pragma once

#include <optional>
#include <utility>

#include "ring/actor/runtime.hpp"

namespace cingulum::ring {

// The payload of a message, if it is one of this type.
template <MessagePayload T>
[[nodiscard]] Result<T> payload_as(const Message& message) {
  if (holds<T>(message)) return payload<T>(message);
  return fail(ErrorKind::invalid_argument, "a message of type {:#x} with {} bytes is not a '{}' (type {:#x}, {} bytes)",
              message.header.type, message.payload_bytes(), T::message_name, message_type<T>,
              std::is_empty_v<T> ? 0 : sizeof(T));
}

template <MessagePayload Request, MessagePayload Reply>
class TypedActor {
 public:
  TypedActor(Runtime& runtime, ActorHandle actor) : runtime_(&runtime), actor_(std::move(actor)) {}

  [[nodiscard]] Status send(const Request& request, const SendOptions& options = {}) {
    return actor_->send(make_message(request), options);
  }
  [[nodiscard]] Result<Reply> receive(Nanoseconds timeout = no_time_limit) {
    CGL_TRY_ASSIGN(const Message message, actor_->receive(timeout));
    return add_context(payload_as<Reply>(message), "output of actor '{}'", actor_->name());
  }
  [[nodiscard]] Result<Reply> request(const Request& request, Nanoseconds timeout = no_time_limit) {
    CGL_TRY_ASSIGN(const Message message, runtime_->request(*actor_, make_message(request), timeout));
    return add_context(payload_as<Reply>(message), "answer of actor '{}'", actor_->name());
  }
  [[nodiscard]] Actor& actor() const noexcept { return *actor_; }

 private:
  Runtime* runtime_;
  ActorHandle actor_;
};

}  // namespace cingulum::ring
