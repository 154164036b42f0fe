// The bytes of an input file: a read-only memory map, or memory that this object owns (what was inflated from a .gz, or
// what a test made). Parsers take the span; they never learn where it lies. A file that another program cuts short
// while it is mapped ends the process with SIGBUS, as with every memory map: nothing in Cingulum does that to a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

class FileBytes {
 public:
  // A regular file, of any size; an empty one gives an empty span.
  [[nodiscard]] static Result<FileBytes> map(const std::filesystem::path& path);
  [[nodiscard]] static FileBytes own(std::vector<std::byte> bytes);

  FileBytes() = default;
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

 private:
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::vector<std::byte> owned_;
};

}  // namespace cingulum
