#include "formats/content_hash.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "base/hash_blocks.hpp"
#include "formats/byte_stream.hpp"

namespace cingulum {
namespace {

// Bytes of a file that are read at a time: many blocks of the hash, and few enough to stay in a core's cache.
constexpr std::size_t hashed_piece_bytes = std::size_t{1} << 18U;
static_assert(hashed_piece_bytes % hash_block_bytes == 0 && hashed_piece_bytes >= least_block_hashed_bytes);
// Below this, threads cost more than they save.
constexpr std::uint64_t least_hashed_together_bytes = std::uint64_t{16} << 20U;
// One thread brings about 5 GB/s out of the system's cache and adds them up on the way; eight take what memory gives.
constexpr std::size_t most_readers = 8;

std::size_t reader_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, most_readers);
}

// A piece of a file, and the sums of its whole blocks.
struct SummedPiece {
  std::span<const std::byte> bytes;  // empty behind the end
  std::span<const HashBlockSums> sums;
};

// Pieces of a file that threads read ahead and add up; whoever hashes takes them in order.
class PiecesAhead {
 public:
  explicit PiecesAhead(const InputFile& file) : file_(file), pieces_(2 * reader_count()) {
    for (Piece& piece : pieces_) {
      piece.bytes.resize(hashed_piece_bytes);
      piece.sums.resize(hashed_piece_bytes / hash_block_bytes);
    }
  }
  ~PiecesAhead() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  PiecesAhead(const PiecesAhead&) = delete;
  PiecesAhead& operator=(const PiecesAhead&) = delete;

  // False where not even one thread can be had.
  [[nodiscard]] bool start() {
    try {
      for (std::size_t i = 0; 2 * i < pieces_.size(); ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    }
    return !threads_.empty();
  }

  // The next piece. Valid until the next call.
  [[nodiscard]] Result<SummedPiece> next() {
    std::unique_lock lock(mutex_);
    if (taken_ > 0) pieces_[(taken_ - 1) % pieces_.size()].filled = false;
    Piece& piece = pieces_[taken_ % pieces_.size()];
    ++taken_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return piece.filled; });
    if (!piece.outcome) return tl::make_unexpected(piece.outcome.error());
    return SummedPiece{std::span<const std::byte>(piece.bytes).first(*piece.outcome),
                       std::span<const HashBlockSums>(piece.sums).first(*piece.outcome / hash_block_bytes)};
  }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    std::vector<HashBlockSums> sums;
    bool filled = false;
    Result<std::size_t> outcome = std::size_t{0};
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // A piece is free once the one that was taken last is not this one any more.
      changed_.wait(lock, [&] {
        return stop_ || (begun_ + 1 < taken_ + pieces_.size() && !pieces_[begun_ % pieces_.size()].filled);
      });
      if (stop_) return;
      const std::uint64_t number = begun_++;
      Piece& piece = pieces_[number % pieces_.size()];
      lock.unlock();
      auto outcome = file_.read_at(number * hashed_piece_bytes, piece.bytes);
      if (outcome) sum_hash_blocks(piece.bytes, std::span(piece.sums).first(*outcome / hash_block_bytes));
      lock.lock();
      piece.outcome = std::move(outcome);
      piece.filled = true;
      changed_.notify_all();
    }
  }

  const InputFile& file_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards all below, but for the bytes and sums of a piece that is being read or hashed
  std::condition_variable changed_;
  std::vector<Piece> pieces_;
  std::uint64_t begun_ = 0;  // by the readers
  std::uint64_t taken_ = 0;  // by the one who hashes
  bool stop_ = false;
};

// The sums of all pieces in one chain. The last block of a piece waits for the next piece: that of the content is
// hashed with the bytes themselves, and a stripe before it.
Result<ContentHash> hash_pieces(PiecesAhead& pieces, const CancelToken& cancel) {
  HashChain chain;
  std::uint64_t bytes = 0;
  std::vector<std::byte> end;
  HashBlockSums waiting = {};
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const SummedPiece piece, pieces.next());
    if (piece.bytes.empty()) return ContentHash{chain.hex(bytes, end), bytes};
    if (bytes > 0) chain.add(std::span(&waiting, 1));
    const std::size_t before_last = (piece.bytes.size() - 1) / hash_block_bytes;
    chain.add(piece.sums.first(before_last));
    if (before_last < piece.sums.size()) waiting = piece.sums[before_last];
    const std::size_t kept = std::min(piece.bytes.size(), hash_block_bytes + hash_stripe_bytes);
    if (kept == piece.bytes.size() && end.size() > hash_stripe_bytes) {
      end.erase(end.begin(), end.end() - static_cast<std::ptrdiff_t>(hash_stripe_bytes));
    } else {
      end.clear();
    }
    end.insert(end.end(), piece.bytes.end() - static_cast<std::ptrdiff_t>(kept), piece.bytes.end());
    bytes += piece.bytes.size();
  }
}

}  // namespace

Result<ContentHash> hash_content(const std::filesystem::path& path, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() >= least_hashed_together_bytes) {
    PiecesAhead pieces(file);
    if (pieces.start()) return hash_pieces(pieces, cancel);
  }
  Hash128 hash;
  std::uint64_t offset = 0;
  std::vector<std::byte> piece(hashed_piece_bytes);
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const std::size_t got, file.read_at(offset, piece));
    if (got == 0) return ContentHash{hash.hex(), offset};
    hash.add(std::span(piece).first(got));
    offset += got;
  }
}

}  // namespace cingulum
