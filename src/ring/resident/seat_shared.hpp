// What the lanes of a seat's block share: their memory, and what the mailbox posts there for the others. The host gives
// a block as much of it as SeatShared is large, and its body's block_bytes behind that. It does nothing by itself:
// ring/resident/seat_core.hpp does.
#pragma once

#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

// Messages that a block takes from or gives to a bulk ring at a time.
constexpr std::uint32_t seat_batch = 256;
// The block's shared memory.
struct SeatShared {
  Message in[2][seat_batch];  // alternately, so that one barrier a round is enough
  Message out[seat_batch];
  Message sending;  // of the mailbox, on its way from the first lane to all
  ReplySlot reply;  // that was taken last
  SeatPlan plan;
  std::uint64_t batch_position;
  std::uint64_t credit[2];   // of the ring in which there was no room
  std::uint64_t address[2];  // of the buffer that was looked up
  struct {
    std::uint64_t position;
    std::uint64_t credit;
  } outputs[1 + largest_edge_count];  // when an actor is seated: the outbox, then the edges
  std::uint32_t verdict[2];
  std::uint32_t count[2];
  std::uint32_t eager[2];  // with a message: Eager
  std::uint32_t left[2];   // and how many more this run of its ring has
};

// What the mailbox found, posted in shared memory; the other lanes read it behind the barrier.
enum class Verdict : std::uint32_t { message, batch, nothing, end, room, leave, occupy, vacate, restart };

constexpr std::uint32_t no_port = ~0u;

// The ring that spoke last, when it may be waited for alone.
enum class Eager : std::uint32_t { none, inbox, edge };

}  // namespace cingulum::ring
