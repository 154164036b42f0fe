// Numbers of the ZIP format (APPNOTE 6.3) that reader and writer both use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cingulum::zip {

constexpr std::uint32_t in_extra32 = 0xffffffff;  // the number stands in the zip64 extra field
constexpr std::uint16_t in_extra16 = 0xffff;
constexpr std::size_t local_bytes = 30;  // of a local header without its name and extra fields

}  // namespace cingulum::zip
