// Reading zip archives (APPNOTE 6.3) that may be hostile: the directory is believed only where it agrees with the local
// headers and with the size of the file. Stored and deflated entries, zip64. Used for TRX. Refused: names that leave
// the folder, duplicates, overlaps, encryption, links, other methods, several disks, data before the archive, two
// possible ends, sizes beyond the file or 1 TB, deflated sizes beyond 8 times the file and 16 MB in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

struct ZipEntry {
  std::string name;
  std::uint64_t bytes = 0;         // of the content
  std::uint64_t packed_bytes = 0;  // in the file
  std::uint64_t offset = 0;        // of the packed bytes in the file
  std::uint32_t crc = 0;
  bool deflated = false;
};

// Whether it begins like a zip archive (an empty one too). For telling formats apart.
[[nodiscard]] bool looks_like_zip(std::span<const std::byte> file);

// The entries in the order of the directory, folders left out.
[[nodiscard]] Result<std::vector<ZipEntry>> read_zip_directory(std::span<const std::byte> file);

// The packed bytes of an entry that read_zip_directory gave for the same file.
[[nodiscard]] std::span<const std::byte> packed_bytes(std::span<const std::byte> file, const ZipEntry& entry);

// The content of a deflated entry, its size and CRC verified. Memory grows with what really comes out.
[[nodiscard]] Result<std::vector<std::byte>> inflate_entry(std::span<const std::byte> file, const ZipEntry& entry);

// Reads an entry through and compares its CRC.
[[nodiscard]] Status verify_entry(std::span<const std::byte> file, const ZipEntry& entry);

[[nodiscard]] Status check_crc(const ZipEntry& entry, std::uint32_t found);

}  // namespace cingulum
