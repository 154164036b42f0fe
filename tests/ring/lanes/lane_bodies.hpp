// Bodies for seats whose lanes are fibers, beside those of tests/ring/resident_bodies.hpp: what each lane saw is part
// of the answer, since the first lane's message alone is sent.
#pragma once

#include "ring/resident_bodies.hpp"

namespace cingulum::ring::testing {

// Answers with the number when every lane was given it, whole; with `disagreed` otherwise. With `tries` by try_receive.
struct Agree {
  static constexpr std::uint64_t disagreed = 0xbad00001u;
  std::uint32_t tries = 0;
  struct State {
    std::uint64_t seen[256];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    for (;;) {
      if (tries != 0) {
        const GetStatus status = context.try_receive(message);
        if (status == GetStatus::closed) return 0;
        if (status == GetStatus::empty) {
          context.heartbeat();
          continue;
        }
      } else if (!context.receive(message)) {
        return 0;
      }
      State& state = context.template state<State>();
      const Numbered value = payload<Numbered>(message);
      state.seen[context.lane()] = is_whole(value) ? value.number : disagreed;
      context.sync();
      std::uint64_t answer = value.number;
      for (std::uint32_t i = 0; i < context.lanes(); ++i) {
        if (state.seen[i] != value.number) answer = disagreed;
      }
      context.sync();
      context.send(make_reply(message, numbered(answer)));
    }
  }
};

// Every lane counts itself in when it finds its word of the state as a start leaves it, zero, and marks the word. Then
// echoes how many did, and fails at numbers as FailEvery does.
struct CountStarts {
  std::uint64_t every = 4;
  struct State {
    std::uint32_t found_zero[64];
    std::uint32_t marks[64];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    State& state = context.template state<State>();
    // Not the word that this lane clears.
    const std::uint32_t mine = context.lanes() - 1 - context.lane();
    state.found_zero[mine] = state.marks[mine] == 0 ? 1 : 0;
    state.marks[mine] = 0xffffffffu;
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      if (number % every == every - 1) return static_cast<int>(number);
      context.sync();
      std::uint64_t found = 0;
      for (std::uint32_t i = 0; i < context.lanes(); ++i) found += state.found_zero[i];
      context.send(make_reply(message, numbered(found)));
    }
    return 0;
  }
};

// All lanes write to the buffer that the message names, then pass the message on. Without a barrier of its own: what
// was written is there when the message is.
struct Fill {
  static constexpr std::uint32_t words = 128;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      BufferHandle handle;
      memcpy(&handle, message.payload, sizeof handle);
      auto* const buffer = static_cast<std::uint64_t*>(context.buffer(handle));
      for (std::uint32_t i = context.lane(); i < words; i += context.lanes()) {
        context.back_off();
        buffer[i] = message.header.correlation + i;
      }
      context.send(message);
    }
    return 0;
  }
};

// Every lane reads the whole buffer that the message names; answers how many lanes found it as Fill leaves it.
struct Check {
  struct State {
    std::uint64_t right[64];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      State& state = context.template state<State>();
      BufferHandle handle;
      memcpy(&handle, message.payload, sizeof handle);
      const auto* const buffer = static_cast<const std::uint64_t*>(context.buffer(handle));
      std::uint64_t right = 1;
      for (std::uint32_t i = 0; i < Fill::words; ++i) right &= buffer[i] == message.header.correlation + i ? 1u : 0u;
      state.right[context.lane()] = right;
      context.sync();
      std::uint64_t count = 0;
      for (std::uint32_t i = 0; i < context.lanes(); ++i) count += state.right[i];
      context.sync();
      context.send(make_message(numbered(count), message.header.correlation));
    }
    return 0;
  }
};

// Works on a message until it is told to stop, then answers on how many lanes should_stop said so; a message that it
// takes without being stopped is answered by 0.
struct WorkUntilStopped {
  struct State {
    std::uint64_t stopped[64];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      State& state = context.template state<State>();
      state.stopped[context.lane()] = 0;
      const std::uint64_t rounds = payload<Numbered>(message).number;
      bool stop = false;
      for (std::uint64_t i = 0; i < rounds && !stop; ++i) stop = context.should_stop();
      state.stopped[context.lane()] = stop ? 1 : 0;
      context.sync();
      std::uint64_t lanes_stopped = 0;
      for (std::uint32_t i = 0; i < context.lanes(); ++i) lanes_stopped += state.stopped[i];
      context.sync();
      context.send(make_message(numbered(lanes_stopped)));
      if (stop) return static_cast<int>(lanes_stopped);
    }
    return 0;
  }
};

}  // namespace cingulum::ring::testing
