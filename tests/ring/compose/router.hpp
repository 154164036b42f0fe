// The body of the composed test: passes tokens along its wires by a rule that a plain model can follow, answers
// requests once or many times, by words or by reply buffers, alone or with all its seats, reads buffers, looks ahead,
// and fails when it is told to. The same on threads, grids and CUDA.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"

namespace cingulum::ring::testing {

enum class TokenKind : std::uint32_t {
  plain,               // to the output at the end of its way
  request,             // answered at the end of its way
  stream,              // answered `count` times and once more at the end of its way
  failing,             // the body fails at the end of its way
  failing_with_reply,  // likewise, with a reply buffer in hand
  gather,              // answered with a sum over `count` numbers that all lanes of all seats make
  large                // answered by `count` reply buffers and once more at the end of its way
};

struct Token {
  static constexpr const char* message_name = "Token";
  std::uint64_t id = 0;
  std::uint32_t hops = 0;  // actors that it is still to be passed on to
  TokenKind kind = TokenKind::plain;
  std::uint64_t count = 0;
};

// Answered with what the buffer holds.
struct BufferToken {
  static constexpr const char* message_name = "BufferToken";
  BufferHandle handle;
  std::uint64_t id = 0;
};

struct TokenAnswer {
  static constexpr const char* message_name = "TokenAnswer";
  std::uint64_t id = 0;
  std::uint64_t part = 0;
  std::uint64_t value = 0;
};

// A part of the answer to TokenKind::large.
struct LargeAnswer {
  static constexpr const char* message_name = "LargeAnswer";
  BufferHandle words;
  std::uint64_t id = 0;
  std::uint64_t part = 0;
};
constexpr std::uint64_t reply_words = 64;  // of a reply buffer
// How many of them a part fills.
CGL_HD inline std::uint64_t words_of_part(std::uint64_t part) {
  return reply_words - part % 8;
}

constexpr std::uint64_t stale_buffer = 0xdead;

CGL_HD inline std::uint64_t token_hash(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185ull;
  x ^= x >> 27;
  return x;
}
// The wire of `wires` that a token leaves by.
CGL_HD inline std::uint32_t wire_of(std::uint64_t id, std::uint32_t hops, std::uint32_t wires) {
  return static_cast<std::uint32_t>(token_hash(id * 31 + hops) % wires);
}

struct Router {
  std::uint32_t wires = 0;  // ports 1 to `wires` lead to one actor each

  // What the seats gather: a number from each of the lanes that take part.
  static constexpr std::uint32_t most_seats = 8;
  static constexpr std::uint32_t most_lanes = 64;
  struct State {
    std::uint64_t parts[most_seats * most_lanes];
  };
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (holds<BufferToken>(message)) {
        const BufferToken asked = payload<BufferToken>(message);
        const auto* const words = static_cast<const std::uint64_t*>(context.buffer(asked.handle));
        const TokenAnswer answer{asked.id, 0, words == nullptr ? stale_buffer : words[asked.id % 4]};
        context.send(make_reply(message, answer));
        continue;
      }
      if (!holds<Token>(message)) return 99;
      Token token = payload<Token>(message);
      if (token.hops != 0 && wires != 0) {
        const std::uint32_t port = 1 + wire_of(token.id, token.hops, wires);
        --token.hops;
        Message passed = make_message(token, message.header.correlation, message.band());
        passed.header.flags |= message.header.flags & (mark_request | mark_stream);
        if (context.emit(port, passed) != PutStatus::stored) return 98;
        continue;
      }
      if (token.kind == TokenKind::failing) return 7;
      if (token.kind == TokenKind::failing_with_reply) return context.reply_buffer() ? 7 : 96;
      if (token.kind == TokenKind::gather) {
        std::uint64_t sum = 0;
        if (!gather(context, token, sum)) return 0;
        context.send(make_reply(message, TokenAnswer{token.id, token.count, sum}));
        look_ahead(context, token);
        continue;
      }
      if (token.kind == TokenKind::large && !send_large(context, message, token)) return 0;
      if (token.kind == TokenKind::stream) {
        for (std::uint64_t part = 0; part < token.count && context.is_wanted(message); ++part) {
          const TokenAnswer answer{token.id, part, token_hash(token.id + part)};
          if (context.send(make_part(message, answer)) != PutStatus::stored) break;
        }
      }
      if (token.kind == TokenKind::plain) {
        context.send(make_message(token));
      } else {
        context.send(make_reply(message, TokenAnswer{token.id, token.count, token_hash(token.id + token.count)}));
      }
      look_ahead(context, token);
    }
    return 0;
  }

 private:
  // After some tokens: it takes nothing and sends nothing, so the model does not know of it.
  template <class Context>
  CGL_HD static void look_ahead(Context& context, const Token& token) {
    Message next;
    if (token.id % 3 == 1) static_cast<void>(context.peek(next));
  }

  // False: told to stop.
  template <class Context>
  CGL_HD static bool gather(Context& context, const Token& token, std::uint64_t& sum) {
    State& state = context.template state<State>();
    const std::uint32_t lanes = context.lanes() < most_lanes ? context.lanes() : most_lanes;
    const std::uint32_t all = context.seats() * lanes;
    if (context.lane() < lanes) {
      std::uint64_t part = 0;
      const std::uint32_t mine = context.seat() * lanes + context.lane();
      for (std::uint64_t i = mine; i < token.count; i += all) part += token_hash(token.id + i);
      state.parts[mine] = part;
    }
    if (!context.sync_seats()) return false;
    for (std::uint32_t i = 0; i < all; ++i) sum += state.parts[i];
    context.sync();  // all lanes have read before the next message lets another seat write
    return true;
  }

  // False: told to stop.
  template <class Context>
  CGL_HD static bool send_large(Context& context, const Message& message, const Token& token) {
    for (std::uint64_t part = 0; part < token.count && context.is_wanted(message); ++part) {
      const ReplySpace space = context.reply_buffer();
      if (!space) return false;
      auto* const words = static_cast<std::uint64_t*>(space.bytes);
      const std::uint64_t count = words_of_part(part);
      const std::uint32_t first = context.seat() * context.lanes() + context.lane();
      for (std::uint64_t i = first; i < count; i += std::uint64_t{context.seats()} * context.lanes()) {
        words[i] = token_hash(token.id + part * reply_words + i);
      }
      if (!context.sync_seats()) return false;
      const LargeAnswer answer{space.filled(count * sizeof(std::uint64_t)), token.id, part};
      if (context.send(make_part(message, answer)) != PutStatus::stored) break;
    }
    return true;
  }
};

}  // namespace cingulum::ring::testing
