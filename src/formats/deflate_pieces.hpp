// A raw DEFLATE stream (RFC 1951) from pieces that are compressed in parallel: its bytes depend on the content and the
// level alone, not on threads or on how the content came. Called by the writers of gzip members and of zip entries,
// which put their own frames around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

// What an encoder looks for. Measured values as float32 repeat nothing but zeros outside a mask: there `runs` (the same
// byte again and again) makes files slightly smaller than `matches` at level 1 and takes less than half its time. What
// repeats itself (labels, simulated values without noise) wants `matches`.
enum class DeflateSearch { matches, runs };

class DeflatePieces {
 public:
  // Where the stream goes, piece by piece in order.
  struct Output {
    // The packed bytes of a piece, and how many they were before.
    std::function<Status(std::span<const std::byte> packed, std::size_t bytes)> take;
    // Whether a piece that shrinks from `bytes` to `packed` goes into the stream as it is instead, in stored blocks.
    std::function<bool(std::size_t bytes, std::size_t packed)> keep_plain = {};
  };

  // `level` 1 to 9. `pool` (may be null) outlives this.
  [[nodiscard]] static Result<DeflatePieces> create(int level, ThreadPool* pool,
                                                    DeflateSearch search = DeflateSearch::matches);
  DeflatePieces(DeflatePieces&&) noexcept;
  DeflatePieces& operator=(DeflatePieces&&) noexcept;
  ~DeflatePieces();

  [[nodiscard]] Status append(std::span<const std::byte> bytes, const Output& output);
  // Closes the stream; nothing may follow.
  [[nodiscard]] Status finish(const Output& output);

  // CRC and size of the content that the output has taken; of all of it after finish().
  [[nodiscard]] std::uint32_t crc() const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept;

 private:
  struct State;
  explicit DeflatePieces(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace cingulum
