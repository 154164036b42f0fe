#include "formats/crc32.hpp"

#include <isa-l/crc.h>

namespace cingulum {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  if (bytes.empty()) return previous;
  return ::crc32_gzip_refl(previous, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace cingulum
