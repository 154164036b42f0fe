// msgpack, as far as messages at the edge of the process need it: a writer that appends the shortest form of a value
// (the bytes that Python's msgpack writes), and a reader that walks bytes of unknown origin. Every read is checked
// against the end, and every failure names the byte at which it happened. Called by ring/edge/wire.hpp; what the values
// mean is said there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cingulum::ring {

enum class MsgpackKind { nil, boolean, integer, real, text, binary, array, map, extension };

// With its article, for messages: "an integer".
[[nodiscard]] std::string_view msgpack_kind_name(MsgpackKind kind);

class MsgpackWriter {
 public:
  // Appends to `bytes`, which must outlive the writer.
  explicit MsgpackWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void real(double value);  // always as float64, as Python writes its floats
  void text(std::string_view value);
  void binary(std::span<const std::byte> value);
  void array_header(std::uint32_t count);
  void map_header(std::uint32_t count);

 private:
  void tag(unsigned value);
  void raw(const void* data, std::size_t size);
  template <class T>
  void tagged(unsigned tag, T value);

  std::vector<std::byte>& bytes_;
};

// All integers of the format, -2^63 to 2^64 - 1.
struct MsgpackInteger {
  std::uint64_t bits = 0;  // two's complement when negative
  bool negative = false;
};

class MsgpackReader {
 public:
  explicit MsgpackReader(std::span<const std::byte> bytes, std::size_t offset = 0) : bytes_(bytes), offset_(offset) {}

  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::size_t remaining() const noexcept { return bytes_.size() - offset_; }

  // The kind of the value that follows, which is not consumed.
  [[nodiscard]] Result<MsgpackKind> peek() const;

  [[nodiscard]] Status nil();
  [[nodiscard]] Result<bool> boolean();
  [[nodiscard]] Result<MsgpackInteger> integer();
  [[nodiscard]] Result<double> real();  // an integer is taken too
  // Views into the bytes given to the constructor. A text must be UTF-8.
  [[nodiscard]] Result<std::string_view> text();
  [[nodiscard]] Result<std::span<const std::byte>> binary();
  // The number of values, or of pairs, that follow. It is at most what the remaining bytes could hold.
  [[nodiscard]] Result<std::uint32_t> array_header();
  [[nodiscard]] Result<std::uint32_t> map_header();

  // Steps over one value and all that it contains, in time linear in its bytes and without recursion.
  [[nodiscard]] Status skip();

 private:
  struct Token;
  [[nodiscard]] Result<Token> token() const;
  [[nodiscard]] Result<Token> expect(MsgpackKind kind);

  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
};

}  // namespace cingulum::ring
