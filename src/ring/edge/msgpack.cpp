#include "ring/edge/msgpack.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace cingulum::ring {
namespace {

// First bytes of the format (https://github.com/msgpack/msgpack/blob/master/spec.md).
enum Tag : unsigned {
  positive_fixint_last = 0x7f,
  fixmap = 0x80,
  fixarray = 0x90,
  fixtext = 0xa0,
  nil_tag = 0xc0,
  never_used = 0xc1,
  false_tag = 0xc2,
  true_tag = 0xc3,
  binary8 = 0xc4,
  binary16 = 0xc5,
  binary32 = 0xc6,
  extension8 = 0xc7,
  extension16 = 0xc8,
  extension32 = 0xc9,
  real32 = 0xca,
  real64 = 0xcb,
  unsigned8 = 0xcc,
  unsigned16 = 0xcd,
  unsigned32 = 0xce,
  unsigned64 = 0xcf,
  signed8 = 0xd0,
  signed16 = 0xd1,
  signed32 = 0xd2,
  signed64 = 0xd3,
  fixextension1 = 0xd4,
  fixextension16 = 0xd8,
  text8 = 0xd9,
  text16 = 0xda,
  text32 = 0xdb,
  array16 = 0xdc,
  array32 = 0xdd,
  map16 = 0xde,
  map32 = 0xdf,
  negative_fixint = 0xe0,
};

template <class T>
std::array<std::byte, sizeof(T)> big_endian(T value) {
  std::array<std::byte, sizeof(T)> bytes{};
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
  }
  return bytes;
}

// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  while (i < text.size()) {
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    std::size_t length = 0;
    if (first >= 0xc2 && first <= 0xdf) length = 2;
    if (first >= 0xe0 && first <= 0xef) length = 3;
    if (first >= 0xf0 && first <= 0xf4) length = 4;
    if (length == 0 || text.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0U) != 0x80) return false;
    }
    const unsigned second = byte(i + 1);
    if (first == 0xe0 && second < 0xa0) return false;
    if (first == 0xed && second > 0x9f) return false;
    if (first == 0xf0 && second < 0x90) return false;
    if (first == 0xf4 && second > 0x8f) return false;
    i += length;
  }
  return true;
}

}  // namespace

std::string_view msgpack_kind_name(MsgpackKind kind) {
  switch (kind) {
    case MsgpackKind::nil: return "nothing";
    case MsgpackKind::boolean: return "a boolean";
    case MsgpackKind::integer: return "an integer";
    case MsgpackKind::real: return "a real number";
    case MsgpackKind::text: return "a text";
    case MsgpackKind::binary: return "bytes";
    case MsgpackKind::array: return "a list";
    case MsgpackKind::map: return "a map";
    case MsgpackKind::extension: return "an extension";
  }
  return "?";
}

void MsgpackWriter::tag(unsigned value) {
  bytes_.push_back(static_cast<std::byte>(value));
}

void MsgpackWriter::raw(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), first, first + size);
}

template <class T>
void MsgpackWriter::tagged(unsigned tag_value, T value) {
  tag(tag_value);
  const auto bytes = big_endian(value);
  raw(bytes.data(), bytes.size());
}

void MsgpackWriter::nil() {
  tag(nil_tag);
}

void MsgpackWriter::boolean(bool value) {
  tag(value ? true_tag : false_tag);
}

void MsgpackWriter::unsigned_integer(std::uint64_t value) {
  if (value <= positive_fixint_last) return tag(static_cast<unsigned>(value));
  if (value <= 0xff) return tagged(unsigned8, static_cast<std::uint8_t>(value));
  if (value <= 0xffff) return tagged(unsigned16, static_cast<std::uint16_t>(value));
  if (value <= 0xffffffff) return tagged(unsigned32, static_cast<std::uint32_t>(value));
  tagged(unsigned64, value);
}

void MsgpackWriter::integer(std::int64_t value) {
  if (value >= 0) return unsigned_integer(static_cast<std::uint64_t>(value));
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= -32) return tag(static_cast<unsigned>(bits & 0xffU));
  if (value >= -0x80) return tagged(signed8, static_cast<std::uint8_t>(bits));
  if (value >= -0x8000) return tagged(signed16, static_cast<std::uint16_t>(bits));
  if (value >= -0x80000000LL) return tagged(signed32, static_cast<std::uint32_t>(bits));
  tagged(signed64, bits);
}

void MsgpackWriter::real(double value) {
  tagged(real64, std::bit_cast<std::uint64_t>(value));
}

void MsgpackWriter::text(std::string_view value) {
  if (value.size() < 32) {
    tag(fixtext | static_cast<unsigned>(value.size()));
  } else if (value.size() <= 0xff) {
    tagged(text8, static_cast<std::uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    tagged(text16, static_cast<std::uint16_t>(value.size()));
  } else {
    tagged(text32, static_cast<std::uint32_t>(value.size()));
  }
  raw(value.data(), value.size());
}

void MsgpackWriter::binary(std::span<const std::byte> value) {
  if (value.size() <= 0xff) {
    tagged(binary8, static_cast<std::uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    tagged(binary16, static_cast<std::uint16_t>(value.size()));
  } else {
    tagged(binary32, static_cast<std::uint32_t>(value.size()));
  }
  raw(value.data(), value.size());
}

void MsgpackWriter::array_header(std::uint32_t count) {
  if (count < 16) return tag(fixarray | count);
  if (count <= 0xffff) return tagged(array16, static_cast<std::uint16_t>(count));
  tagged(array32, count);
}

void MsgpackWriter::map_header(std::uint32_t count) {
  if (count < 16) return tag(fixmap | count);
  if (count <= 0xffff) return tagged(map16, static_cast<std::uint16_t>(count));
  tagged(map32, count);
}

// A value's first bytes: what it is, where its content begins, and how long that is.
struct MsgpackReader::Token {
  MsgpackKind kind = MsgpackKind::nil;
  std::uint64_t number = 0;       // a number's bits, or the count of a list or map
  bool negative = false;          // of an integer
  bool single = false;            // a real of 32 bits
  std::size_t content = 0;        // offset of a text's or binary's bytes, or of what follows a header
  std::size_t content_bytes = 0;  // of a text, binary or extension; 0 otherwise
  std::size_t values_inside = 0;  // values that a list or map holds
  [[nodiscard]] std::size_t end() const { return content + content_bytes; }
};

Result<MsgpackReader::Token> MsgpackReader::token() const {
  if (remaining() == 0) return fail(ErrorKind::corrupt, "byte {}: the message ends where a value must follow", offset_);
  const auto first = std::to_integer<unsigned>(bytes_[offset_]);
  Token token;
  token.content = offset_ + 1;

  // The big-endian number of `size` bytes behind the tag, over which content moves.
  std::uint64_t number = 0;
  const auto number_of = [&](std::size_t size) {
    if (bytes_.size() - token.content < size) return false;
    number = 0;
    for (std::size_t i = 0; i < size; ++i) {
      number = number << 8U | std::to_integer<std::uint64_t>(bytes_[token.content + i]);
    }
    token.content += size;
    return true;
  };
  const auto cut = [&] {
    return fail(ErrorKind::corrupt, "byte {}: the message ends inside a value (tag 0x{:02x})", offset_, first);
  };
  const auto with_content = [&](MsgpackKind kind, std::uint64_t size) -> Result<Token> {
    if (bytes_.size() - token.content < size) {
      return fail(ErrorKind::corrupt, "byte {}: {} of {} bytes in a message that has {} left", offset_,
                  msgpack_kind_name(kind), size, bytes_.size() - token.content);
    }
    token.kind = kind;
    token.content_bytes = static_cast<std::size_t>(size);
    return token;
  };
  const auto with_values = [&](MsgpackKind kind, std::uint64_t count) -> Result<Token> {
    // Each value takes a byte at least, so a count beyond the bytes left is damage and must not size anything.
    const std::uint64_t values = kind == MsgpackKind::map ? 2 * count : count;
    if (values > bytes_.size() - token.content) {
      return fail(ErrorKind::corrupt, "byte {}: {} of {} entries in a message that has {} bytes left", offset_,
                  msgpack_kind_name(kind), count, bytes_.size() - token.content);
    }
    token.kind = kind;
    token.number = count;
    token.values_inside = static_cast<std::size_t>(values);
    return token;
  };
  const auto with_number = [&](std::size_t size, bool is_signed) -> Result<Token> {
    if (!number_of(size)) return cut();
    token.kind = MsgpackKind::integer;
    if (is_signed) {
      const auto unused = static_cast<unsigned>(64 - 8 * size);
      number = static_cast<std::uint64_t>(static_cast<std::int64_t>(number << unused) >> unused);
      token.negative = static_cast<std::int64_t>(number) < 0;
    }
    token.number = number;
    return token;
  };

  if (first <= positive_fixint_last || first >= negative_fixint) {
    token.kind = MsgpackKind::integer;
    token.negative = first >= negative_fixint;
    token.number = token.negative ? ~std::uint64_t{0xff} | first : first;
    return token;
  }
  if (first < fixarray) return with_values(MsgpackKind::map, first & 0x0fU);
  if (first < fixtext) return with_values(MsgpackKind::array, first & 0x0fU);
  if (first < nil_tag) return with_content(MsgpackKind::text, first & 0x1fU);
  switch (first) {
    case nil_tag: return token;
    case false_tag:
    case true_tag:
      token.kind = MsgpackKind::boolean;
      token.number = first == true_tag ? 1 : 0;
      return token;
    case binary8:
    case binary16:
    case binary32:
      if (!number_of(std::size_t{1} << (first - binary8))) return cut();
      return with_content(MsgpackKind::binary, number);
    case extension8:
    case extension16:
    case extension32:
      if (!number_of(std::size_t{1} << (first - extension8))) return cut();
      return with_content(MsgpackKind::extension, number + 1);  // and the byte of its type
    case real32:
    case real64:
      if (!number_of(first == real32 ? 4 : 8)) return cut();
      token.kind = MsgpackKind::real;
      token.single = first == real32;
      token.number = number;
      return token;
    case unsigned8:
    case unsigned16:
    case unsigned32:
    case unsigned64: return with_number(std::size_t{1} << (first - unsigned8), false);
    case signed8:
    case signed16:
    case signed32:
    case signed64: return with_number(std::size_t{1} << (first - signed8), true);
    case text8:
    case text16:
    case text32:
      if (!number_of(std::size_t{1} << (first - text8))) return cut();
      return with_content(MsgpackKind::text, number);
    case array16:
    case array32:
      if (!number_of(first == array16 ? 2 : 4)) return cut();
      return with_values(MsgpackKind::array, number);
    case map16:
    case map32:
      if (!number_of(first == map16 ? 2 : 4)) return cut();
      return with_values(MsgpackKind::map, number);
    default: break;
  }
  if (first >= fixextension1 && first <= fixextension16) {
    return with_content(MsgpackKind::extension, (std::uint64_t{1} << (first - fixextension1)) + 1);
  }
  return fail(ErrorKind::corrupt, "byte {}: 0x{:02x} begins no msgpack value", offset_, first);
}

Result<MsgpackKind> MsgpackReader::peek() const {
  CGL_TRY_ASSIGN(const Token next, token());
  return next.kind;
}

Result<MsgpackReader::Token> MsgpackReader::expect(MsgpackKind kind) {
  CGL_TRY_ASSIGN(const Token next, token());
  if (next.kind != kind) {
    return fail(ErrorKind::corrupt, "byte {}: {} where {} is expected", offset_, msgpack_kind_name(next.kind),
                msgpack_kind_name(kind));
  }
  return next;
}

Status MsgpackReader::nil() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::nil));
  offset_ = next.end();
  return {};
}

Result<bool> MsgpackReader::boolean() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::boolean));
  offset_ = next.end();
  return next.number != 0;
}

Result<MsgpackInteger> MsgpackReader::integer() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::integer));
  offset_ = next.end();
  return MsgpackInteger{next.number, next.negative};
}

Result<double> MsgpackReader::real() {
  CGL_TRY_ASSIGN(const Token next, token());
  if (next.kind == MsgpackKind::integer) {
    offset_ = next.end();
    return next.negative ? static_cast<double>(static_cast<std::int64_t>(next.number))
                         : static_cast<double>(next.number);
  }
  if (next.kind != MsgpackKind::real) {
    return fail(ErrorKind::corrupt, "byte {}: {} where a number is expected", offset_, msgpack_kind_name(next.kind));
  }
  offset_ = next.end();
  if (next.single) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(next.number)));
  return std::bit_cast<double>(next.number);
}

Result<std::string_view> MsgpackReader::text() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::text));
  const std::string_view content(reinterpret_cast<const char*>(bytes_.data() + next.content), next.content_bytes);
  if (!is_utf8(content)) return fail(ErrorKind::corrupt, "byte {}: a text that is not UTF-8", next.content);
  offset_ = next.end();
  return content;
}

Result<std::span<const std::byte>> MsgpackReader::binary() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::binary));
  offset_ = next.end();
  return bytes_.subspan(next.content, next.content_bytes);
}

Result<std::uint32_t> MsgpackReader::array_header() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::array));
  offset_ = next.end();
  return static_cast<std::uint32_t>(next.number);
}

Result<std::uint32_t> MsgpackReader::map_header() {
  CGL_TRY_ASSIGN(const Token next, expect(MsgpackKind::map));
  offset_ = next.end();
  return static_cast<std::uint32_t>(next.number);
}

Status MsgpackReader::skip() {
  std::size_t values = 1;
  while (values > 0) {
    CGL_TRY_ASSIGN(const Token next, token());
    values += next.values_inside;
    --values;
    offset_ = next.end();
  }
  return {};
}

}  // namespace cingulum::ring
