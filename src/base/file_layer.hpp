// The calls by which Cingulum changes files, behind one interface so that tests can make any of them fail, stop short
// or be recorded. AtomicFile is its only user among the writers; readers do not need it. Each call answers like the
// Linux kernel does: zero or a useful value when it worked, and minus errno when not.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cingulum {

enum class FileKind { absent, regular, folder, link, other };

struct FileState {
  FileKind kind = FileKind::absent;
  mode_t permissions = 0;
};

class FileLayer {
 public:
  virtual ~FileLayer() = default;

  // The process's file system.
  [[nodiscard]] static FileLayer& system();

  // Creates a file that must not be there yet and opens it for writing; the value is its descriptor.
  [[nodiscard]] virtual int create(const char* path, mode_t permissions) = 0;
  // Takes the advisory lock of an open file; -EWOULDBLOCK when another open file holds it.
  [[nodiscard]] virtual int lock(int descriptor) = 0;
  // Both may write less than they were given; the value is the number of bytes written.
  [[nodiscard]] virtual ssize_t write(int descriptor, const void* data, std::size_t size) = 0;
  [[nodiscard]] virtual ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) = 0;
  [[nodiscard]] virtual int sync(int descriptor) = 0;
  // The descriptor is gone afterwards whatever the answer.
  [[nodiscard]] virtual int close(int descriptor) = 0;
  [[nodiscard]] virtual int rename(const char* from, const char* to) = 0;
  // -EEXIST when `to` is there; -EINVAL or -ENOSYS where the file system cannot do it.
  [[nodiscard]] virtual int rename_no_replace(const char* from, const char* to) = 0;
  [[nodiscard]] virtual int link(const char* from, const char* to) = 0;
  [[nodiscard]] virtual int unlink(const char* path) = 0;
  [[nodiscard]] virtual int sync_folder(const char* path) = 0;

  // Does not follow a symbolic link.
  [[nodiscard]] virtual int state(const char* path, FileState& state) = 0;
  // The absolute path behind symbolic links.
  [[nodiscard]] virtual int resolve(const char* path, std::string& resolved) = 0;
  // Bytes that an ordinary user may still write in the file system that holds `path`.
  [[nodiscard]] virtual int free_bytes(const char* path, std::uint64_t& bytes) = 0;
  [[nodiscard]] virtual int list_folder(const char* path, std::vector<std::string>& names) = 0;
  // Opens an existing file, for lock() only; the value is its descriptor.
  [[nodiscard]] virtual int open_existing(const char* path) = 0;

  // Whether the bytes of an open file stay in memory (tmpfs). Such a file can be written through map() by several
  // threads at once, which write() and write_at() of one file never are. A layer that does not say so needs none of the
  // next four.
  [[nodiscard]] virtual bool is_in_memory(int descriptor) {
    (void)descriptor;
    return false;
  }
  // Memory for these bytes, set to zero where they are new; a shorter file becomes as long. Called by a thread beside
  // the writer's.
  [[nodiscard]] virtual int allocate(int descriptor, std::uint64_t offset, std::uint64_t size) {
    (void)descriptor, (void)offset, (void)size;
    return -ENOTSUP;
  }
  // Bytes of the file that were allocated, to write; `offset` is a multiple of map_granule.
  [[nodiscard]] virtual int map(int descriptor, std::uint64_t offset, std::size_t size, std::byte*& bytes) {
    (void)descriptor, (void)offset, (void)size, (void)bytes;
    return -ENOTSUP;
  }
  virtual void unmap(std::byte* bytes, std::size_t size) { (void)bytes, (void)size; }
  [[nodiscard]] virtual int cut(int descriptor, std::uint64_t size) {
    (void)descriptor, (void)size;
    return -ENOTSUP;
  }
  static constexpr std::uint64_t map_granule = std::uint64_t{1} << 16U;  // of the pages of every system

  // Lets the system begin to bring these bytes to the disk, so that less is left for sync(). Advice.
  virtual void begin_sync(int descriptor, std::uint64_t offset, std::uint64_t size) {
    (void)descriptor, (void)offset, (void)size;
  }
};

// Repeats a call of a file layer that a signal interrupted.
template <class Call>
auto uninterrupted(Call&& call) {
  while (true) {
    const auto result = call();
    if (result != -EINTR) return result;
  }
}

// The system's words for an error number: "no space left on device".
[[nodiscard]] std::string system_error_text(int error_number);

}  // namespace cingulum
