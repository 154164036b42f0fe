// What an actor body is written on. A body is a trivially copyable callable templated over its context; the same body
// runs as a CPU thread (ring/cpu/cpu_context.hpp) and as a persistent CUDA block (ring/cuda). Example:
//   struct Echo {
//     template <class Context>
//     CGL_HD int operator()(Context& context) const {
//       Message message;
//       while (context.receive(message)) context.send(message);
//       return 0;  // another number is a failure with this code
//     }
//   };
// Lanes: on a CPU there is one; on a device every thread of the block runs the body, and every call of the context is
// made by all of them together with the same arguments. receive gives all lanes the same message; send and emit send
// one message. Work is split by lane()/lanes() and joined by sync(). Local variables are per lane; what lanes share
// lives in state<S>() or, faster and smaller, in block_memory<S>(). When receive or try_receive says that it is over,
// the body returns soon: a body that does not is reported as stalled.
//
// Seats: an actor of a grid may be given several blocks (ActorOptions::seats), which all run the body; elsewhere there
// is one. receive, try_receive, peek, is_wanted, buffer, reply_buffer, send, emit and sync_seats are made by all of
// them together: every seat is given the same answer, and what the first one sends is sent. Work is split by
// seat()/seats() as well and joined by sync_seats(); state<S>() is shared by all of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

constexpr std::uint32_t port_count = 16;

// Bytes of state that an actor may share between its lanes; zeroed whenever the body starts.
constexpr std::uint32_t state_capacity = 4096;

// Room for a large answer, from the actor's own ring of buffers (GridOptions::reply_buffers, ActorOptions of a CPU
// actor). A message that begins with the handle hands it over.
struct ReplySpace {
  BufferHandle handle;  // of all its bytes
  void* bytes = nullptr;
  CGL_HD explicit operator bool() const { return bytes != nullptr; }
  // A handle of the first `count` bytes: what the reader is to see.
  [[nodiscard]] CGL_HD BufferHandle filled(std::uint64_t count) const {
    BufferHandle part = handle;
    part.bytes = count & ((std::uint64_t{1} << 48) - 1);
    return part;
  }
};

// What a body asks for by `static constexpr std::uint32_t block_bytes = n;`: fast memory of a block, for its lanes.
template <class Body>
CGL_HD constexpr std::uint32_t block_bytes_of() {
  if constexpr (requires { Body::block_bytes; }) {
    return Body::block_bytes;
  } else {
    return 0;
  }
}

template <class C>
concept ActorContext = requires(C& context, Message& message, const Message& to_send, std::uint32_t port,
                                std::uint64_t& word) {
  // Waits for the next message, most urgent band first. False: drained and terminating, or told to stop; the body
  // returns. An actor that is deactivated waits here, whatever is in its queue.
  { context.receive(message) } -> std::same_as<bool>;
  // taken, empty (also while deactivated) or closed.
  { context.try_receive(message) } -> std::same_as<GetStatus>;
  // The message that receive would give now, which stays where it is; false: none waits. For long work that a newer
  // message makes useless (see skip_to_newest). On a device it costs a read over the bus.
  { context.peek(message) } -> std::same_as<bool>;
  // Sends an answer: to the requester if `to_send` carries mark_request, else to the actors wired to port 0, else to
  // the output that Runtime::receive reads. Waits for room under policy block; gives up with `closed` when told to
  // stop.
  { context.send(to_send) } -> std::same_as<PutStatus>;
  // Sends to every actor wired to `port` (0 to 15). A port with none answers `closed`. With several, the worst
  // answer.
  { context.emit(port, to_send) } -> std::same_as<PutStatus>;
  // Whether the actor was told to stop without draining. For long work between receives, together with heartbeat().
  { context.should_stop() } -> std::same_as<bool>;
  // Whether somebody still waits for answers to this request; true of a message that is none. For long work, and
  // between the parts of an answer. On a device it costs a read over the bus.
  { context.is_wanted(to_send) } -> std::same_as<bool>;
  // Says that the actor lives though it calls no receive: keeps a long piece of work from being reported as stalled.
  {context.heartbeat()};
  // Monotone nanoseconds; the origin is the device's.
  { context.time_ns() } -> std::same_as<std::uint64_t>;
  { context.lane() } -> std::same_as<std::uint32_t>;
  { context.lanes() } -> std::same_as<std::uint32_t>;
  {context.sync()};
  // The actor's own number, as in Message::source().
  { context.self() } -> std::same_as<std::uint16_t>;
  // The bytes behind a handle, as this actor's side addresses them; null when it is stale.
  { context.buffer(BufferHandle{}) } -> std::same_as<void*>;
  // The reply buffer in hand, or the next of the actor's ring, waiting until a reader has given one back. Sending a
  // message that begins with its handle hands it over; a body that fails before finds the same one again. Null: told to
  // stop, or the actor has no reply buffers.
  { context.reply_buffer() } -> std::same_as<ReplySpace>;
  // Words in buffers by which actors on one host or one device wait for each other; any lane calls these for itself.
  // What all lanes wrote before a sync() is seen by every actor that reads the word a lane writes after it, and by all
  // lanes of that actor after their own sync().
  { context.read_shared(word) } -> std::same_as<std::uint64_t>;
  {context.write_shared(word, word)};
  // One pause in a loop that waits for such a word; any lane calls it for itself.
  {context.back_off()};
  // S& of the actor, shared by its lanes, zero bytes at the start. S is trivially copyable, at most state_capacity
  // bytes.
  { context.template state<std::uint64_t>() } -> std::same_as<std::uint64_t&>;
  // S* in the block's own memory (shared memory on CUDA), as the last body left it; null when the body asked for less
  // than an S (block_bytes_of). Alignment up to 16.
  { context.template block_memory<std::uint64_t>() } -> std::same_as<std::uint64_t*>;
  // Which of the actor's seats this is, and how many there are.
  { context.seat() } -> std::same_as<std::uint32_t>;
  { context.seats() } -> std::same_as<std::uint32_t>;
  // All lanes of all seats meet: what each wrote before is seen by all after. False: one of them has left the body, or
  // the actor is told to stop; the body returns.
  { context.sync_seats() } -> std::same_as<bool>;
};

// A message of the type that was asked for; false: the body is to return, as after receive.
template <MessagePayload T>
struct Received {
  Message message;
  T payload = {};
  bool is_there = false;
  CGL_HD explicit operator bool() const { return is_there; }
};

// context.receive<T>(): the next message that holds a T. A request of another type is answered with a failure, another
// message is passed over.
CGL_HD_GENERIC template <MessagePayload T, class Context>
[[nodiscard]] CGL_HD Received<T> receive_only(Context& context) {
  Received<T> received;
  while (context.receive(received.message)) {
    if (holds<T>(received.message)) {
      received.payload = payload<T>(received.message);
      received.is_there = true;
      break;
    }
    if (received.message.has(mark_request)) context.send(make_failure(received.message, failure_wrong_type));
  }
  return received;
}

// Called with the message that was received last: takes the newest that waits in its place. Requests that are passed
// over end with failure_superseded. False: as receive.
CGL_HD_GENERIC template <class Context>
[[nodiscard]] CGL_HD bool skip_to_newest(Context& context, Message& message) {
  Message newer;
  while (context.peek(newer)) {
    if (message.has(mark_request)) context.send(make_failure(message, failure_superseded));
    if (!context.receive(message)) return false;
  }
  return true;
}

// 0: ended as it should. A body that returns nothing ends so.
CGL_HD_GENERIC template <class Body, class Context>
CGL_HD int run_body(const Body& body, Context& context) {
  Body own = body;  // each start begins with the body as it was given
  if constexpr (std::is_void_v<decltype(own(context))>) {
    own(context);
    return 0;
  } else {
    return own(context);
  }
}

}  // namespace cingulum::ring
