// Numbers in the bytes of files, in either byte order, at any address. Every parser of formats/ reads through these.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace cingulum {

static_assert(std::endian::native == std::endian::little, "files are copied to memory as little-endian numbers");

template <std::size_t size>
using UnsignedOfSize = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<size == 2, std::uint16_t, std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
[[nodiscard]] constexpr T swap_bytes(T value) {
  auto bits = std::bit_cast<UnsignedOfSize<sizeof(T)>>(value);
  decltype(bits) swapped = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    swapped = static_cast<decltype(bits)>((swapped << 7U << 1U) | (bits & 0xffU));
    bits = static_cast<decltype(bits)>(bits >> 7U >> 1U);
  }
  return std::bit_cast<T>(swapped);
}

// The caller has checked that offset + sizeof(T) lies within.
template <class T>
[[nodiscard]] T load(std::span<const std::byte> bytes, std::size_t offset, bool big_endian = false) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return big_endian ? swap_bytes(value) : value;
}

template <class T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// In place: `count` numbers of `size` bytes each.
inline void swap_in_place(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t begin = 0; begin + size <= bytes.size(); begin += size) {
    for (std::size_t i = 0; i < size / 2; ++i) std::swap(bytes[begin + i], bytes[begin + size - 1 - i]);
  }
}

}  // namespace cingulum
