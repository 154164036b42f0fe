#include "formats/content_hash.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "formats/byte_stream.hpp"

namespace cingulum {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18U;
// Below this, threads cost more than they save.
constexpr std::uint64_t least_shared_bytes = std::uint64_t{16} << 20U;
// One thread brings about 5 GB/s out of the system's cache, a hash takes 10 to 20.
constexpr std::size_t reader_count = 3;
constexpr std::size_t block_count = 2 * reader_count;

// Blocks of a file that threads read ahead; whoever hashes takes them in order.
class ReadAheadBlocks {
 public:
  explicit ReadAheadBlocks(const InputFile& file) : file_(file) {
    for (Block& block : blocks_) block.bytes.resize(block_bytes);
  }
  ~ReadAheadBlocks() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ReadAheadBlocks(const ReadAheadBlocks&) = delete;
  ReadAheadBlocks& operator=(const ReadAheadBlocks&) = delete;

  // False where not even one thread can be had.
  [[nodiscard]] bool start() {
    try {
      for (std::size_t i = 0; i < reader_count; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    }
    return !threads_.empty();
  }

  // The next block; empty at the end. Valid until the next call.
  [[nodiscard]] Result<std::span<const std::byte>> next() {
    std::unique_lock lock(mutex_);
    if (taken_ > 0) blocks_[(taken_ - 1) % block_count].filled = false;
    Block& block = blocks_[taken_ % block_count];
    ++taken_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return block.filled; });
    if (!block.outcome) return tl::make_unexpected(block.outcome.error());
    return std::span<const std::byte>(block.bytes).first(*block.outcome);
  }

 private:
  struct Block {
    std::vector<std::byte> bytes;
    bool filled = false;
    Result<std::size_t> outcome = std::size_t{0};
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // A block is free once the one that was taken last is not this one any more.
      changed_.wait(
          lock, [&] { return stop_ || (begun_ + 1 < taken_ + block_count && !blocks_[begun_ % block_count].filled); });
      if (stop_) return;
      const std::uint64_t number = begun_++;
      Block& block = blocks_[number % block_count];
      lock.unlock();
      auto outcome = file_.read_at(number * block_bytes, block.bytes);
      lock.lock();
      block.outcome = std::move(outcome);
      block.filled = true;
      changed_.notify_all();
    }
  }

  const InputFile& file_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards all below, but for the bytes of a block that is being read or hashed
  std::condition_variable changed_;
  std::array<Block, block_count> blocks_;
  std::uint64_t begun_ = 0;  // by the readers
  std::uint64_t taken_ = 0;  // by the one who hashes
  bool stop_ = false;
};

}  // namespace

Result<std::uint64_t> add_file_content(Hash128& hash, const std::filesystem::path& path, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
  std::uint64_t offset = 0;
  if (file.size() >= least_shared_bytes) {
    ReadAheadBlocks blocks(file);
    if (blocks.start()) {
      while (true) {
        CGL_TRY(cancel.check());
        CGL_TRY_ASSIGN(const std::span<const std::byte> block, blocks.next());
        if (block.empty()) return offset;
        hash.add(block);
        offset += block.size();
      }
    }
  }
  std::vector<std::byte> block(block_bytes);
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const std::size_t got, file.read_at(offset, block));
    if (got == 0) return offset;
    hash.add(std::span(block).first(got));
    offset += got;
  }
}

}  // namespace cingulum
