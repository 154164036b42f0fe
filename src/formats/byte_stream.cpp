#include "formats/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_layer.hpp"
#include "base/interrupt.hpp"

namespace cingulum {

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe without a writer is refused below instead of waited for. It changes nothing for a regular file.
  const int opened = uninterrupted([&] {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor >= 0 ? descriptor : -errno;
  });
  if (opened < 0) {
    return fail(opened == -ENOENT || opened == -ENOTDIR ? ErrorKind::not_found : ErrorKind::io, "{}",
                system_error_text(-opened));
  }
  InputFile file(opened, 0);
  struct stat status {};
  if (::fstat(opened, &status) != 0) return fail(ErrorKind::io, "{}", system_error_text(errno));
  if (S_ISDIR(status.st_mode)) return fail(ErrorKind::io, "it is a folder");
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::io, "it is not a regular file, whose size could be checked; copy it to one first");
  }
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::will_read(std::uint64_t offset, std::uint64_t bytes) const noexcept {
#if defined(POSIX_FADV_WILLNEED)
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
#else
  (void)offset, (void)bytes;
#endif
}

Result<std::size_t> InputFile::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t filled = 0;
  while (filled < to.size()) {
    const ssize_t got =
        ::pread(descriptor_, to.data() + filled, to.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) {
      CGL_TRY(check_interrupt());
      continue;
    }
    if (got < 0) return fail(ErrorKind::io, "at byte {}: {}", offset + filled, system_error_text(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

namespace {

// Offsets, sizes and places of what is read past the system's memory: no disk asks for more.
constexpr std::uint64_t direct_alignment = 4096;

}  // namespace

// Whether the system has most of these bytes in memory. Where it cannot be known (the file is another user's), it says
// that it has them.
bool InputFile::is_in_memory(std::uint64_t offset, std::uint64_t bytes) const noexcept {
#if defined(__linux__)
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = offset / page * page;
  const auto length = static_cast<std::size_t>(offset + bytes - first);
  void* const map = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(first));
  if (map == MAP_FAILED) return true;
  constexpr std::size_t pages_at_a_time = 1024;
  std::array<unsigned char, pages_at_a_time> there{};
  const std::size_t pages = (length + page - 1) / page;
  std::size_t found = 0;
  for (std::size_t begin = 0; begin < pages; begin += pages_at_a_time) {
    const std::size_t count = std::min(pages_at_a_time, pages - begin);
    const std::size_t left = std::min<std::size_t>(count * page, length - begin * page);
    if (::mincore(static_cast<std::byte*>(map) + begin * page, left, there.data()) != 0) {
      found = pages;
      break;
    }
    found += static_cast<std::size_t>(std::count_if(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(count),
                                                    [](unsigned char state) { return (state & 1U) != 0; }));
  }
  ::munmap(map, length);
  return 2 * found >= pages;
#else
  (void)offset, (void)bytes;
  return true;
#endif
}

Result<std::size_t> InputFile::read_once_at(std::uint64_t offset, std::span<std::byte> to) const {
#if defined(O_DIRECT)
  const std::uint64_t bytes = std::min<std::uint64_t>(to.size(), size_ - std::min(size_, offset));
  // Pages at either end that are asked for in part come the usual way.
  const std::uint64_t head = (direct_alignment - offset % direct_alignment) % direct_alignment;
  const bool lie_alike = reinterpret_cast<std::uintptr_t>(to.data()) % direct_alignment == offset % direct_alignment;
  if (!lie_alike || bytes < head + direct_alignment || is_in_memory(offset, bytes)) return read_at(offset, to);
  // Another descriptor of the same file, whatever its name stands for by now.
  const std::string name = fmt::format("/proc/self/fd/{}", descriptor_);
  const int direct = uninterrupted([&] {
    const int opened = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    return opened >= 0 ? opened : -errno;
  });
  if (direct < 0) return read_at(offset, to);
  const InputFile past_memory(direct, size_);
  const std::uint64_t body = (bytes - head) / direct_alignment * direct_alignment;
  // A file system that refuses it after all, or a page that cannot be read: the usual way says what there is to say.
  const auto got = past_memory.read_at(offset + head, to.subspan(head, body));
  if (!got && got.error().kind() == ErrorKind::interrupted) return got;
  if (!got || *got != body) return read_at(offset, to);
  CGL_TRY_ASSIGN(const std::size_t before, read_at(offset, to.first(head)));
  if (before != head) return before;
  CGL_TRY_ASSIGN(const std::size_t behind, read_at(offset + head + body, to.subspan(head + body)));
  return head + body + behind;
#else
  return read_at(offset, to);
#endif
}

Result<std::size_t> FileStream::read(std::span<std::byte> to) {
  CGL_TRY_ASSIGN(const std::size_t got, file_.read_at(offset_, to));
  offset_ += got;
  return got;
}

Result<std::size_t> MemoryStream::read(std::span<std::byte> to) {
  const std::size_t count = std::min(to.size(), rest_.size());
  if (count > 0) std::memcpy(to.data(), rest_.data(), count);
  rest_ = rest_.subspan(count);
  return count;
}

namespace {

// Blocks go round: the thread fills a free one, the reader empties a full one. An empty block is the last.
class ReadAheadStream final : public ByteStream {
 public:
  explicit ReadAheadStream(std::unique_ptr<ByteStream> source) : source_(std::move(source)) {
    for (Block& block : blocks_) block.bytes.resize(block_bytes);
  }
  ~ReadAheadStream() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // False where the system has no thread left; `source` is then untouched and given back.
  [[nodiscard]] bool start() {
    try {
      thread_ = std::thread([this] { fill_blocks(); });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  [[nodiscard]] std::unique_ptr<ByteStream> take_source() { return std::move(source_); }

  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> to) override {
    while (true) {
      Block& block = blocks_[reading_ % block_count];
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return written_ > reading_; });
      }
      // From here the block is the reader's until reading_ moves on.
      if (taken_ == block.filled) {
        if (block.failure) return tl::make_unexpected(*block.failure);
        if (block.last) return std::size_t{0};
        taken_ = 0;
        {
          const std::lock_guard lock(mutex_);
          ++reading_;
        }
        changed_.notify_all();
        continue;
      }
      const std::size_t count = std::min(to.size(), block.filled - taken_);
      std::memcpy(to.data(), block.bytes.data() + taken_, count);
      taken_ += count;
      return count;
    }
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{1} << 20U;
  static constexpr std::size_t block_count = 4;

  struct Block {
    std::vector<std::byte> bytes;
    std::size_t filled = 0;
    bool last = false;
    std::optional<Error> failure;
  };

  void fill_blocks() {
    while (true) {
      Block* block = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || written_ - reading_ < block_count; });
        if (stopping_) return;
        block = &blocks_[written_ % block_count];
      }
      auto got = catch_out_of_memory([&] { return source_->read(block->bytes); });
      block->filled = got ? *got : 0;
      if (!got) block->failure.emplace(std::move(got.error()));
      block->last = block->filled == 0;
      const bool last = block->last;
      {
        const std::lock_guard lock(mutex_);
        ++written_;
      }
      changed_.notify_all();
      if (last) return;
    }
  }

  std::unique_ptr<ByteStream> source_;
  std::array<Block, block_count> blocks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t written_ = 0;  // blocks that the thread has filled; guarded by mutex_
  std::size_t reading_ = 0;  // blocks that the reader has emptied; written by the reader under mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::size_t taken_ = 0;    // bytes of the block being read; the reader's own
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ByteStream> read_ahead(std::unique_ptr<ByteStream> source) {
  auto ahead = std::make_unique<ReadAheadStream>(std::move(source));
  if (!ahead->start()) return ahead->take_source();
  return ahead;
}

}  // namespace cingulum
