// A file system in memory for the writers: fuzzing writes what it read thousands of times a second and reads it back
// from here. It knows one flat folder and has no faults; tests/support/faulty_file_layer.hpp has.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_layer.hpp"

namespace cingulum::fuzz {

class MemoryFileLayer final : public FileLayer {
 public:
  // The content under a final name; empty when there is none.
  [[nodiscard]] const std::vector<std::byte>& content(const std::string& path) { return files_[path]; }

  int create(const char* path, mode_t) override {
    files_[path].clear();
    open_.push_back(path);
    return static_cast<int>(open_.size()) - 1;
  }
  int lock(int) override { return 0; }
  ssize_t write(int descriptor, const void* data, std::size_t size) override {
    auto& file = files_[open_[static_cast<std::size_t>(descriptor)]];
    const auto* begin = static_cast<const std::byte*>(data);
    file.insert(file.end(), begin, begin + size);
    return static_cast<ssize_t>(size);
  }
  ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) override {
    auto& file = files_[open_[static_cast<std::size_t>(descriptor)]];
    if (offset + size > file.size()) return -EINVAL;
    std::memcpy(file.data() + offset, data, size);
    return static_cast<ssize_t>(size);
  }
  int sync(int) override { return 0; }
  int close(int) override { return 0; }
  int rename(const char* from, const char* to) override {
    auto node = files_.extract(from);
    if (node.empty()) return -ENOENT;
    files_.erase(to);
    node.key() = to;
    files_.insert(std::move(node));
    return 0;
  }
  int rename_no_replace(const char* from, const char* to) override {
    return files_.contains(to) ? -EEXIST : rename(from, to);
  }
  int link(const char*, const char*) override { return -EPERM; }
  int unlink(const char* path) override { return files_.erase(path) == 1 ? 0 : -ENOENT; }
  int sync_folder(const char*) override { return 0; }
  int state(const char* path, FileState& state) override {
    state.kind = files_.contains(path)                           ? FileKind::regular
                 : std::string_view(path).find('.') == path_npos ? FileKind::folder
                                                                 : FileKind::absent;
    state.permissions = 0644;
    return 0;
  }
  int resolve(const char* path, std::string& resolved) override {
    resolved = path;
    return 0;
  }
  int free_bytes(const char*, std::uint64_t& bytes) override {
    bytes = std::uint64_t{1} << 40U;
    return 0;
  }
  int list_folder(const char*, std::vector<std::string>& names) override {
    names.clear();
    return 0;
  }
  int open_existing(const char*) override { return -ENOENT; }

 private:
  static constexpr std::size_t path_npos = std::string_view::npos;
  std::map<std::string, std::vector<std::byte>> files_;
  std::vector<std::string> open_;
};

}  // namespace cingulum::fuzz
