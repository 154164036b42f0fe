// An actor that passes a number on through port 1, counted down; at zero the number goes back to the requester. Two of
// them, wired to each other, measure how long a message takes from actor to actor.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/workloads/echo_and_sum.hpp"

namespace cingulum::ring {

struct HopBody {
  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (!holds<Ping>(message)) return failure_unknown_message;
      Ping ping = payload<Ping>(message);
      ping.value -= 1;
      const Message next = make_reply(message, ping);
      ping.value > 0 ? context.emit(1, next) : context.send(next);
    }
    return 0;
  }
};

}  // namespace cingulum::ring
