#include "ring/edge/wire.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/edit_distance.hpp"

namespace cingulum::ring {
namespace {

constexpr std::string_view id_key = "message_id";
constexpr std::string_view priority_key = "priority";
constexpr std::string_view correlation_key = "correlation_id";
constexpr std::string_view type_key = "__type__";
constexpr std::size_t longest_name_shown = 64;

Result<std::optional<Uuid>> read_optional_uuid(MsgpackReader& reader) {
  CGL_TRY_ASSIGN(const MsgpackKind kind, reader.peek());
  if (kind == MsgpackKind::nil) {
    CGL_TRY(reader.nil());
    return std::nullopt;
  }
  return read_uuid(reader, true).map([](const Uuid& uuid) { return std::optional(uuid); });
}

Status read_own_type(MsgpackReader& reader, const WireType& type) {
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const std::string_view name, reader.text());
  if (name == type.name) return {};
  return fail(ErrorKind::corrupt, "byte {}: the message is a '{}'", at, name.substr(0, longest_name_shown));
}

Result<WireEnvelope> read_map(const WireType& type, MsgpackReader& reader, void* message, WireBuffers& buffers) {
  WireEnvelope envelope;
  bool has_id = false;
  // The four keys of every message come after the type's own in `seen`.
  const std::size_t own = type.fields.size();
  std::vector<bool> seen(own + 4);
  CGL_TRY_ASSIGN(const std::uint32_t pairs, reader.map_header());
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const std::size_t key_at = reader.offset();
    CGL_TRY_ASSIGN(const std::string_view key, reader.text());
    const auto field =
        std::find_if(type.fields.begin(), type.fields.end(), [&](const WireField& one) { return one.name == key; });
    std::size_t index = static_cast<std::size_t>(field - type.fields.begin());
    Status read;
    if (field != type.fields.end()) {
      read = field->read(reader, message, buffers);
    } else if (key == id_key) {
      read = read_uuid(reader, true).map([&](const Uuid& uuid) { envelope.message_id = uuid; });
      has_id = true;
    } else if (key == priority_key) {
      index = own + 1;
      read = read_integer(reader, envelope.priority);
    } else if (key == correlation_key) {
      index = own + 2;
      read = read_optional_uuid(reader).map([&](const std::optional<Uuid>& uuid) { envelope.correlation_id = uuid; });
    } else if (key == type_key) {
      index = own + 3;
      read = read_own_type(reader, type);
    } else {
      CGL_TRY(reader.skip());
      continue;
    }
    if (!read) return add_context<WireEnvelope>(tl::make_unexpected(std::move(read.error())), "field '{}'", key);
    if (seen[index]) return fail(ErrorKind::corrupt, "byte {}: the key '{}' comes twice", key_at, key);
    seen[index] = true;
  }
  // As the other side does it: a message that came without an identity gets one.
  if (!has_id) envelope.message_id = Uuid::random();
  return envelope;
}

}  // namespace

Status encode_message(const WireType& type, const void* message, const WireEnvelope& envelope, BufferTable* buffers,
                      std::vector<std::byte>& bytes) {
  constexpr std::size_t usual_size = 192;
  if (bytes.capacity() - bytes.size() < usual_size) bytes.reserve(bytes.size() + usual_size);
  WireBuffers context{buffers, {}};
  MsgpackWriter writer(bytes);
  writer.map_header(static_cast<std::uint32_t>(type.fields.size() + 4));
  for (const WireField& field : type.fields) {
    writer.text(field.name);
    CGL_TRY(add_context(field.write(writer, message, context), "encoding a message '{}': field '{}'", type.name,
                        field.name));
  }
  writer.text(id_key);
  write_uuid(writer, envelope.message_id);
  writer.text(priority_key);
  writer.unsigned_integer(envelope.priority);
  writer.text(correlation_key);
  envelope.correlation_id ? write_uuid(writer, *envelope.correlation_id) : writer.nil();
  writer.text(type_key);
  writer.text(type.name);
  return {};
}

Result<WireEnvelope> decode_message(const WireType& type, std::span<const std::byte> bytes, BufferTable* buffers,
                                    void* message) {
  type.set_defaults(message);
  MsgpackReader reader(bytes);
  WireBuffers context{buffers, {}};
  Result<WireEnvelope> envelope = read_map(type, reader, message, context);
  if (envelope && reader.remaining() > 0) {
    envelope = fail(ErrorKind::corrupt, "byte {}: {} bytes follow the end of the message", reader.offset(),
                    reader.remaining());
  }
  if (envelope) return envelope;
  for (const BufferHandle& handle : context.made) static_cast<void>(buffers->release(handle));
  type.set_defaults(message);
  return add_context(std::move(envelope), "decoding a message '{}' of {} bytes", type.name, bytes.size());
}

Result<std::optional<std::string_view>> wire_type_name(std::span<const std::byte> bytes) {
  MsgpackReader reader(bytes);
  std::optional<std::string_view> name;
  CGL_TRY_ASSIGN(const std::uint32_t pairs, reader.map_header());
  for (std::uint32_t i = 0; i < pairs; ++i) {
    CGL_TRY_ASSIGN(const std::string_view key, reader.text());
    if (key == type_key) {
      CGL_TRY_ASSIGN(name, reader.text());
    } else {
      CGL_TRY(reader.skip());
    }
  }
  return name;
}

Status WireRegistry::add(const WireType& type) {
  const std::uint32_t number = fnv1a(std::string(type.name).c_str());
  if (type.bytes > payload_capacity) {
    return fail(ErrorKind::invalid_argument,
                "registering the message type '{}': {} bytes, a message holds {}; put the rest into a buffer",
                type.name, type.bytes, payload_capacity);
  }
  for (const auto& [known_number, known] : types_) {
    if (known == &type) return {};
    if (known_number != number) continue;
    return fail(ErrorKind::already_exists, "registering the message type '{}': its number 0x{:08x} is that of '{}'",
                type.name, number, known->name);
  }
  types_.emplace_back(number, &type);
  return {};
}

const WireType* WireRegistry::find(std::string_view name) const noexcept {
  for (const auto& [number, type] : types_) {
    if (type->name == name) return type;
  }
  return nullptr;
}

const WireType* WireRegistry::find(std::uint32_t wanted) const noexcept {
  for (const auto& [number, type] : types_) {
    if (number == wanted) return type;
  }
  return nullptr;
}

Result<WireRegistry::Decoded> WireRegistry::decode(std::span<const std::byte> bytes) const {
  CGL_TRY_ASSIGN(const std::optional<std::string_view> name,
                 add_context(wire_type_name(bytes), "decoding a message of {} bytes", bytes.size()));
  if (!name) {
    return fail(ErrorKind::corrupt, "decoding a message of {} bytes: it names no type ('{}')", bytes.size(), type_key);
  }
  const WireType* const type = find(*name);
  if (type == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& [number, known] : types_) names.push_back(known->name);
    return fail(ErrorKind::not_found, "decoding a message of {} bytes: the type '{}' is not registered{} (known: {})",
                bytes.size(), name->substr(0, longest_name_shown), did_you_mean(*name, names), fmt::join(names, ", "));
  }
  alignas(16) std::array<std::byte, payload_capacity> payload{};
  Decoded decoded;
  CGL_TRY_ASSIGN(decoded.envelope, decode_message(*type, bytes, buffers_, payload.data()));
  decoded.message.header.type = fnv1a(std::string(type->name).c_str());
  decoded.message.set_band(band_of_priority(decoded.envelope.priority));
  decoded.message.set_payload_bytes(static_cast<std::uint32_t>(type->bytes));
  if (type->begins_with_buffer) decoded.message.header.flags |= mark_handle;
  std::memcpy(decoded.message.payload, payload.data(), type->bytes);
  return decoded;
}

Status WireRegistry::encode(const Message& message, const WireEnvelope& envelope, std::vector<std::byte>& bytes) const {
  const WireType* const type = find(message.header.type);
  if (type == nullptr) {
    return fail(ErrorKind::not_found, "encoding a message: the type number 0x{:08x} is not registered",
                message.header.type);
  }
  if (message.payload_bytes() != type->bytes) {
    return fail(ErrorKind::corrupt, "encoding a message '{}': its payload has {} bytes instead of {}", type->name,
                message.payload_bytes(), type->bytes);
  }
  alignas(16) std::array<std::byte, payload_capacity> payload{};
  std::memcpy(payload.data(), message.payload, type->bytes);
  return encode_message(*type, payload.data(), envelope, buffers_, bytes);
}

}  // namespace cingulum::ring
