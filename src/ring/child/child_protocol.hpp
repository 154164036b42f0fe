// The protocol between a program and the process that holds its device: commands as packets over a socket, each
// answered; messages and counters through shared memory, by the rings of ring/queue/bulk_ring.hpp. Both sides are of
// one build, so the bytes are those of the structs. In the child, control_descriptor is the socket and
// memory_descriptor the shared memory.
#pragma once

#include <cstdint>

#include "ring/actor/actor_counters.hpp"
#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/message.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

constexpr int control_descriptor = 3;
constexpr int memory_descriptor = 4;
constexpr std::uint32_t child_actor_count = 64;
constexpr std::uint32_t child_ring_capacity = 4096;

struct ChildSlot {
  Message message;
  std::uint32_t actor = 0;
  std::uint32_t generation =
      0;  // of the actor's launch: what an earlier one left behind is not taken for the new one's
  std::uint64_t unused = 0;
};

// A message of the child itself, with mark_control: an actor failed, ended, or the device is lost.
struct ChildEvent {
  static constexpr const char* message_name = "cingulum.ChildEvent";
  enum Kind : std::int32_t { failed, ended, lost };
  std::int32_t kind = failed;
  std::int32_t code = 0;
  char text[40] = {};
};

// An actor that was told to terminate has ended, and all that it sent came before this. To the parent, with
// mark_control.
struct ChildEnded {
  static constexpr const char* message_name = "cingulum.ChildEnded";
  std::uint64_t drained = 0;
  std::uint32_t ok = 0;
  std::uint32_t error_kind = 0;
  char text[32] = {};
};

// Nobody waits any more for the answers to this request. To the child, with mark_control.
struct ChildCancel {
  static constexpr const char* message_name = "cingulum.ChildCancel";
  std::uint64_t correlation = 0;
};

// How much of what an actor sent has left the parent's hands: the child holds back what exceeds it.
struct alignas(line_bytes) ChildCredit {
  std::uint64_t outputs = 0;  // that were read
  std::uint64_t parts = 0;    // answers of streams that found room
};
constexpr std::uint64_t unlimited_credit = std::uint64_t{1} << 62;
// Answers of streams under way to the parent, of each actor.
constexpr std::uint64_t child_part_window = 64;

struct ChildMemory {
  RingLine to_child_writer;
  RingLine to_child_reader;
  RingLine from_child_writer;
  RingLine from_child_reader;
  RingLine parent_beat;
  RingLine child_beat;
  char lost_text[512];  // of ChildEvent::lost, whose own text is too short; written before that event
  ActorCounters counters[child_actor_count];  // written by the child
  ChildCredit credit[child_actor_count];      // written by the parent
  ChildSlot to_child[child_ring_capacity];
  ChildSlot from_child[child_ring_capacity];
};

// terminate is answered when it begins; ChildEnded says when it is done.
enum class ChildCommand : std::uint32_t { launch, activate, deactivate, reactivate, terminate, leave };

struct ChildRequest {
  ChildCommand command = ChildCommand::launch;
  std::uint32_t actor = 0;
  std::uint32_t generation = 0;
  RingKind kind = RingKind::fast;
  std::uint32_t inbox_capacity = 0;
  std::uint32_t outbox_capacity = 0;
  std::uint32_t drain = 0;
  std::uint32_t argument_bytes = 0;
  std::uint64_t timeout_ns = 0;
  std::uint64_t stall_limit_ns = 0;
  char body[64] = {};
  unsigned char arguments[body_capacity] = {};
};

struct ChildReply {
  std::uint32_t ok = 0;
  std::uint32_t error_kind = 0;
  char text[512] = {};
};

}  // namespace cingulum::ring
