// Messages to and from other processes and languages: msgpack maps with string keys, the fields of the struct in their
// order, then message_id, priority, correlation_id and last __type__, the type's name. It is the format of Python's
// ring kernels, byte for byte. Types are described by CGL_RING_FIELDS; a WireRegistry knows them by name. Bytes come
// from anywhere: unknown types and damage are errors that name type, field and byte. Inside the process messages travel
// as they lie in memory (ring/queue/message.hpp); nothing here is on that path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "ring/edge/message_fields.hpp"
#include "ring/edge/uuid.hpp"
#include "ring/edge/wire_value.hpp"
#include "ring/queue/message.hpp"

namespace cingulum::ring {

// What every message on the wire has besides its fields.
struct WireEnvelope {
  Uuid message_id;
  std::uint8_t priority = default_priority;  // higher is more urgent
  std::optional<Uuid> correlation_id;        // of an answer: the message_id of what it answers

  friend bool operator==(const WireEnvelope&, const WireEnvelope&) = default;
};

// The message that has no fields of its own.
struct RingKernelMessage {
  static constexpr const char* message_name = "RingKernelMessage";
};
CGL_RING_FIELDS(RingKernelMessage);

// A described type with its types erased: what encoding and decoding work on.
struct WireField {
  std::string_view name;
  Status (*write)(MsgpackWriter& writer, const void* message, WireBuffers& buffers) = nullptr;
  Status (*read)(MsgpackReader& reader, void* message, WireBuffers& buffers) = nullptr;
};

struct WireType {
  std::string_view name;
  std::size_t bytes = 0;            // of the struct; an empty one has 0
  bool begins_with_buffer = false;  // mark_handle of ring/queue/message.hpp
  std::span<const WireField> fields;
  void (*set_defaults)(void* message) = nullptr;
};

namespace detail {

template <DescribedMessage T, std::size_t index>
struct WireFieldOf {
  static constexpr auto described = std::get<index>(cgl_ring_fields(static_cast<const T*>(nullptr)));
  static Status write(MsgpackWriter& writer, const void* message, WireBuffers& buffers) {
    return write_value(writer, static_cast<const T*>(message)->*described.member, buffers);
  }
  static Status read(MsgpackReader& reader, void* message, WireBuffers& buffers) {
    return read_value(reader, static_cast<T*>(message)->*described.member, buffers);
  }
};

template <DescribedMessage T>
inline constexpr auto wire_fields = []<std::size_t... index>(std::index_sequence<index...>) {
  return std::array<WireField, sizeof...(index)>{
      WireField{WireFieldOf<T, index>::described.name, WireFieldOf<T, index>::write, WireFieldOf<T, index>::read}...};
}
(std::make_index_sequence<field_count<T>()>());

template <DescribedMessage T>
consteval bool begins_with_buffer() {
  if constexpr (field_count<T>() > 0) {
    constexpr auto first = std::get<0>(cgl_ring_fields(static_cast<const T*>(nullptr)));
    return is_number_buffer<std::remove_cvref_t<decltype(std::declval<T&>().*first.member)>>;
  }
  return false;
}

}  // namespace detail

template <DescribedMessage T>
inline constexpr WireType wire_type = {message_name<T>(), std::is_empty_v<T> ? 0 : sizeof(T),
                                       detail::begins_with_buffer<T>(), detail::wire_fields<T>,
                                       [](void* message) { *static_cast<T*>(message) = T{}; }};

// Appends. `message` points to the struct that `type` describes; `buffers` holds what its NumberBuffers name (without
// one a message that has such a field is refused). It fails for nothing else.
[[nodiscard]] Status encode_message(const WireType& type, const void* message, const WireEnvelope& envelope,
                                    BufferTable* buffers, std::vector<std::byte>& bytes);
// Keys that the type does not have are skipped, fields that are missing keep their defaults. The bytes must hold one
// message and nothing else; its __type__, where there is one, must be this type's. Arrays of NumberBuffer fields become
// buffers of the table, which belong to the caller.
[[nodiscard]] Result<WireEnvelope> decode_message(const WireType& type, std::span<const std::byte> bytes,
                                                  BufferTable* buffers, void* message);
// The __type__ of a message, or nothing where it has none.
[[nodiscard]] Result<std::optional<std::string_view>> wire_type_name(std::span<const std::byte> bytes);

template <DescribedMessage T>
[[nodiscard]] Result<std::vector<std::byte>> encode(const T& message, const WireEnvelope& envelope,
                                                    BufferTable* buffers = nullptr) {
  std::vector<std::byte> bytes;
  CGL_TRY(encode_message(wire_type<T>, &message, envelope, buffers, bytes));
  return bytes;
}

template <DescribedMessage T>
[[nodiscard]] Result<std::pair<T, WireEnvelope>> decode(std::span<const std::byte> bytes,
                                                        BufferTable* buffers = nullptr) {
  T message{};
  CGL_TRY_ASSIGN(WireEnvelope envelope, decode_message(wire_type<T>, bytes, buffers, &message));
  return std::pair{message, envelope};
}

// The types that an edge of the process speaks, by name and by the number that rings carry.
class WireRegistry {
 public:
  // `buffers`: where messages with NumberBuffer fields have their content; it must outlive the registry.
  explicit WireRegistry(BufferTable* buffers = nullptr) : buffers_(buffers) {}

  // Adding a type twice is fine; another type of the same name or number is an error.
  template <class T>
  requires DescribedMessage<T> && MessagePayload<T>
  [[nodiscard]] Status add() { return add(wire_type<T>); }
  [[nodiscard]] Status add(const WireType& type);  // which must live as long as the registry

  [[nodiscard]] const WireType* find(std::string_view name) const noexcept;
  [[nodiscard]] const WireType* find(std::uint32_t number) const noexcept;

  struct Decoded {
    Message message;  // its band is that of the priority; its correlation is 0
    WireEnvelope envelope;
  };
  [[nodiscard]] Result<Decoded> decode(std::span<const std::byte> bytes) const;
  // Appends. The envelope's priority is written, not the band.
  [[nodiscard]] Status encode(const Message& message, const WireEnvelope& envelope,
                              std::vector<std::byte>& bytes) const;

 private:
  BufferTable* buffers_;
  std::vector<std::pair<std::uint32_t, const WireType*>> types_;
};

}  // namespace cingulum::ring
