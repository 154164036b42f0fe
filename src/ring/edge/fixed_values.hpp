// Values of varying length that a trivially copyable message can hold: a text and a list up to a bound, and a buffer of
// numbers of any length by its handle. Messages declare fields of these types, actor bodies read them; on the wire they
// are a text and arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ring/actor/buffer_table.hpp"

namespace cingulum::ring {

// Up to Capacity bytes of UTF-8. What does not fit is cut by assign, which says so.
template <std::uint32_t Capacity>
struct FixedText {
  std::uint32_t size = 0;
  std::array<char, Capacity> letters{};

  [[nodiscard]] std::string_view view() const { return {letters.data(), std::min(size, Capacity)}; }
  // False: the text was longer than the field.
  bool assign(std::string_view text) {
    letters = {};
    size = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), Capacity));
    std::copy_n(text.begin(), size, letters.begin());
    return text.size() <= Capacity;
  }
};

// Up to Capacity numbers; those from `size` on mean nothing.
template <class T, std::uint32_t Capacity>
struct FixedList {
  std::uint32_t size = 0;
  std::array<T, Capacity> items{};
};

// Numbers in a buffer of the runtime's table (ring/actor/buffer_table.hpp).
template <class T>
struct NumberBuffer {
  BufferHandle handle;

  [[nodiscard]] std::uint64_t count() const { return handle.bytes / sizeof(T); }
};

}  // namespace cingulum::ring
