// gzip (RFC 1952) around DEFLATE (RFC 1951). Reading streams through the fastest decoder at hand, verifies CRC-32 and
// size of every member, and accepts several members and zeros behind the last one. Writing makes one member from pieces
// that are compressed in parallel: its bytes do not depend on the number of threads. Called by the NIfTI reader and
// writer and by whoever meets a .gz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/byte_stream.hpp"
#include "formats/deflate_pieces.hpp"

namespace cingulum {

// DEFLATE cannot expand further: a match of 258 bytes takes two bits at least.
constexpr std::uint64_t largest_deflate_ratio = 1032;

[[nodiscard]] bool is_gzip(std::span<const std::byte> begin) noexcept;

// The decompressed bytes of `compressed`. The end is reached only when every checksum was right. Flags that RFC 1952
// reserves, damage, a file that ends early, and bytes behind the last member that are not zero, are failures of kind
// corrupt that name the byte in the file.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_gzip(std::unique_ptr<ByteStream> compressed);

// Appends one gzip member to a file: no name, no time.
class GzipWriter {
 public:
  // `level` 1 to 9. `file` and `pool` (may be null) outlive the writer.
  [[nodiscard]] static Result<GzipWriter> create(AtomicFile& file, int level, ThreadPool* pool,
                                                 DeflateSearch search = DeflateSearch::matches);
  GzipWriter(GzipWriter&&) noexcept;
  GzipWriter& operator=(GzipWriter&&) noexcept;
  ~GzipWriter();

  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Writes what is left and the trailer; the file is not committed.
  [[nodiscard]] Status finish();

 private:
  struct State;
  explicit GzipWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace cingulum
