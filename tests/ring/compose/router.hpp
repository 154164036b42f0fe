// The body of the composed test: passes tokens along its wires by a rule that a plain model can follow, answers
// requests once or many times, reads buffers, and fails when it is told to. The same on threads, grids and CUDA.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"

namespace cingulum::ring::testing {

enum class TokenKind : std::uint32_t {
  plain,    // to the output at the end of its way
  request,  // answered at the end of its way
  stream,   // answered `count` times and once more at the end of its way
  failing   // the body fails at the end of its way
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
    }
    return 0;
  }
};

}  // namespace cingulum::ring::testing
