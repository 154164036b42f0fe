// The actors of the soak (ring_soak.cpp): sources that make numbered messages and sinks that check them one by one, the
// same on CPU threads, on the emulated grid and on CUDA. Each message carries its sender, its sequence and a checksum
// over its payload of 8 to 48 bytes; every 64th carries a handle to a buffer whose bytes the checksum covers too.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"

namespace cingulum::ring::soak {

constexpr std::uint32_t most_senders = 8;      // to one sink
constexpr std::uint32_t handle_interval = 64;  // every so many messages name a buffer
constexpr std::uint32_t buffer_words = 8;
// Buffers of one sender. A buffer is written again after pool_size * handle_interval messages: more than fit all rings
// between sender and sink, so that nobody reads it then.
constexpr std::uint32_t pool_size = 256;
constexpr std::uint32_t messages_per_go = 256;
constexpr std::uint32_t message_type_of_soak = fnv1a("Soak");

// "Make so many messages."
struct Go {
  static constexpr const char* message_name = "SoakGo";
  std::uint64_t count = 0;
};
// "Fail." Not a numbered message: a body that fails at it has lost none.
struct Poison {
  static constexpr const char* message_name = "SoakPoison";
};

// What a sink knows of one sender. Kept in memory of the host's, so that it outlasts bodies, actors and grids.
struct Tally {
  std::uint64_t next = 0;  // the sequence that is expected
  std::uint64_t taken = 0;
  std::uint64_t missing = 0;  // skipped and not seen since
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t gap_begin = 0;  // the last gap: what comes from within it is late, anything older is a duplicate
  std::uint64_t gap_end = 0;

  CGL_HD void take(std::uint64_t sequence) {
    if (sequence == next) {
      ++taken;
      ++next;
    } else if (sequence > next) {
      missing += sequence - next;
      gap_begin = next;
      gap_end = sequence;
      next = sequence + 1;
      ++taken;
    } else if (sequence >= gap_begin && sequence < gap_end) {
      ++reordered;
      --missing;
      ++taken;
    } else {
      ++duplicated;
    }
  }
};
struct SinkLedger {
  Tally senders[most_senders];
  std::uint64_t torn = 0;
  std::uint64_t strange = 0;  // of no type or sender that was sent
};

// What a sender has: how far it is, and its buffers, as its own side addresses them.
struct SenderLedger {
  std::uint64_t next = 0;
};
struct Pool {
  std::uint64_t* words = nullptr;  // pool_size * buffer_words
  const BufferHandle* handles = nullptr;
};

CGL_HD inline std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15ull;
  return value ^ (value >> 29);
}

struct Payload {
  std::uint64_t words[payload_capacity / 8];
};
// The loops have a fixed number of turns, so that a GPU keeps the words in registers.
constexpr std::uint32_t most_words = payload_capacity / 8;
CGL_HD inline std::uint64_t checksum(const Payload& payload, std::uint32_t count, const std::uint64_t* buffer) {
  std::uint64_t sum = mix(count + (buffer != nullptr ? 64u : 0u));
  for (std::uint32_t i = 0; i < most_words; ++i) {
    if (i < count) sum = mix(sum ^ payload.words[i]);
  }
  if (buffer != nullptr) {
    for (std::uint32_t i = 0; i < buffer_words; ++i) sum = mix(sum ^ buffer[i]);
  }
  return sum;
}

// All lanes make the same message; the first writes the buffer.
CGL_HD inline Message make(std::uint32_t sender, std::uint64_t sequence, const Pool& pool, bool writes_buffer) {
  const std::uint64_t stamp = sequence | (std::uint64_t{sender} << 48);
  const bool with_handle = pool.words != nullptr && sequence % handle_interval == 0;
  const auto count = with_handle ? 6u : 1 + static_cast<std::uint32_t>(mix(stamp)) % 6;
  Payload payload = {};
  std::uint64_t made[buffer_words];
  const std::uint64_t* buffer = nullptr;
  for (std::uint32_t i = 0; i < most_words; ++i) payload.words[i] = i < count ? mix(stamp + i) : 0;
  if (with_handle) {
    const auto at = static_cast<std::uint32_t>(sequence / handle_interval % pool_size);
    for (std::uint32_t i = 0; i < buffer_words; ++i) made[i] = mix(stamp * 3 + i);
    if (writes_buffer) {
      for (std::uint32_t i = 0; i < buffer_words; ++i) pool.words[at * buffer_words + i] = made[i];
    }
    buffer = made;
    memcpy(payload.words, pool.handles + at, sizeof(BufferHandle));
    payload.words[2] = stamp;
  } else {
    payload.words[0] = stamp;
  }
  Message message;
  message.header.type = message_type_of_soak;
  message.header.correlation = checksum(payload, count, buffer);
  message.set_band(Band::normal);
  message.set_payload_bytes(count * 8);
  if (with_handle) message.header.flags |= mark_handle;
  memcpy(message.payload, payload.words, sizeof payload.words);
  return message;
}

// `find_buffer(handle)` answers the bytes, or null.
template <class FindBuffer>
CGL_HD inline void check(const Message& message, SinkLedger& ledger, FindBuffer&& find_buffer) {
  if (message.header.type != message_type_of_soak) {
    ++ledger.strange;
    return;
  }
  const std::uint32_t count = message.payload_bytes() / 8;
  Payload payload;
  memcpy(payload.words, message.payload, sizeof payload.words);
  const std::uint64_t* buffer = nullptr;
  std::uint64_t stamp = payload.words[0];
  if (message.has(mark_handle)) {
    BufferHandle handle;
    memcpy(&handle, payload.words, sizeof handle);
    buffer = static_cast<const std::uint64_t*>(find_buffer(handle));
    stamp = payload.words[2];
    if (buffer == nullptr) {
      ++ledger.torn;
      return;
    }
  }
  if (count == 0 || count > 6 || checksum(payload, count, buffer) != message.header.correlation) {
    ++ledger.torn;
    return;
  }
  const std::uint64_t sender = stamp >> 48;
  if (sender >= most_senders) {
    ++ledger.strange;
    return;
  }
  ledger.senders[sender].take(stamp & 0xffffffffffffull);
}

struct Source {
  SenderLedger* ledger = nullptr;
  Pool pool;
  std::uint32_t sender = 0;

  template <class Context>
  CGL_HD int operator()(Context& context) const {
    std::uint64_t next = ledger->next;
    Message message;
    int code = 0;
    while (context.receive(message)) {
      if (holds<Poison>(message)) {
        code = 1;
        break;
      }
      const std::uint64_t count = payload<Go>(message).count;
      for (std::uint64_t i = 0; i < count; ++i) {
        const PutStatus put = context.send(make(sender, next, pool, context.lane() == 0));
        if (put != PutStatus::stored) break;
        ++next;
      }
    }
    if (context.lane() == 0) ledger->next = next;
    return code;
  }
};

struct Sink {
  SinkLedger* ledger = nullptr;

  template <class Context>
  CGL_HD int operator()(Context& context) const {
    SinkLedger mine = *ledger;  // nearer than the ledger's memory
    Message message;
    int code = 0;
    while (context.receive(message)) {
      if (holds<Poison>(message)) {
        code = 1;
        break;
      }
      void* bytes = nullptr;
      if (message.has(mark_handle)) {
        BufferHandle handle;
        memcpy(&handle, message.payload, sizeof handle);
        bytes = context.buffer(handle);
      }
      if (context.lane() == 0) check(message, mine, [&](BufferHandle) { return bytes; });
    }
    if (context.lane() == 0) *ledger = mine;
    return code;
  }
};

}  // namespace cingulum::ring::soak
