#include "zarr/checksums.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

#include "zarr/codec.hpp"

namespace cingulum::zarr {
namespace {

// A sum of words as HDF5 keeps it: 65535 is not folded to 0, and 0 means that every word was.
std::uint32_t folded(std::uint64_t sum) {
  if (sum == 0) return 0;
  const auto rest = static_cast<std::uint32_t>(sum % 0xffffU);
  return rest == 0 ? 0xffffU : rest;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  // ISA-L takes the register itself, which begins and ends inverted, and counts bytes in an int.
  constexpr std::size_t largest_piece = std::size_t{1} << 30U;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), largest_piece));
    auto* const begin = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = ::crc32_iscsi(begin, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

std::uint32_t copy_with_crc32c(std::span<const std::byte> from, std::byte* to) noexcept {
  constexpr std::size_t block_bytes = std::size_t{128} << 10U;  // stays in the second cache between copy and CRC
  std::uint32_t crc = 0;
  for (std::size_t at = 0; at < from.size(); at += block_bytes) {
    const auto block = from.subspan(at, std::min(block_bytes, from.size() - at));
    std::memcpy(to + at, block.data(), block.size());
    crc = crc32c(block, crc);
  }
  return crc;
}

std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept {
  // After so many words the second sum is below 2^56.
  constexpr std::size_t words_between_folds = std::size_t{1} << 20U;
  const auto word = [&](std::size_t i) {
    return std::uint64_t{std::to_integer<unsigned>(bytes[2 * i]) << 8U | std::to_integer<unsigned>(bytes[2 * i + 1])};
  };
  std::uint64_t first = 0, second = 0;
  const std::size_t words = bytes.size() / 2;
  for (std::size_t begin = 0; begin < words; begin += words_between_folds) {
    const std::size_t end = std::min(words, begin + words_between_folds);
    for (std::size_t i = begin; i < end; ++i) {
      first += word(i);
      second += first;
    }
    first = folded(first);
    second = folded(second);
  }
  if (bytes.size() % 2 != 0) {
    first += std::to_integer<std::uint64_t>(bytes.back()) << 8U;
    second += first;
  }
  return folded(second) << 16U | folded(first);
}

}  // namespace cingulum::zarr
