#include "ring/edge/wire_value.hpp"

namespace cingulum::ring {
namespace {

template <class T>
Result<std::vector<T>> read_list(MsgpackReader& reader) {
  CGL_TRY_ASSIGN(const std::uint32_t count, reader.array_header());
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      CGL_TRY(read_real(reader, value));
    } else {
      CGL_TRY(read_integer(reader, value));
    }
  }
  return values;
}

Result<BufferHandle> new_buffer(std::span<const std::byte> content, WireBuffers& buffers) {
  CGL_TRY_ASSIGN(const BufferHandle handle, buffers.table->add(content.size()));
  buffers.made.push_back(handle);
  if (content.empty()) return handle;
  CGL_TRY_ASSIGN(const std::span<std::byte> bytes, buffers.table->get(handle));
  std::copy(content.begin(), content.end(), bytes.begin());
  return handle;
}

template <class T>
Result<BufferHandle> read_list_into_buffer(MsgpackReader& reader, WireBuffers& buffers) {
  CGL_TRY_ASSIGN(const std::vector<T> values, read_list<T>(reader));
  return new_buffer(std::as_bytes(std::span(values)), buffers);
}

Result<BufferHandle> read_list_into_buffer(MsgpackReader& reader, ElementType type, WireBuffers& buffers) {
  using Code = ElementType::Code;
  if (type == ElementType{Code::floating, 32}) return read_list_into_buffer<float>(reader, buffers);
  if (type == ElementType{Code::floating, 64}) return read_list_into_buffer<double>(reader, buffers);
  if (type == ElementType{Code::integer, 8}) return read_list_into_buffer<std::int8_t>(reader, buffers);
  if (type == ElementType{Code::integer, 16}) return read_list_into_buffer<std::int16_t>(reader, buffers);
  if (type == ElementType{Code::integer, 32}) return read_list_into_buffer<std::int32_t>(reader, buffers);
  if (type == ElementType{Code::integer, 64}) return read_list_into_buffer<std::int64_t>(reader, buffers);
  if (type == ElementType{Code::unsigned_integer, 8}) return read_list_into_buffer<std::uint8_t>(reader, buffers);
  if (type == ElementType{Code::unsigned_integer, 16}) return read_list_into_buffer<std::uint16_t>(reader, buffers);
  if (type == ElementType{Code::unsigned_integer, 32}) return read_list_into_buffer<std::uint32_t>(reader, buffers);
  return read_list_into_buffer<std::uint64_t>(reader, buffers);
}

Status check_table(const WireBuffers& buffers) {
  if (buffers.table != nullptr) return {};
  return fail(ErrorKind::invalid_state, "the field is a buffer, and no buffer table was given");
}

}  // namespace

Status write_buffer(MsgpackWriter& writer, ElementType type, BufferHandle handle, WireBuffers& buffers) {
  CGL_TRY(check_table(buffers));
  CGL_TRY_ASSIGN(const std::span<const std::byte> content, buffers.table->get(handle));
  const std::size_t count = content.size() / type.bytes();
  if (count * type.bytes() != content.size()) {
    return fail(ErrorKind::invalid_argument, "a buffer of {} bytes is not a whole number of {}", content.size(),
                type.name());
  }
  write_array(writer, type, {&count, 1}, content);
  return {};
}

Result<BufferHandle> read_buffer(MsgpackReader& reader, ElementType type, WireBuffers& buffers) {
  CGL_TRY(check_table(buffers));
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const MsgpackKind kind, reader.peek());
  if (kind == MsgpackKind::array) return read_list_into_buffer(reader, type, buffers);
  if (kind != MsgpackKind::map) {
    return fail(ErrorKind::corrupt, "byte {}: {} where an array is expected", at, msgpack_kind_name(kind));
  }
  CGL_TRY_ASSIGN(const WireArray array, read_array(reader));
  if (array.type != type) {
    return fail(ErrorKind::corrupt, "byte {}: an array of {} where {} is expected", at, array.type.name(), type.name());
  }
  std::vector<std::byte> content(array.content.size());
  array.copy_to(content.data());
  return new_buffer(content, buffers);
}

}  // namespace cingulum::ring
