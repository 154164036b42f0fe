// The message of the rings: 64 bytes, the same for host and device. 16 bytes of header (type, flags, correlation) and
// up to 48 of payload; what is larger travels as a BufferHandle (ring/actor/buffer_table.hpp) inside the payload.
// Actors, runtime, wire format and the CUDA kernels all speak it. It knows nothing of queues.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "numerics/portable.hpp"

namespace cingulum::ring {

constexpr std::uint32_t payload_capacity = 48;

// Four bands; a lower number is more urgent. On the wire a priority is 0 to 255, higher is more urgent.
enum class Band : std::uint8_t { system = 0, high = 1, normal = 2, low = 3 };
constexpr std::uint32_t band_count = 4;
constexpr std::uint8_t default_priority = 128;

CGL_HD constexpr Band band_of_priority(std::uint8_t priority) {
  return priority >= 224 ? Band::system : priority >= 160 ? Band::high : priority >= 64 ? Band::normal : Band::low;
}
// The lowest priority of a band; normal gives the default of the wire.
CGL_HD constexpr std::uint8_t priority_of_band(Band band) {
  return band == Band::system ? 224 : band == Band::high ? 160 : band == Band::normal ? default_priority : 0;
}

// Bits of MessageHeader::flags.
//   0-5 payload bytes   6-7 band   8-15 marks   16-31 number of the sending actor (0: a host thread)
enum MessageMark : std::uint32_t {
  mark_request = 1u << 8,   // `correlation` was given by Runtime::request; whoever answers last in a chain completes it
  mark_failed = 1u << 9,    // an answer that reports a failure; the payload is an int32 code
  mark_handle = 1u << 10,   // the payload begins with a BufferHandle
  mark_control = 1u << 11,  // of the runtime itself, never given to a body
  mark_more = 1u << 12,     // of an answer: further answers to the same request follow (make_part)
  mark_stream = 1u << 13    // of a request: who asks takes several answers (Runtime::request_stream)
};
constexpr std::uint32_t mark_bits = 0xff00u;

struct MessageHeader {
  std::uint32_t type = 0;         // FNV-1a of the type's name; 0 is no type
  std::uint32_t flags = 0;        // see above
  std::uint64_t correlation = 0;  // the sender's; a reply carries the same
};
static_assert(sizeof(MessageHeader) == 16);

struct alignas(16) Message {
  MessageHeader header;
  unsigned char payload[payload_capacity] = {};

  [[nodiscard]] CGL_HD std::uint32_t payload_bytes() const { return header.flags & 63u; }
  [[nodiscard]] CGL_HD Band band() const { return static_cast<Band>((header.flags >> 6) & 3u); }
  [[nodiscard]] CGL_HD bool has(MessageMark mark) const { return (header.flags & mark) != 0; }
  [[nodiscard]] CGL_HD std::uint16_t source() const { return static_cast<std::uint16_t>(header.flags >> 16); }

  CGL_HD void set_payload_bytes(std::uint32_t bytes) { header.flags = (header.flags & ~63u) | (bytes & 63u); }
  CGL_HD void set_band(Band band) {
    header.flags = (header.flags & ~(3u << 6)) | (static_cast<std::uint32_t>(band) << 6);
  }
  CGL_HD void set_source(std::uint16_t actor) {
    header.flags = (header.flags & 0xffffu) | (static_cast<std::uint32_t>(actor) << 16);
  }
};
static_assert(sizeof(Message) == 64 && std::is_trivially_copyable_v<Message>);

CGL_HD constexpr std::uint32_t fnv1a(const char* name) {
  std::uint32_t hash = 2166136261u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<std::uint8_t>(*name)) * 16777619u;
  return hash;
}

// A type that travels in a message: struct Sum { static constexpr const char* message_name = "Sum"; double value; };
// Pointers inside it are the author's mistake: they mean nothing on the other side.
template <class T>
concept MessagePayload = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> &&
                             (std::is_empty_v<T> ? 0 : sizeof(T)) <= payload_capacity
                         && alignof(T) <= 16 && requires {
  { T::message_name } -> std::convertible_to<const char*>;
}
&&fnv1a(T::message_name) != 0;

template <MessagePayload T>
inline constexpr std::uint32_t message_type = fnv1a(T::message_name);

// memcpy of a payload. On a device by words where its alignment allows, and not of integers: those the compiler takes
// apart byte by byte when the message lies in registers, because its payload begins as bytes that are zero.
template <class T>
CGL_HD void copy_payload(void* to, const void* from) {
#if defined(__CUDA_ARCH__)
  using Word = std::conditional_t<sizeof(T) % 8 == 0 && alignof(T) % 8 == 0, double, float>;
  if constexpr (alignof(T) % alignof(Word) == 0 && sizeof(T) % sizeof(Word) == 0) {
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / sizeof(Word); ++i) {
      static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
    }
    return;
  }
#endif
  memcpy(to, from, sizeof(T));
}

namespace detail {
// Turns into a BufferHandle (ring/actor/buffer_handle.hpp) and into nothing else.
struct AnyHandle {
  template <class H>
  requires requires { typename H::names_a_buffer; }
  CGL_HD operator H() const;  // never called
};
}  // namespace detail

// Whether the first member of a payload is a BufferHandle, also inside another struct. Of aggregates; a payload with
// constructors sets mark_handle itself.
template <class T>
inline constexpr bool begins_with_handle = requires {
  T{detail::AnyHandle{}};
};

template <MessagePayload T>
CGL_HD Message make_message(const T& payload, std::uint64_t correlation = 0, Band band = Band::normal) {
  Message message;
  message.header.type = message_type<T>;
  message.header.correlation = correlation;
  message.set_band(band);
  if constexpr (!std::is_empty_v<T>) {
    message.set_payload_bytes(sizeof(T));
    copy_payload<T>(message.payload, &payload);
  }
  if constexpr (begins_with_handle<T>) message.header.flags |= mark_handle;
  return message;
}

// Whether `message` holds a T. payload<T> presupposes it; visit and the contexts' receive<T> ask for it themselves.
template <MessagePayload T>
[[nodiscard]] CGL_HD bool holds(const Message& message) {
  return message.header.type == message_type<T> && message.payload_bytes() == (std::is_empty_v<T> ? 0 : sizeof(T));
}

template <MessagePayload T>
[[nodiscard]] CGL_HD T payload(const Message& message) {
  T value;
  if constexpr (!std::is_empty_v<T>) copy_payload<T>(&value, message.payload);
  return value;
}

// Calls `visitor` with the payload, whichever of these types it is. False: it is none of them.
template <MessagePayload... Ts, class Visitor>
CGL_HD bool visit(const Message& message, Visitor&& visitor) {
  return ((holds<Ts>(message) && (static_cast<void>(visitor(payload<Ts>(message))), true)) || ...);
}

// The last or only answer to `request`: same correlation, band and request mark, so that it finds the one who waits.
template <MessagePayload T>
[[nodiscard]] CGL_HD Message make_reply(const Message& request, const T& payload) {
  Message reply = make_message(payload, request.header.correlation, request.band());
  reply.header.flags |= request.header.flags & mark_request;
  return reply;
}

// An answer after which others to the same request follow; the last one is made by make_reply. Who asked for one answer
// alone takes the first that comes, and the rest is late.
template <MessagePayload T>
[[nodiscard]] CGL_HD Message make_part(const Message& request, const T& payload) {
  Message part = make_reply(request, payload);
  part.header.flags |= mark_more;
  return part;
}

// An answer that reports a failure: an error of this code for who asked.
[[nodiscard]] CGL_HD inline Message make_failure(const Message& request, std::int32_t code) {
  Message reply;
  reply.header.correlation = request.header.correlation;
  reply.set_band(request.band());
  reply.set_payload_bytes(sizeof code);
  reply.header.flags |= (request.header.flags & mark_request) | mark_failed;
  copy_payload<std::int32_t>(reply.payload, &code);
  return reply;
}
// The code of a request whose payload is of a type that the actor does not take.
constexpr std::int32_t failure_wrong_type = -22;
// The code of a request that the actor dropped for a newer one.
constexpr std::int32_t failure_superseded = -125;

}  // namespace cingulum::ring
