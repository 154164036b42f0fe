// Bodies for the tests of resident actors, compiled for the emulated grid and for CUDA.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"

namespace cingulum::ring::testing {

// Every word of the payload follows from the number, so that a torn message is seen.
struct Numbered {
  static constexpr const char* message_name = "Numbered";
  std::uint64_t number = 0;
  std::uint64_t words[5] = {};
};
CGL_HD inline std::uint64_t scramble(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185ull;
  x ^= x >> 27;
  return x;
}
CGL_HD inline Numbered numbered(std::uint64_t number) {
  Numbered made;
  made.number = number;
  for (std::uint64_t i = 0; i < 5; ++i) made.words[i] = scramble(number * 5 + i);
  return made;
}
CGL_HD inline bool is_whole(const Numbered& value) {
  for (std::uint64_t i = 0; i < 5; ++i) {
    if (value.words[i] != scramble(value.number * 5 + i)) return false;
  }
  return true;
}

struct Echo {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) context.send(message);
    return 0;
  }
};

// One message per lane. On a grid only: CPU actors have no answer_batch.
struct BatchEcho {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    while (context.answer_batch([](Message&) {})) {
    }
    return 0;
  }
};

// Adds its own number to the payload and passes it to port 0 through send, and to port 1 where that is wired.
struct Add {
  std::uint64_t amount = 0;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      Numbered value = payload<Numbered>(message);
      value = numbered(value.number + amount);
      Message next = make_message(value, message.header.correlation);
      next.header.flags |= message.header.flags & mark_request;
      context.send(next);
      context.emit(1, next);
    }
    return 0;
  }
};

// Bounces a counter through port 1 between two actors until it is zero, then sends to the host.
struct Bounce {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const Numbered value = payload<Numbered>(message);
      if (value.number == 0) {
        context.send(message);
        continue;
      }
      context.emit(1, make_message(numbered(value.number - 1)));
    }
    return 0;
  }
};

// The sum of all numbers so far; lanes share the work of a checksum, so that they must agree.
struct Sum {
  struct State {
    std::uint64_t sum;
    std::uint64_t parts[256];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      State& state = context.template state<State>();
      const std::uint64_t number = payload<Numbered>(message).number;
      // Lane l adds l, l + lanes, ... below `number % 256`: together a known sum.
      std::uint64_t part = 0;
      for (std::uint64_t i = context.lane(); i < number % 256; i += context.lanes()) part += i;
      state.parts[context.lane()] = part;
      context.sync();
      if (context.lane() == 0) {
        std::uint64_t whole = 0;
        for (std::uint32_t i = 0; i < context.lanes(); ++i) whole += state.parts[i];
        state.sum += number + whole;
      }
      context.sync();
      context.send(make_reply(message, numbered(state.sum)));
    }
    return 0;
  }
};

// Echoes, but returns `code` at a message whose number is a multiple of `every`.
struct FailEvery {
  std::uint64_t every = 1;
  int code = 7;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      if (number % every == every - 1) return code;
      context.send(message);
    }
    return 0;
  }
};

// Works for `number` milliseconds without a sign of life, then answers.
struct Busy {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t until = context.time_ns() + payload<Numbered>(message).number * 1000000;
      while (context.time_ns() < until) {
      }
      context.sync();
      context.send(message);
    }
    return 0;
  }
};

// Works for `number` milliseconds with a sign of life, or a look at whether it shall stop, every `interval_ms`.
struct Beating {
  std::uint64_t interval_ms = 50;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t pieces = payload<Numbered>(message).number / interval_ms;
      for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        const std::uint64_t until = context.time_ns() + interval_ms * 1000000;
        while (context.time_ns() < until) context.back_off();
        context.sync();
        if (piece % 2 == 0) {
          context.heartbeat();
        } else if (context.should_stop()) {
          return 0;
        }
      }
      context.send(message);
    }
    return 0;
  }
};

// Takes Numbered alone.
struct TypedEcho {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    while (const auto got = context.template receive<Numbered>()) context.send(make_reply(got.message, got.payload));
    return 0;
  }
};

// Answers with the first word of the buffer that the message names, or with `stale`.
struct LookUp {
  static constexpr std::uint64_t stale = 0xdeadu;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      BufferHandle handle;
      memcpy(&handle, message.payload, sizeof handle);
      const auto* const words = static_cast<const std::uint64_t*>(context.buffer(handle));
      context.send(make_reply(message, numbered(words == nullptr ? stale : words[0])));
    }
    return 0;
  }
};

// Passes on as many messages as a request says, without a pause; and one that takes them without an answer.
struct Flood {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t count = payload<Numbered>(message).number;
      for (std::uint64_t i = 0; i < count; ++i) {
        if (i % 64 == 0 && context.should_stop()) break;
        if (context.emit(0, make_message(numbered(i))) != PutStatus::stored) break;
      }
    }
    return 0;
  }
};
struct Swallow {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
    }
    return 0;
  }
};

// Answers a request for n with n parts and a last answer, numbered in order. When nobody waits for them any more, it
// leaves the rest and puts into its output how many it had sent.
struct Parts {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t count = payload<Numbered>(message).number;
      std::uint64_t sent = 0;
      while (sent < count && context.is_wanted(message)) {
        if (context.send(make_part(message, numbered(sent))) != PutStatus::stored) break;
        ++sent;
      }
      if (sent == count) {
        context.send(make_reply(message, numbered(count)));
      } else {
        context.send(make_message(numbered(sent)));
      }
    }
    return 0;
  }
};

// Answers every request `times` times, whether more is wanted or not.
struct Repeat {
  std::uint64_t times = 2;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      for (std::uint64_t i = 0; i < times; ++i) context.send(message);
    }
    return 0;
  }
};

// Sends a part for every message it was asked for, then fails.
struct PartsThenFail {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t count = payload<Numbered>(message).number;
      for (std::uint64_t i = 0; i < count; ++i) context.send(make_part(message, numbered(i)));
      return 9;
    }
    return 0;
  }
};

// Returns by itself after three messages.
struct Three {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    for (int i = 0; i < 3 && context.receive(message); ++i) context.send(message);
    return 0;
  }
};

}  // namespace cingulum::ring::testing
