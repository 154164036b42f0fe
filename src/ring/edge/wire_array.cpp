#include "ring/edge/wire_array.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

namespace cingulum::ring {
namespace {

constexpr std::string_view uuid_key = "__uuid_bin__";
constexpr std::string_view old_uuid_key = "__uuid__";
constexpr std::string_view array_key = "__ndarray__";
constexpr std::string_view reference_key = "__array_ref__";

struct DType {
  ElementType type;
  bool big_endian = false;
};

// "float32" as str(dtype) writes it, or "<f4" with its byte order.
std::optional<DType> parse_dtype(std::string_view text) {
  using Code = ElementType::Code;
  DType dtype;
  if (!text.empty() && std::string_view("<>=|").find(text.front()) != std::string_view::npos) {
    dtype.big_endian = text.front() == '>';
    text.remove_prefix(1);
  }
  struct Known {
    std::string_view name, letters;
    ElementType type;
  };
  constexpr std::array<Known, 10> known = {{{"int8", "i1", {Code::integer, 8}},
                                            {"int16", "i2", {Code::integer, 16}},
                                            {"int32", "i4", {Code::integer, 32}},
                                            {"int64", "i8", {Code::integer, 64}},
                                            {"uint8", "u1", {Code::unsigned_integer, 8}},
                                            {"uint16", "u2", {Code::unsigned_integer, 16}},
                                            {"uint32", "u4", {Code::unsigned_integer, 32}},
                                            {"uint64", "u8", {Code::unsigned_integer, 64}},
                                            {"float32", "f4", {Code::floating, 32}},
                                            {"float64", "f8", {Code::floating, 64}}}};
  for (const Known& one : known) {
    if (text != one.name && text != one.letters) continue;
    dtype.type = one.type;
    return dtype;
  }
  return std::nullopt;
}

Result<std::vector<std::size_t>> read_shape(MsgpackReader& reader) {
  constexpr std::uint32_t most_axes = 32;  // NumPy's older limit
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const std::uint32_t axes, reader.array_header());
  if (axes > most_axes)
    return fail(ErrorKind::corrupt, "byte {}: an array of {} axes (at most {})", at, axes, most_axes);
  std::vector<std::size_t> shape;
  for (std::uint32_t i = 0; i < axes; ++i) {
    const std::size_t where = reader.offset();
    CGL_TRY_ASSIGN(const MsgpackInteger extent, reader.integer());
    if (extent.negative) return fail(ErrorKind::corrupt, "byte {}: an array's extent is negative", where);
    shape.push_back(static_cast<std::size_t>(extent.bits));
  }
  return shape;
}

}  // namespace

void write_uuid(MsgpackWriter& writer, const Uuid& uuid) {
  writer.map_header(1);
  writer.text(uuid_key);
  writer.binary(uuid.bytes());
}

Result<Uuid> read_uuid(MsgpackReader& reader, bool bare) {
  const auto of_binary = [&](std::size_t at) -> Result<Uuid> {
    CGL_TRY_ASSIGN(const std::span<const std::byte> bytes, reader.binary());
    if (bytes.size() != 16) return fail(ErrorKind::corrupt, "byte {}: a UUID of {} bytes (16)", at, bytes.size());
    return Uuid::from_bytes(bytes.data());
  };
  const auto of_text = [&](std::size_t at) -> Result<Uuid> {
    CGL_TRY_ASSIGN(const std::string_view text, reader.text());
    if (const auto uuid = Uuid::parse(text)) return *uuid;
    return fail(ErrorKind::corrupt, "byte {}: '{}' is not a UUID", at, text.substr(0, 64));
  };
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const MsgpackKind kind, reader.peek());
  if (bare && kind == MsgpackKind::binary) return of_binary(at);
  if (bare && kind == MsgpackKind::text) return of_text(at);
  if (kind != MsgpackKind::map) {
    return fail(ErrorKind::corrupt, "byte {}: {} where a UUID is expected", at, msgpack_kind_name(kind));
  }
  CGL_TRY_ASSIGN(const std::uint32_t pairs, reader.map_header());
  std::optional<Uuid> found;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    CGL_TRY_ASSIGN(const std::string_view key, reader.text());
    const std::size_t value_at = reader.offset();
    if (key == uuid_key) {
      CGL_TRY_ASSIGN(found, of_binary(value_at));
    } else if (key == old_uuid_key && !found) {
      CGL_TRY_ASSIGN(found, of_text(value_at));
    } else {
      CGL_TRY(reader.skip());
    }
  }
  if (!found) return fail(ErrorKind::corrupt, "byte {}: a map without '{}' where a UUID is expected", at, uuid_key);
  return *found;
}

void write_array(MsgpackWriter& writer, ElementType type, std::span<const std::size_t> shape,
                 std::span<const std::byte> content) {
  writer.map_header(3);
  writer.text(array_key);
  writer.binary(content);
  writer.text("dtype");
  writer.text(type.name());
  writer.text("shape");
  writer.array_header(static_cast<std::uint32_t>(shape.size()));
  for (const std::size_t extent : shape) writer.unsigned_integer(extent);
}

Result<WireArray> read_array(MsgpackReader& reader) {
  WireArray array;
  array.offset = reader.offset();
  std::optional<std::span<const std::byte>> content;
  std::optional<DType> dtype;
  std::optional<std::vector<std::size_t>> shape;
  CGL_TRY_ASSIGN(const std::uint32_t pairs, reader.map_header());
  for (std::uint32_t i = 0; i < pairs; ++i) {
    CGL_TRY_ASSIGN(const std::string_view key, reader.text());
    const std::size_t value_at = reader.offset();
    if (key == array_key) {
      CGL_TRY_ASSIGN(content, reader.binary());
    } else if (key == "dtype") {
      CGL_TRY_ASSIGN(const std::string_view text, reader.text());
      dtype = parse_dtype(text);
      if (!dtype) {
        return fail(
            ErrorKind::corrupt,
            "byte {}: an array of dtype '{}' is not supported (int8 to int64, uint8 to uint64, float32, float64)",
            value_at, text.substr(0, 64));
      }
    } else if (key == "shape") {
      CGL_TRY_ASSIGN(shape, read_shape(reader));
    } else if (key == reference_key) {
      return fail(ErrorKind::corrupt,
                  "byte {}: the array lies in the memory of the process that wrote the message ('{}'); it must be sent "
                  "with its content ('{}')",
                  array.offset, reference_key, array_key);
    } else {
      CGL_TRY(reader.skip());
    }
  }
  for (const auto& [there, name] :
       {std::pair{content.has_value(), array_key}, std::pair{dtype.has_value(), std::string_view("dtype")},
        std::pair{shape.has_value(), std::string_view("shape")}}) {
    if (!there) return fail(ErrorKind::corrupt, "byte {}: an array without '{}'", array.offset, name);
  }
  array.type = dtype->type;
  array.big_endian = dtype->big_endian;
  array.shape = std::move(*shape);
  array.content = *content;
  // Compared by division, so that no product of extents overflows.
  std::size_t elements = array.content.size() / array.type.bytes();
  bool fits = array.content.size() % array.type.bytes() == 0;
  const bool empty = std::find(array.shape.begin(), array.shape.end(), std::size_t{0}) != array.shape.end();
  for (const std::size_t extent : array.shape) {
    if (empty) break;
    fits = fits && elements % extent == 0;
    elements /= extent;
  }
  fits = fits && (empty ? array.content.empty() : elements == 1);
  if (!fits) {
    std::string extents;
    for (const std::size_t extent : array.shape) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
    return fail(ErrorKind::corrupt, "byte {}: {} bytes are not an array of shape [{}] and dtype {}", array.offset,
                array.content.size(), extents, array.type.name());
  }
  return array;
}

void WireArray::copy_to(std::byte* destination) const {
  if (content.empty()) return;
  std::memcpy(destination, content.data(), content.size());
  if (!big_endian) return;
  const std::size_t size = type.bytes();
  for (std::size_t i = 0; i < content.size(); i += size) std::reverse(destination + i, destination + i + size);
}

}  // namespace cingulum::ring
