// Bytes that come one after the other: from a file, from memory, from a gzip decoder, or from a thread that reads
// ahead. The readers of compressed and plain images pull from these, so that neither has to know where bytes come from.
// Nothing here knows a format except gzip's, which has its own file (gzip.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"

namespace cingulum {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `to` from its front and answers how many bytes came: possibly fewer than asked for, none only at the end.
  // Bytes that came before a failure are given first; the next call then fails.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
};

// A regular file, opened once. Folders, pipes and devices are refused: sizes are checked against the size of the file.
class InputFile {
 public:
  [[nodiscard]] static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // Lets the system fetch these bytes all at once, and not as far as it looks ahead by itself. Advice.
  void will_read(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  // Fills `to`; fewer bytes only at the end of the file.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // The same, for a file that is large and read once. What the system has of it in memory comes from there; the rest
  // comes past that memory, straight to its place, where offset and `to` lie alike in their pages and the file system
  // is able to: nothing is copied on the way, and nobody else's files are driven out.
  [[nodiscard]] Result<std::size_t> read_once_at(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  InputFile(int descriptor, std::uint64_t size) noexcept : descriptor_(descriptor), size_(size) {}
  [[nodiscard]] bool is_in_memory(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

class FileStream final : public ByteStream {
 public:
  explicit FileStream(InputFile file) noexcept : file_(std::move(file)) {}
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> to) override;

 private:
  InputFile file_;
  std::uint64_t offset_ = 0;
};

// The bytes belong to the caller and outlive the stream.
class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> to) override;

 private:
  std::span<const std::byte> rest_;
};

// Reads `source` in a thread of its own, a few blocks ahead of whoever reads here. Where no thread can be started it
// answers `source` itself, which is slower and otherwise the same.
[[nodiscard]] std::unique_ptr<ByteStream> read_ahead(std::unique_ptr<ByteStream> source);

}  // namespace cingulum
