// A file layer for tests: it passes every call on to another layer, writes down what happened, and lets the n-th call
// fail, stop short or be interrupted. Not used outside tests.
#pragma once

#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_layer.hpp"

namespace cingulum {

enum class FileCall {
  create,
  lock,
  write,
  write_at,
  sync,
  close,
  rename,
  rename_no_replace,
  link,
  unlink,
  sync_folder,
  state,
  resolve,
  free_bytes,
  list_folder,
  open_existing,
  allocate,
  map,
  cut,
};

struct RecordedCall {
  FileCall call;
  std::string path = {};   // of the file, or the old name
  std::string other = {};  // the new name
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::vector<std::byte> data = {};  // what a write really wrote
  std::int64_t result = 0;
};

struct FileFault {
  std::size_t at_call = std::numeric_limits<std::size_t>::max();  // counted from 0
  int error = 0;
  bool short_write = false;  // a write at that call writes half of its bytes, without an error
  bool lasting = false;      // every later creation, write and sync fails too, as on a disk that stays full
};

// What a message says of an error of the system: the first word is lower case, as the whole message is.
inline std::string cause_text(int error) {
  std::string text = std::generic_category().message(error);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

class FaultyFileLayer final : public FileLayer {
 public:
  explicit FaultyFileLayer(FileFault fault = {}, FileLayer& real = FileLayer::system()) : fault_(fault), real_(real) {}

  [[nodiscard]] const std::vector<RecordedCall>& trace() const noexcept { return trace_; }
  [[nodiscard]] bool fault_was_met() const noexcept { return met_; }
  // Like a file system that has not got these.
  void remove_rename_no_replace() noexcept { has_rename_no_replace_ = false; }
  void remove_links() noexcept { has_links_ = false; }
  // Like a file system in memory: files are written through maps.
  void put_into_memory() noexcept { in_memory_ = true; }
  // Syncs are recorded and fail as told, but the real disk is not waited for.
  void skip_real_syncs() noexcept { syncs_ = false; }
  // Writes of so many bytes leave a hole, and are not recorded: for files of gigabytes.
  void leave_holes(std::size_t from_bytes) noexcept { hole_bytes_ = from_bytes; }

  int create(const char* path, mode_t permissions) override {
    return record({.call = FileCall::create, .path = path}, [&] { return real_.create(path, permissions); });
  }
  int lock(int descriptor) override {
    return record({.call = FileCall::lock, .descriptor = descriptor}, [&] { return real_.lock(descriptor); });
  }
  ssize_t write(int descriptor, const void* data, std::size_t size) override {
    if (size >= hole_bytes_) {
      return ::lseek(descriptor, static_cast<off_t>(size), SEEK_CUR) < 0 ? -errno : static_cast<ssize_t>(size);
    }
    return record_write({.call = FileCall::write, .descriptor = descriptor}, data, size,
                        [&](std::size_t count) { return real_.write(descriptor, data, count); });
  }
  ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) override {
    return record_write({.call = FileCall::write_at, .descriptor = descriptor, .offset = offset}, data, size,
                        [&](std::size_t count) { return real_.write_at(descriptor, data, count, offset); });
  }
  int sync(int descriptor) override {
    return record({.call = FileCall::sync, .descriptor = descriptor},
                  [&] { return syncs_ ? real_.sync(descriptor) : 0; });
  }
  int close(int descriptor) override {
    const int closed = real_.close(descriptor);  // a failing close closes too
    return record({.call = FileCall::close, .descriptor = descriptor}, [&] { return closed; });
  }
  int rename(const char* from, const char* to) override {
    return record({.call = FileCall::rename, .path = from, .other = to}, [&] { return real_.rename(from, to); });
  }
  int rename_no_replace(const char* from, const char* to) override {
    return record({.call = FileCall::rename_no_replace, .path = from, .other = to},
                  [&] { return has_rename_no_replace_ ? real_.rename_no_replace(from, to) : -EINVAL; });
  }
  int link(const char* from, const char* to) override {
    return record({.call = FileCall::link, .path = from, .other = to},
                  [&] { return has_links_ ? real_.link(from, to) : -EPERM; });
  }
  int unlink(const char* path) override {
    return record({.call = FileCall::unlink, .path = path}, [&] { return real_.unlink(path); });
  }
  int sync_folder(const char* path) override {
    return record({.call = FileCall::sync_folder, .path = path}, [&] { return syncs_ ? real_.sync_folder(path) : 0; });
  }
  int state(const char* path, FileState& state) override {
    return record({.call = FileCall::state, .path = path}, [&] { return real_.state(path, state); });
  }
  int resolve(const char* path, std::string& resolved) override {
    return record({.call = FileCall::resolve, .path = path}, [&] { return real_.resolve(path, resolved); });
  }
  int free_bytes(const char* path, std::uint64_t& bytes) override {
    return record({.call = FileCall::free_bytes, .path = path}, [&] { return real_.free_bytes(path, bytes); });
  }
  int list_folder(const char* path, std::vector<std::string>& names) override {
    return record({.call = FileCall::list_folder, .path = path}, [&] { return real_.list_folder(path, names); });
  }
  int open_existing(const char* path) override {
    return record({.call = FileCall::open_existing, .path = path}, [&] { return real_.open_existing(path); });
  }
  bool is_in_memory(int) override { return in_memory_; }
  int allocate(int descriptor, std::uint64_t offset, std::uint64_t size) override {
    return record({.call = FileCall::allocate, .descriptor = descriptor, .offset = offset},
                  [&] { return real_.allocate(descriptor, offset, size); });
  }
  int map(int descriptor, std::uint64_t offset, std::size_t size, std::byte*& bytes) override {
    return record({.call = FileCall::map, .descriptor = descriptor, .offset = offset},
                  [&] { return real_.map(descriptor, offset, size, bytes); });
  }
  void unmap(std::byte* bytes, std::size_t size) override { real_.unmap(bytes, size); }
  int cut(int descriptor, std::uint64_t size) override {
    return record({.call = FileCall::cut, .descriptor = descriptor, .offset = size},
                  [&] { return real_.cut(descriptor, size); });
  }

 private:
  [[nodiscard]] bool strikes(FileCall call) {
    const std::size_t number = trace_.size();
    const bool fills_disk = call == FileCall::create || call == FileCall::write || call == FileCall::write_at ||
                            call == FileCall::sync || call == FileCall::allocate;
    const bool now = number == fault_.at_call || (fault_.lasting && number > fault_.at_call && fills_disk);
    met_ = met_ || now;
    return now;
  }

  template <class Call>
  int record(RecordedCall entry, Call&& call) {
    const std::lock_guard lock(mutex_);
    const bool fails = strikes(entry.call) && fault_.error != 0;
    const int result = fails ? -fault_.error : call();
    entry.result = result;
    trace_.push_back(std::move(entry));
    return result;
  }

  template <class Call>
  ssize_t record_write(RecordedCall entry, const void* data, std::size_t size, Call&& call) {
    const std::lock_guard lock(mutex_);
    const bool struck = strikes(entry.call);
    const bool fails = struck && fault_.error != 0;
    const std::size_t count = struck && fault_.short_write && size > 1 ? size / 2 : size;
    const ssize_t result = fails ? -fault_.error : call(count);
    if (result > 0) {
      entry.data.resize(static_cast<std::size_t>(result));
      std::memcpy(entry.data.data(), data, entry.data.size());
    }
    entry.result = result;
    trace_.push_back(std::move(entry));
    return result;
  }

  FileFault fault_;
  FileLayer& real_;
  bool met_ = false;
  bool has_rename_no_replace_ = true;
  bool has_links_ = true;
  bool syncs_ = true;
  std::size_t hole_bytes_ = std::numeric_limits<std::size_t>::max();
  bool in_memory_ = false;
  std::mutex mutex_;  // a file in memory is allocated by a thread beside its writer's
  std::vector<RecordedCall> trace_;
};

}  // namespace cingulum
