// A library for LD_PRELOAD that stands between a program and the C library's file calls: what the program really asks
// of the system, below every layer of its own. Told by variables of the environment:
//   CINGULUM_TEST_CALLS_UNDER   the folder whose files are watched, an absolute path without links
//   CINGULUM_TEST_CALLS_LOG     one line per call is appended here: name, path, other path, result, parted by tabs
//   CINGULUM_TEST_NO_LOCKS      set: files there cannot be locked, as on some network file systems
//   CINGULUM_TEST_KILL_AT       SIGKILL right before the n-th step, counted from 1; steps are all calls but writes
// tests/support/file_calls.py starts programs under it and reads the lines.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_watched(const std::string& path) {
  static const char* const folder = std::getenv("CINGULUM_TEST_CALLS_UNDER");
  if (folder == nullptr) return false;
  const std::size_t length = std::strlen(folder);
  return path.compare(0, length, folder) == 0 && (path.size() == length || path[length] == '/');
}

std::string path_of(int descriptor) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

void die_before_the_chosen_step() {
  static std::atomic<long> steps{0};
  static const char* const chosen = std::getenv("CINGULUM_TEST_KILL_AT");
  if (chosen != nullptr && ++steps == std::atol(chosen)) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
}

void write_down(const char* call, const std::string& path, const std::string& other, long result) {
  static auto* const real_write = next<ssize_t(int, const void*, size_t)>("write");
  static auto* const real_open = next<int(const char*, int, ...)>("open");
  static const char* const log = std::getenv("CINGULUM_TEST_CALLS_LOG");
  if (log == nullptr) return;
  static const int descriptor = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const std::string line = std::string(call) + '\t' + path + '\t' + other + '\t' + std::to_string(result) + '\n';
  if (real_write(descriptor, line.data(), line.size()) < 0) std::abort();
}

template <class Call>
auto step(const char* name, const std::string& path, const std::string& other, Call&& call) {
  if (!is_watched(path)) return call();
  die_before_the_chosen_step();
  const auto result = call();
  const int error = errno;
  write_down(name, path, other, static_cast<long>(result));
  errno = error;
  return result;
}

template <class Call>
ssize_t written(int descriptor, Call&& call) {
  const ssize_t result = call();
  const int error = errno;
  const std::string path = path_of(descriptor);
  if (is_watched(path)) write_down("write", path, "", result);
  errno = error;
  return result;
}

int opened(int (*real)(const char*, int, ...), const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) == 0) return real(path, flags, mode);
  return step("create", path, "", [&] { return real(path, flags, mode); });
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return opened(real, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open64");
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return opened(real, path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return written(descriptor, [&] { return real(descriptor, data, size); });
}

ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return written(descriptor, [&] { return real(descriptor, data, size, offset); });
}

ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return written(descriptor, [&] { return real(descriptor, data, size, offset); });
}

int fsync(int descriptor) {
  static auto* const real = next<int(int)>("fsync");
  return step("sync", path_of(descriptor), "", [&] { return real(descriptor); });
}

int fdatasync(int descriptor) {
  static auto* const real = next<int(int)>("fdatasync");
  return step("sync", path_of(descriptor), "", [&] { return real(descriptor); });
}

int flock(int descriptor, int operation) noexcept {
  static auto* const real = next<int(int, int)>("flock");
  if (std::getenv("CINGULUM_TEST_NO_LOCKS") == nullptr || !is_watched(path_of(descriptor))) {
    return real(descriptor, operation);
  }
  write_down("lock", path_of(descriptor), "", -1);
  errno = ENOLCK;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return step("rename", from, to, [&] { return real(from, to); });
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static auto* const real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const char* const name = (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename";
  return step(name, from, to, [&] { return real(from_folder, from, to_folder, to, flags); });
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("link");
  return step("link", from, to, [&] { return real(from, to); });
}

int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  return step("unlink", path, "", [&] { return real(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return step("mkdir", path, "", [&] { return real(path, mode); });
}

}  // extern "C"
