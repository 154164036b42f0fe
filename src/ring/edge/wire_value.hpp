// One field of a message on the wire: how each C++ type is written and read. Numbers are plain numbers, a Uuid and an
// array are the maps of ring/edge/wire_array.hpp, a FixedText is a text. Reading checks kind and range and says what it
// found and where; the field's name is added by the caller (ring/edge/wire.hpp). A type that has no overload does not
// compile.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ring/edge/fixed_values.hpp"
#include "ring/edge/wire_array.hpp"

namespace cingulum::ring {

namespace detail {

// The number type at the bottom of nested arrays, and their extents from the outside in.
template <class T>
struct ArrayShape {
  using Element = T;
  static constexpr std::array<std::size_t, 0> extents{};
};
template <class Inner, std::size_t count>
struct ArrayShape<std::array<Inner, count>> {
  using Element = typename ArrayShape<Inner>::Element;
  static constexpr auto extents = [] {
    std::array<std::size_t, ArrayShape<Inner>::extents.size() + 1> all{count};
    for (std::size_t i = 0; i < ArrayShape<Inner>::extents.size(); ++i) all[i + 1] = ArrayShape<Inner>::extents[i];
    return all;
  }();
};
template <class Inner, std::size_t count>
struct ArrayShape<Inner[count]> : ArrayShape<std::array<Inner, count>> {};

template <class T>
inline constexpr bool is_array_of_numbers =
    !ArrayShape<T>::extents.empty() && std::is_arithmetic_v<typename ArrayShape<T>::Element> &&
    !std::is_same_v<typename ArrayShape<T>::Element, bool>;

template <class T>
inline constexpr bool is_fixed_text = false;
template <std::uint32_t capacity>
inline constexpr bool is_fixed_text<FixedText<capacity>> = true;

template <class T>
inline constexpr bool is_number_buffer = false;
template <class T>
inline constexpr bool is_number_buffer<NumberBuffer<T>> = true;
template <class T>
struct NumberOf;
template <class T>
struct NumberOf<NumberBuffer<T>> {
  using Type = T;
};

template <class T>
inline constexpr bool is_fixed_list = false;
template <class T, std::uint32_t capacity>
inline constexpr bool is_fixed_list<FixedList<T, capacity>> = true;

}  // namespace detail

// What reading and writing work with besides the bytes: the table of the buffers that messages name, where there is
// one, and the buffers that reading made, which are given back when the message turns out to be damaged.
struct WireBuffers {
  BufferTable* table = nullptr;
  std::vector<BufferHandle> made;
};

// The content of a buffer as an array of one axis.
[[nodiscard]] Status write_buffer(MsgpackWriter& writer, ElementType type, BufferHandle handle, WireBuffers& buffers);
// A new buffer with the content of an array or list of exactly this type.
[[nodiscard]] Result<BufferHandle> read_buffer(MsgpackReader& reader, ElementType type, WireBuffers& buffers);

template <class T>
[[nodiscard]] Status write_value(MsgpackWriter& writer, const T& value, WireBuffers& buffers) {
  if constexpr (std::is_same_v<T, bool>) {
    writer.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    return write_value(writer, static_cast<std::underlying_type_t<T>>(value), buffers);
  } else if constexpr (std::is_floating_point_v<T>) {
    writer.real(static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    writer.unsigned_integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    writer.integer(value);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    write_uuid(writer, value);
  } else if constexpr (detail::is_number_buffer<T>) {
    return write_buffer(writer, element_type_of<typename detail::NumberOf<T>::Type>(), value.handle, buffers);
  } else if constexpr (detail::is_fixed_text<T>) {
    writer.text(value.view());
  } else if constexpr (detail::is_fixed_list<T>) {
    using Element = typename decltype(value.items)::value_type;
    const std::size_t count = std::min<std::size_t>(value.size, value.items.size());
    write_array(writer, element_type_of<Element>(), {&count, 1}, std::as_bytes(std::span(value.items.data(), count)));
  } else {
    static_assert(detail::is_array_of_numbers<T>, "a field of this type has no form on the wire");
    using Shape = detail::ArrayShape<T>;
    write_array(writer, element_type_of<typename Shape::Element>(), Shape::extents,
                {reinterpret_cast<const std::byte*>(&value), sizeof(T)});
  }
  return {};
}

template <std::integral T>
[[nodiscard]] Status read_integer(MsgpackReader& reader, T& value) {
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const MsgpackInteger number, reader.integer());
  const bool fits = number.negative
                        ? std::is_signed_v<T> && static_cast<std::int64_t>(number.bits) >=
                                                     static_cast<std::int64_t>(std::numeric_limits<T>::min())
                        : number.bits <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (!fits) {
    const std::string text =
        number.negative ? std::to_string(static_cast<std::int64_t>(number.bits)) : std::to_string(number.bits);
    return fail(ErrorKind::corrupt, "byte {}: {} is outside {} to {}", at, text, std::numeric_limits<T>::min(),
                std::numeric_limits<T>::max());
  }
  value = static_cast<T>(number.bits);
  return {};
}

template <std::floating_point T>
[[nodiscard]] Status read_real(MsgpackReader& reader, T& value) {
  const std::size_t at = reader.offset();
  CGL_TRY_ASSIGN(const double number, reader.real());
  // Infinities and NaN are values of every width; a finite number that would become infinite is a mistake of the
  // sender.
  constexpr double most = std::numeric_limits<T>::max();
  if ((number > most || number < -most) && number - number == 0) {
    return fail(ErrorKind::corrupt, "byte {}: {} is beyond a float{}", at, number, sizeof(T) * 8);
  }
  value = static_cast<T>(number);
  return {};
}

// At most `capacity` numbers: an array of exactly T, or a list of numbers that T can hold. Answers how many came.
template <class T>
[[nodiscard]] Result<std::size_t> read_numbers(MsgpackReader& reader, T* values, std::size_t capacity,
                                               std::span<const std::size_t> shape) {
  const std::size_t at = reader.offset();
  const auto check_count = [&](std::size_t count) -> Status {
    if (shape.empty() ? count <= capacity : count == capacity) return {};
    return fail(ErrorKind::corrupt, "byte {}: {} numbers where {}{} are expected", at, count,
                shape.empty() ? "at most " : "", capacity);
  };
  CGL_TRY_ASSIGN(const MsgpackKind kind, reader.peek());
  if (kind == MsgpackKind::array && shape.size() <= 1) {
    CGL_TRY_ASSIGN(const std::uint32_t count, reader.array_header());
    CGL_TRY(check_count(count));
    for (std::uint32_t i = 0; i < count; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        CGL_TRY(read_real(reader, values[i]));
      } else {
        CGL_TRY(read_integer(reader, values[i]));
      }
    }
    return count;
  }
  if (kind != MsgpackKind::map) {
    return fail(ErrorKind::corrupt, "byte {}: {} where an array is expected", at, msgpack_kind_name(kind));
  }
  CGL_TRY_ASSIGN(const WireArray array, read_array(reader));
  if (array.type != element_type_of<T>()) {
    return fail(ErrorKind::corrupt, "byte {}: an array of {} where {} is expected", at, array.type.name(),
                element_type_of<T>().name());
  }
  const bool same_shape = shape.empty() ? array.shape.size() == 1 : std::ranges::equal(array.shape, shape);
  if (!same_shape) {
    return fail(ErrorKind::corrupt,
                "byte {}: an array of {} axes and {} elements where {} elements in {} axes are expected", at,
                array.shape.size(), array.elements(), capacity, shape.empty() ? 1 : shape.size());
  }
  CGL_TRY(check_count(array.elements()));
  array.copy_to(reinterpret_cast<std::byte*>(values));
  return array.elements();
}

template <class T>
[[nodiscard]] Status read_value(MsgpackReader& reader, T& value, WireBuffers& buffers) {
  if constexpr (std::is_same_v<T, bool>) {
    CGL_TRY_ASSIGN(value, reader.boolean());
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    CGL_TRY(read_value(reader, number, buffers));
    value = static_cast<T>(number);
  } else if constexpr (std::is_floating_point_v<T>) {
    CGL_TRY(read_real(reader, value));
  } else if constexpr (std::is_integral_v<T>) {
    CGL_TRY(read_integer(reader, value));
  } else if constexpr (std::is_same_v<T, Uuid>) {
    CGL_TRY_ASSIGN(value, read_uuid(reader, false));
  } else if constexpr (detail::is_number_buffer<T>) {
    CGL_TRY_ASSIGN(value.handle, read_buffer(reader, element_type_of<typename detail::NumberOf<T>::Type>(), buffers));
  } else if constexpr (detail::is_fixed_text<T>) {
    const std::size_t at = reader.offset();
    CGL_TRY_ASSIGN(const std::string_view text, reader.text());
    if (!value.assign(text)) {
      return fail(ErrorKind::corrupt, "byte {}: a text of {} bytes where at most {} fit", at, text.size(),
                  value.letters.size());
    }
  } else if constexpr (detail::is_fixed_list<T>) {
    value = {};
    CGL_TRY_ASSIGN(const std::size_t count, read_numbers(reader, value.items.data(), value.items.size(), {}));
    value.size = static_cast<std::uint32_t>(count);
  } else {
    static_assert(detail::is_array_of_numbers<T>, "a field of this type has no form on the wire");
    using Shape = detail::ArrayShape<T>;
    auto* const numbers = reinterpret_cast<typename Shape::Element*>(&value);
    CGL_TRY(
        read_numbers(reader, numbers, sizeof(T) / sizeof(typename Shape::Element), Shape::extents).map([](std::size_t) {
        }));
  }
  return {};
}

}  // namespace cingulum::ring
