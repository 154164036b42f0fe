// CRC-32 as zip and gzip use it (polynomial 0x04c11db7, reflected), by the vector instructions of ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cingulum {

// The CRC of `bytes` behind bytes whose CRC is `previous`; 0 is the CRC of no bytes.
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous = 0) noexcept;

}  // namespace cingulum
