// Numbers of the ZIP format (APPNOTE 6.3) that reader and writer both use, and the bound on what deflated entries
// unpack to: the reader refuses more, the writer never makes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cingulum::zip {

constexpr std::uint32_t in_extra32 = 0xffffffff;  // the number stands in the zip64 extra field
constexpr std::uint16_t in_extra16 = 0xffff;
constexpr std::size_t local_bytes = 30;  // of a local header without its name and extra fields

constexpr std::uint16_t method_stored = 0;
constexpr std::uint16_t method_deflated = 8;

// Deflated entries are unpacked in memory: together they may be this large whatever the file's size, and beyond it so
// many times the file.
constexpr std::uint64_t free_of_ratio = std::uint64_t{16} << 20U;
constexpr std::uint64_t largest_ratio = 8;

constexpr bool unpacks_to_too_much(std::uint64_t inflated_bytes, std::uint64_t file_bytes) {
  return inflated_bytes > free_of_ratio && inflated_bytes - free_of_ratio > largest_ratio * file_bytes;
}

}  // namespace cingulum::zip
