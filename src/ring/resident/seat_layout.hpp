// The memory that a resident grid and its host share: what one seat (the place of one actor, a block of the persistent
// kernel) reads and writes. Every word has one writer; lines of 128 bytes belong to one side, so that neither takes the
// other's line away. Host and device speak through plain loads and stores of naturally aligned words, which are atomic
// at system scope on every GPU, whatever it says about atomic read-modify-write over the bus. Compiled by the host
// compiler, by nvcc and by NVRTC.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "ring/actor/actor_context.hpp"
#include "ring/actor/actor_counters.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

enum class RingKind : std::uint32_t {
  none,
  fast,  // FastSlot: data and number in each word
  bulk,  // Message: published by the writer's line
};

// One ring as a seat sees it: fast_ring.hpp and bulk_ring.hpp describe the protocols. A seat that leaves stores its
// positions in its lines (the writer's of its outputs, the reader's of its inputs), from which its successor goes on.
struct SeatRing {
  void* slots;
  RingLine* writer;
  RingLine* reader;
  std::uint32_t capacity;  // a power of two
  RingKind kind;
};

// What the host commands a seat. The word holds a running number above the command, so that the seat's answer (the
// same word) acknowledges which command it has seen.
enum class SeatCommand : std::uint32_t {
  vacate,  // no actor sits here
  run,
  hold,          // deactivated: nothing is delivered
  drain,         // end when the inputs are empty
  stop,          // end now
  restart,       // after a failure: the body begins again with cleared state
  restart_held,  // the same for an actor that is deactivated
  leave,         // the block ends
};

CGL_HD constexpr std::uint64_t command_word(std::uint64_t number, SeatCommand command) {
  return (number << 8) | static_cast<std::uint64_t>(command);
}
CGL_HD constexpr SeatCommand command_of(std::uint64_t word) {
  return static_cast<SeatCommand>(word & 0xff);
}

// Nothing is delivered.
CGL_HD constexpr bool is_hold(SeatCommand command) {
  return command == SeatCommand::hold || command == SeatCommand::restart_held;
}

enum class SeatState : std::uint32_t {
  none,  // the grid has not started
  vacant,
  running,
  held,
  failed,  // the body returned an error; restart, stop or vacate
  ended,   // the body returned
  parked,  // event mode: the grid has ended for want of work
  left,    // the block has ended; LeaveReason says why
};

enum class LeaveReason : std::uint32_t {
  none,
  commanded,    // by the host
  host_silent,  // the host's beat has not changed for the lease
  time_limit,   // the grid's own limit
};

// Written by the host alone. All words lie in one sector: one read over the bus.
struct alignas(line_bytes) SeatHostLine {
  std::uint64_t command;  // command_word()
  std::uint64_t beat;     // changes as long as the host lives
};

// Written by the seat alone.
struct alignas(line_bytes) SeatDeviceLine {
  std::uint64_t acknowledged;  // the last command that was seen
  std::uint64_t state;         // SeatState; stored with release after all that belongs to it
  std::uint64_t failures;  // how often a body on this seat has failed: a failure that follows a restart at once is seen
  std::uint64_t failure;   // what the body returned
  std::uint64_t leave_reason;
  std::uint64_t drained;      // messages handled after the command to drain
  std::uint64_t overtaken;    // messages of the inbox that were overwritten before they were read
  std::uint64_t had_message;  // whether the body had a message in hand when it returned
  std::uint64_t working_on;   // correlation of the request that the body had when it returned; 0: none
};

// Places for requests that nobody waits for any more. A later one takes the place of an earlier: its answers are then
// made and thrown away.
constexpr std::uint32_t abandoned_request_count = 1024;
// The reply buffers of a seat that are free (ring/actor/reply_ring.hpp), as the seat sees them.
struct SeatReplies {
  const ReplySlot* slots;
  const RingLine* writer;  // the host's
  RingLine* reader;        // the seat's: how many were handed over, stored when it leaves
  std::uint32_t capacity;  // a power of two; 0: none
  std::uint32_t unused;
};

// The words by which the seats of one actor wait for each other, in device memory; zero when the actor is activated.
// Every word has one writer. Counts hold the number of the body's start above them (team_word), so that those of an
// earlier one are less.
struct alignas(line_bytes) TeamLine {
  std::uint64_t arrived;          // calls of sync_seats to which this seat has come
  std::uint64_t taken;            // broadcasts that this seat has read
  std::uint64_t left;             // the last start whose body has returned here
  std::uint64_t code;             // what it returned
  std::uint64_t starts;           // the first seat's: how often the body was started
  std::uint64_t broadcast_count;  // likewise: calls whose outcome it has broadcast
};
// The outcome of a call that the first seat makes for all, as the others read it.
struct alignas(line_bytes) TeamBroadcast {
  std::uint64_t status;  // GetStatus
  std::uint64_t message[8];
};
struct Team {
  TeamBroadcast broadcasts[2];  // of even and odd calls
  TeamLine lines[1];            // as many as there are seats
};
CGL_HD constexpr std::uint64_t team_bytes(std::uint32_t seats) {
  return sizeof(TeamBroadcast) * 2 + std::uint64_t{seats} * sizeof(TeamLine);
}
CGL_HD constexpr std::uint64_t team_word(std::uint64_t start, std::uint64_t count) {
  return start << 32 | count;
}

constexpr std::uint32_t largest_edge_count = 16;  // from other actors, and to them
constexpr std::uint32_t body_capacity = 256;      // bytes of a body's own members

// What a seat needs to know of its actor, before the command that seats it. Written by the host while the seat is
// vacant.
struct alignas(line_bytes) SeatPlan {
  std::uint32_t actor;   // which body of the grid's program
  std::uint32_t number;  // the actor's, as in Message::source()
  std::uint32_t fresh;   // the state is cleared before the body starts; 0 after parking
  std::uint32_t edges_in_count;
  std::uint32_t edges_out_count;
  std::uint32_t rank;   // which of the actor's seats this is; the first has the rings
  std::uint32_t seats;  // of the actor
  std::uint32_t unused;
  Team* team;  // null: one seat alone
  SeatReplies replies;
  SeatRing inbox;   // from the host
  SeatRing outbox;  // to the host
  SeatRing edges_in[largest_edge_count];
  SeatRing edges_out[largest_edge_count];  // by port: port p has the edges port_start[p] .. port_start[p + 1]
  std::uint32_t port_start[port_count + 2];
  void* state;
  std::uint64_t state_bytes;
  alignas(16) unsigned char body[body_capacity];
};
static_assert(sizeof(SeatPlan) % 8 == 0);

struct Seat {
  SeatHostLine host;
  SeatDeviceLine device;
  ActorCounters counters;  // the seat's, stored about once a millisecond
  SeatPlan plan;
  RingLine inbox_writer;    // the host's
  RingLine inbox_reader;    // the seat's
  RingLine outbox_writer;   // the seat's
  RingLine outbox_reader;   // the host's
  RingLine replies_writer;  // the host's
  RingLine replies_reader;  // the seat's
};

// The same for all seats of a grid; passed to the kernel by value.
struct GridPlan {
  Seat* seats;
  std::uint64_t* votes;  // event mode: device memory, one word; see vote_to_park()
  const BufferEntry* buffers;
  const std::uint64_t* abandoned;  // mapped, written by the host: the request at its correlation's place, if it is it
  std::uint32_t seat_count;
  std::uint32_t buffer_count;
  std::uint32_t buffer_table;    // in the handles
  std::uint32_t spin_polls;      // polls without sleep
  std::uint32_t eager_polls;     // of the ring that spoke last, before anything else is looked at; 0: none
  std::uint32_t longest_nap_ns;  // the naps grow from 20 ns to this
  std::uint64_t lease_ns;
  std::uint64_t time_limit_ns;  // of this launch; 0 = none
  std::uint64_t park_after_ns;  // event mode: idle for so long, the grid ends; 0 = never
};

}  // namespace cingulum::ring
