// Bodies for the tests of what a body may ask for: a look at the next message, reply buffers, the block's memory and
// several seats. Compiled for CPU threads, for grids of threads and for CUDA; each is right on any number of seats.
#pragma once

#include "ring/resident_bodies.hpp"

namespace cingulum::ring::testing {

// Answers a message only when the next one waits, with that one's number; a message of number 0 at once, with 0.
struct Peeker {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      Message next;
      bool there = false;
      while (number != 0 && !there && !context.should_stop()) there = context.peek(next);
      context.send(make_reply(message, numbered(there ? payload<Numbered>(next).number : 0)));
    }
    return 0;
  }
};

// Works on a message until a newer one waits, then passes it over; a message of number 0 is answered.
struct NewestWins {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (!skip_to_newest(context, message)) break;
      Message newer;
      const bool works = payload<Numbered>(message).number != 0;
      while (works && !context.peek(newer) && !context.should_stop()) context.back_off();
      if (works) {
        context.send(make_failure(message, failure_superseded));
      } else {
        context.send(message);
      }
    }
    return 0;
  }
};

struct Large {
  static constexpr const char* message_name = "Large";
  BufferHandle buffer;
  std::uint64_t number = 0;
  std::uint64_t part = 0;
};
CGL_HD inline std::uint64_t large_word(std::uint64_t number, std::uint64_t part, std::uint64_t i) {
  return scramble(number * 1000003 + part * 1009 + i);
}

// Answers a request for n by n parts, each in a reply buffer that is full of words but for the last `part` ones, and a
// last answer without. At a multiple of `fail_at` it fails with a buffer in hand.
struct LargeAnswers {
  std::uint64_t fail_at = 0;
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      for (std::uint64_t part = 0; part < number; ++part) {
        if (!context.is_wanted(message)) break;
        const ReplySpace space = context.reply_buffer();
        if (!space) return 0;
        const std::uint64_t words = space.handle.bytes / 8 - part % 8;
        auto* const out = static_cast<std::uint64_t*>(space.bytes);
        const std::uint64_t step = std::uint64_t{context.seats()} * context.lanes();
        const std::uint64_t first = std::uint64_t{context.seat()} * context.lanes() + context.lane();
        for (std::uint64_t i = first; i < words; i += step) out[i] = large_word(number, part, i);
        if (fail_at != 0 && number % fail_at == 0) return 3;
        if (!context.sync_seats()) return 0;
        const Large large{space.filled(words * 8), number, part};
        if (context.send(make_part(message, large)) != PutStatus::stored) break;
      }
      context.send(make_reply(message, numbered(number)));
    }
    return 0;
  }
};

// Writes words to the block's memory, each lane its own, and answers with a digest that the first lane makes of all.
struct BlockDigest {
  static constexpr std::uint32_t words = 1024;
  static constexpr std::uint32_t block_bytes = words * 8 + 1;  // not a whole number of words
  struct Memory {
    std::uint64_t word[words];
  };
  struct TooLarge {
    std::uint64_t word[words + 64];
  };
  CGL_HD static std::uint64_t mix(std::uint64_t digest, std::uint64_t word) { return scramble(digest * 31 + word); }
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    if (context.template block_memory<TooLarge>() != nullptr) return 4;
    auto* const memory = context.template block_memory<Memory>();
    if (memory == nullptr) return 5;
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      for (std::uint32_t i = context.lane(); i < words; i += context.lanes()) memory->word[i] = scramble(number + i);
      context.sync();
      std::uint64_t& digest = context.template state<std::uint64_t>();
      if (context.lane() == 0) {
        digest = 0;
        for (std::uint32_t i = words; i-- > 0;) digest = mix(digest, memory->word[i]);
      }
      context.sync();
      context.send(make_reply(message, numbered(digest)));
    }
    return 0;
  }
};

// Scatter and gather: the sum of scramble(i) below the message's number, cut over seats and lanes. At `fail_at` the
// seat `fail_seat` returns 7; at `slow_at` it works for 400 ms without a sign of life; at `leave_at` it works until it
// is told to stop.
struct Spread {
  std::uint64_t fail_at = 0;
  std::uint64_t slow_at = 0;
  std::uint64_t leave_at = 0;
  std::uint32_t which_seat = 1;
  static constexpr std::uint32_t most_parts = 256;
  struct State {
    std::uint64_t parts[most_parts];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    State& state = context.template state<State>();
    Message message;
    while (context.receive(message)) {
      const std::uint64_t number = payload<Numbered>(message).number;
      const bool is_chosen = context.seat() == which_seat % context.seats();
      if (number != 0 && number == fail_at && is_chosen) return 7;
      if (number != 0 && number == slow_at && is_chosen) {
        const std::uint64_t until = context.time_ns() + 400000000;
        while (context.time_ns() < until) context.back_off();
        context.sync();
      }
      if (number != 0 && number == leave_at && is_chosen) {
        while (!context.should_stop()) {
        }
        return 0;
      }
      const std::uint32_t step = context.seats() * context.lanes();
      const std::uint32_t mine = context.seat() * context.lanes() + context.lane();
      std::uint64_t sum = 0;
      for (std::uint64_t i = mine; i < number; i += step) sum += scramble(i);
      if (mine < most_parts) state.parts[mine] = 0;
      if (!context.sync_seats()) return 0;
      // More lanes than places: they add one after the other, by rounds of places.
      for (std::uint32_t round = 0; round * most_parts < step; ++round) {
        if (mine / most_parts == round) {
          context.back_off();  // the meeting waits for the slowest lane of all
          state.parts[mine % most_parts] += sum;
        }
        if (!context.sync_seats()) return 0;
      }
      std::uint64_t whole = 0;
      for (std::uint32_t i = 0; i < most_parts && i < step; ++i) whole += state.parts[i];
      if (!context.sync_seats()) return 0;
      context.send(make_reply(message, numbered(whole)));
    }
    return 0;
  }
};

}  // namespace cingulum::ring::testing
