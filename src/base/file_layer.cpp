#include "base/file_layer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#if defined(__linux__)
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

namespace cingulum {
namespace {

int answer(int result) {
  return result >= 0 ? result : -errno;
}

class SystemFileLayer final : public FileLayer {
 public:
  int create(const char* path, mode_t permissions) override {
    return answer(::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions));
  }

  int lock(int descriptor) override { return answer(::flock(descriptor, LOCK_EX | LOCK_NB)); }

  ssize_t write(int descriptor, const void* data, std::size_t size) override {
    const ssize_t written = ::write(descriptor, data, size);
    return written >= 0 ? written : -errno;
  }

  ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) override {
    const ssize_t written = ::pwrite(descriptor, data, size, static_cast<off_t>(offset));
    return written >= 0 ? written : -errno;
  }

  int sync(int descriptor) override {
#if defined(__APPLE__)
    // fsync() leaves the data in the drive's cache there.
    if (::fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
    return answer(::fsync(descriptor));
  }

  int close(int descriptor) override {
    return answer(::close(descriptor));
  }

  int rename(const char* from, const char* to) override {
    return answer(::rename(from, to));
  }

  int rename_no_replace(const char* from, const char* to) override {
#if defined(__linux__)
    return answer(::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
#elif defined(__APPLE__)
    return answer(::renamex_np(from, to, RENAME_EXCL));
#else
    (void)from;
    (void)to;
    return -ENOSYS;
#endif
  }

  int link(const char* from, const char* to) override {
    return answer(::link(from, to));
  }

  int unlink(const char* path) override {
    return answer(::unlink(path));
  }

  int sync_folder(const char* path) override {
    const int descriptor = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    const int result = answer(::fsync(descriptor));
    ::close(descriptor);
    return result;
  }

  int state(const char* path, FileState& state) override {
    struct stat status {};
    if (::lstat(path, &status) != 0) {
      if (errno != ENOENT) return -errno;
      state = {};
      return 0;
    }
    state.permissions = status.st_mode & 0777;
    state.kind = S_ISREG(status.st_mode)   ? FileKind::regular
                 : S_ISDIR(status.st_mode) ? FileKind::folder
                 : S_ISLNK(status.st_mode) ? FileKind::link
                                           : FileKind::other;
    return 0;
  }

  int resolve(const char* path, std::string& resolved) override {
    const std::unique_ptr<char, decltype(&std::free)> text(::realpath(path, nullptr), &std::free);
    if (!text) return -errno;
    resolved = text.get();
    return 0;
  }

  int free_bytes(const char* path, std::uint64_t& bytes) override {
    struct statvfs status {};
    if (::statvfs(path, &status) != 0) return -errno;
    // Some network and user-space file systems do not know their size.
    if (status.f_blocks == 0) return -ENOTSUP;
    bytes = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
    return 0;
  }

  int list_folder(const char* path, std::vector<std::string>& names) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path), &::closedir);
    if (!folder) return -errno;
    names.clear();
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) return -errno;
      names.emplace_back(entry->d_name);
    }
  }

  // For writing, because NFS grants an exclusive lock only then.
  int open_existing(const char* path) override {
    return answer(::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  }

#if defined(__linux__)
  bool is_in_memory(int descriptor) override {
    constexpr auto tmpfs = 0x01021994;
    struct statfs facts {};
    return ::fstatfs(descriptor, &facts) == 0 && facts.f_type == tmpfs;
  }

  int allocate(int descriptor, std::uint64_t offset, std::uint64_t size) override {
    return answer(::fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(size)));
  }

  int map(int descriptor, std::uint64_t offset, std::size_t size, std::byte*& bytes) override {
    void* const mapping =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
    if (mapping == MAP_FAILED) return -errno;
    bytes = static_cast<std::byte*>(mapping);
    return 0;
  }

  void unmap(std::byte* bytes, std::size_t size) override {
    (void)::munmap(bytes, size);
  }

  int cut(int descriptor, std::uint64_t size) override {
    return answer(::ftruncate(descriptor, static_cast<off_t>(size)));
  }

  void begin_sync(int descriptor, std::uint64_t offset, std::uint64_t size) override {
    (void)::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
  }
#endif
};

}  // namespace

FileLayer& FileLayer::system() {
  static SystemFileLayer layer;
  return layer;
}

std::string system_error_text(int error_number) {
  std::string text = std::generic_category().message(error_number);
  // Messages are lower case; "I/O error" stays.
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

}  // namespace cingulum
