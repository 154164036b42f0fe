// The actors of the ring benches.
#pragma once

#include "ring/actor/actor_context.hpp"

namespace cingulum::bench {

struct Packet {
  static constexpr const char* message_name = "Packet";
  std::uint64_t number = 0;
  std::uint64_t words[5] = {};
};

struct EchoBody {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    ring::Message message;
    while (context.receive(message)) context.send(message);
    return 0;
  }
};

struct BatchEchoBody {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    while (context.answer_batch([](ring::Message&) {})) {
    }
    return 0;
  }
};

// Answers, and fails at one message.
struct FailingBody {
  static constexpr std::uint64_t fatal = ~std::uint64_t{0};

  template <class Context>
  CGL_HD int operator()(Context& context) const {
    ring::Message message;
    while (context.receive(message)) {
      if (ring::payload<Packet>(message).number == fatal) return 7;
      context.send(message);
    }
    return 0;
  }
};

// Counts down between two actors, then tells the host.
struct BounceBody {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    ring::Message message;
    while (context.receive(message)) {
      Packet packet = ring::payload<Packet>(message);
      if (packet.number == 0) {
        context.send(message);
      } else {
        --packet.number;
        context.emit(1, ring::make_message(packet));
      }
    }
    return 0;
  }
};

}  // namespace cingulum::bench
