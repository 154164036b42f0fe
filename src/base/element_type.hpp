// The type of a buffer's elements, as DLPack names them: a code, bits, lanes. Host C++ types map to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cingulum {

struct ElementType {
  enum class Code : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    floating = 2,
    complex = 5,
    boolean = 6
  };  // DLPack's codes
  Code code = Code::floating;
  std::uint8_t bits = 32;

  [[nodiscard]] constexpr std::size_t bytes() const { return bits / 8u; }
  [[nodiscard]] bool operator==(const ElementType&) const = default;
  [[nodiscard]] std::string name() const;  // "float32"
};

template <class T>
[[nodiscard]] constexpr ElementType element_type_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are numbers");
  constexpr auto bits = static_cast<std::uint8_t>(sizeof(T) * 8);
  if constexpr (std::is_same_v<T, bool>) return {ElementType::Code::boolean, bits};
  if constexpr (std::is_floating_point_v<T>) return {ElementType::Code::floating, bits};
  if constexpr (std::is_signed_v<T>) return {ElementType::Code::integer, bits};
  return {ElementType::Code::unsigned_integer, bits};
}

}  // namespace cingulum
