// A gate between the actors of this process and others: bytes in, messages of the rings out, and the other way round,
// with identities kept so that answers find what they answer. Outside, messages are named by UUIDs; inside, by a
// correlation of 64 bits. The gate remembers the last `capacity` of both directions and forgets the oldest, which it
// counts. It does not carry bytes anywhere: sockets and pipes are the caller's. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/edge/wire.hpp"
#include "ring/queue/message.hpp"

namespace cingulum::ring {

class WireGate {
 public:
  // The registry must outlive the gate.
  explicit WireGate(const WireRegistry& registry, std::uint32_t capacity = 4096);

  // A message from outside. Its correlation is the gate's number for it, so that an actor's answer, which carries the
  // same, leaves as an answer to it; an answer from outside to a message that left carries that message's correlation
  // and mark.
  [[nodiscard]] Result<Message> enter(std::span<const std::byte> bytes);

  // Appends. An answer to a message that entered names it; any other leaves with an identity of its own, by which an
  // answer is known. The priority is the band's, or that of the message that is answered.
  [[nodiscard]] Status leave(const Message& message, std::vector<std::byte>& bytes);

  // Answers whose other half was forgotten or never known; they pass without a correlation.
  [[nodiscard]] std::uint64_t unmatched() const;

 private:
  struct Entered {
    std::uint64_t number = 0;
    Uuid message_id;
    std::uint8_t priority = default_priority;
  };
  struct Left {
    std::uint64_t number = 0;
    std::uint64_t correlation = 0;
    std::uint32_t marks = 0;
  };

  const WireRegistry& registry_;
  const std::uint64_t key_;   // the first half of every identity that this gate gives
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Entered> entered_;
  std::vector<Left> left_;
  std::uint64_t last_entered_ = 0;
  std::uint64_t last_left_ = 0;
  std::uint64_t unmatched_ = 0;
};

}  // namespace cingulum::ring
