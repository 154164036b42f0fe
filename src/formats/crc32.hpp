// CRC-32 as zip and gzip use it (polynomial 0x04c11db7, reflected), by the vector instructions of ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cingulum {

// The CRC of `bytes` behind bytes whose CRC is `previous`; 0 is the CRC of no bytes.
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous = 0) noexcept;

// The CRC of bytes whose CRC is `first` and `second_bytes` bytes behind them whose CRC is `second`: checksums of parts
// that were taken by several threads become that of the whole.
[[nodiscard]] std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second,
                                         std::uint64_t second_bytes) noexcept;

}  // namespace cingulum
