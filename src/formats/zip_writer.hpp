// Writing a zip archive as a stream, in bounded memory, through AtomicFile: entries are stored, or deflated where that
// is asked for, carry one fixed time (1980-01-01) and their CRC-32, and are zip64 where they need it. The same calls
// give the same bytes, on any number of threads. Used for TRX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/deflate_pieces.hpp"

namespace cingulum {

class ZipWriter {
 public:
  [[nodiscard]] static Result<ZipWriter> create(const std::filesystem::path& path, const WriteOptions& options);

  // An entry whose size is known at its end only: its local header has the room for zip64 and is completed by end().
  // Names are checked by the caller.
  [[nodiscard]] Status begin(std::string_view name);
  // The same, deflated: at one fixed level, in pieces that `pool` (may be null) shares. Content that would unpack to
  // more than read_zip_directory believes goes in as it is.
  [[nodiscard]] Status begin_deflated(std::string_view name, ThreadPool* pool);
  // An entry whose size and CRC are known; end() is an error when something else came.
  [[nodiscard]] Status begin_known(std::string_view name, std::uint64_t bytes, std::uint32_t crc);
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // As AtomicFile::append_parts; each thread takes the checksum of the part that it has made.
  [[nodiscard]] Status append_parts(std::span<const std::uint64_t> offsets, const AtomicFile::MakePart& make);
  [[nodiscard]] Status end();

  // Bytes that stand before the content of an entry of less than 4 GB begun by begin_known(), or of any by begin().
  [[nodiscard]] static std::uint64_t header_bytes(std::string_view name, bool known);

  // Puts other content of the same size into a stored entry that has ended.
  [[nodiscard]] Status replace(std::size_t entry, std::span<const std::byte> bytes);

  // Writes the directory and gives the file its name.
  [[nodiscard]] Status commit();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header_offset = 0;
    std::uint64_t content_offset = 0;
    std::uint64_t bytes = 0;         // of the content
    std::uint64_t packed_bytes = 0;  // in the file
    std::uint32_t crc = 0;
    std::uint16_t method = 0;
    bool patched_at_end = false;  // begin() rather than begin_known()
    std::uint64_t expected_bytes = 0;
    std::uint32_t expected_crc = 0;
  };

  explicit ZipWriter(AtomicFile file) : file_(std::move(file)) {}
  [[nodiscard]] Status start(std::string_view name, std::uint16_t method, bool known, std::uint64_t bytes,
                             std::uint32_t crc);
  [[nodiscard]] DeflatePieces::Output output();

  AtomicFile file_;
  std::vector<Entry> entries_;
  std::optional<DeflatePieces> pieces_;  // of the deflated entry that is open
  std::uint64_t inflated_bytes_ = 0;     // content of all deflated entries so far
  bool open_ = false;
};

}  // namespace cingulum
