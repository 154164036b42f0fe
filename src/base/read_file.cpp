#include "base/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file_layer.hpp"
#include "base/interrupt.hpp"
#include "base/quantity.hpp"

namespace cingulum {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) noexcept : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int value() const noexcept { return value_; }

 private:
  int value_;
};

ErrorKind kind_of(int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) return ErrorKind::not_found;
  return error_number == ENOMEM ? ErrorKind::out_of_memory : ErrorKind::io;
}

template <class Bytes>
Result<Bytes> read_whole(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  return catch_out_of_memory([&]() -> Result<Bytes> {
    int opened = -1;
    do {
      CGL_TRY(check_interrupt());  // a pipe without a writer waits here, and Ctrl-C ends the wait
      opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    } while (opened < 0 && errno == EINTR);
    if (opened < 0) {
      const int error = errno;
      return fail_file(path.native(), kind_of(error), "reading {}: {}", path.native(), system_error_text(error));
    }
    const Descriptor file(opened);

    const auto too_large = [&](std::uint64_t bytes, std::string_view more) {
      return fail_file(path.native(), ErrorKind::invalid_argument,
                       "reading {}: {}{} bytes is above the limit of {} ({})", path.native(), more, bytes, limit_bytes,
                       format_bytes(limit_bytes));
    };
    struct stat status {};
    if (::fstat(file.value(), &status) != 0) {
      const int error = errno;
      return fail_file(path.native(), ErrorKind::io, "reading {}: {}", path.native(), system_error_text(error));
    }
    if (S_ISDIR(status.st_mode))
      return fail_file(path.native(), ErrorKind::io, "reading {}: it is a folder", path.native());
    const std::uint64_t stated = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    if (stated > limit_bytes) return too_large(stated, "");

    // One byte more than stated, so that the end is seen without growing.
    constexpr std::uint64_t smallest_buffer = 4096;
    Bytes bytes;
    bytes.resize(static_cast<std::size_t>(std::max(stated + 1, smallest_buffer)));
    std::size_t filled = 0;
    while (true) {
      if (filled == bytes.size()) bytes.resize(bytes.size() * 2);
      const ssize_t got = ::read(file.value(), bytes.data() + filled, bytes.size() - filled);
      if (got < 0 && errno == EINTR) {
        CGL_TRY(check_interrupt());
        continue;
      }
      if (got < 0) {
        const int error = errno;
        return fail_file(path.native(), ErrorKind::io, "reading {} at byte {}: {}", path.native(), filled,
                         system_error_text(error));
      }
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
      if (filled > limit_bytes) return too_large(filled, "at least ");
    }
    bytes.resize(filled);
    return bytes;
  });
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  return read_whole<std::vector<std::byte>>(path, limit_bytes);
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  return read_whole<std::string>(path, limit_bytes);
}

}  // namespace cingulum
