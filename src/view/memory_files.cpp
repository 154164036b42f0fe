#include "view/memory_files.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace cingulum::view {

MemoryFiles& memory_files() {
  static MemoryFiles files;
  return files;
}

Result<std::vector<std::byte>> MemoryFiles::take(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return fail(ErrorKind::io, "no file {} in memory", path);
  std::vector<std::byte> bytes = std::move(found->second);
  files_.erase(found);
  return bytes;
}

int MemoryFiles::create(const char* path, mode_t) {
  if (!files_.try_emplace(path).second) return -EEXIST;
  open_[next_descriptor_] = path;
  return next_descriptor_++;
}

int MemoryFiles::lock(int descriptor) {
  return open_.count(descriptor) != 0 ? 0 : -EBADF;
}

ssize_t MemoryFiles::write(int descriptor, const void* data, std::size_t size) {
  const auto name = open_.find(descriptor);
  if (name == open_.end() || files_.count(name->second) == 0) return -EBADF;
  return write_at(descriptor, data, size, files_[name->second].size());
}

ssize_t MemoryFiles::write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) {
  const auto name = open_.find(descriptor);
  if (name == open_.end() || files_.count(name->second) == 0) return -EBADF;
  std::vector<std::byte>& bytes = files_[name->second];
  const auto at = static_cast<std::size_t>(offset);
  if (bytes.size() < at + size) bytes.resize(at + size);
  if (size > 0) std::memcpy(bytes.data() + at, data, size);
  return static_cast<ssize_t>(size);
}

int MemoryFiles::sync(int descriptor) {
  return lock(descriptor);
}

int MemoryFiles::close(int descriptor) {
  return open_.erase(descriptor) != 0 ? 0 : -EBADF;
}

int MemoryFiles::rename(const char* from, const char* to) {
  const auto found = files_.find(from);
  if (found == files_.end()) return -ENOENT;
  std::vector<std::byte> bytes = std::move(found->second);
  files_.erase(found);
  files_[to] = std::move(bytes);
  for (auto& [descriptor, name] : open_) {
    if (name == from) name = to;
  }
  return 0;
}

int MemoryFiles::rename_no_replace(const char* from, const char* to) {
  return files_.count(to) != 0 ? -EEXIST : rename(from, to);
}

int MemoryFiles::link(const char*, const char*) {
  return -ENOTSUP;
}

int MemoryFiles::unlink(const char* path) {
  return files_.erase(path) != 0 ? 0 : -ENOENT;
}

int MemoryFiles::sync_folder(const char*) {
  return 0;
}

int MemoryFiles::state(const char* path, FileState& state) {
  state = {};
  if (std::strcmp(path, "/") == 0) state = {FileKind::folder, 0700};
  if (files_.count(path) != 0) state = {FileKind::regular, 0600};
  return 0;
}

int MemoryFiles::resolve(const char* path, std::string& resolved) {
  if (std::strcmp(path, "/") != 0 && files_.count(path) == 0) return -ENOENT;
  resolved = path;
  return 0;
}

int MemoryFiles::free_bytes(const char*, std::uint64_t&) {
  return -ENOTSUP;
}

int MemoryFiles::list_folder(const char*, std::vector<std::string>& names) {
  names.clear();
  for (const auto& [path, bytes] : files_) names.push_back(path.substr(1));
  return 0;
}

int MemoryFiles::open_existing(const char* path) {
  if (files_.count(path) == 0) return -ENOENT;
  open_[next_descriptor_] = path;
  return next_descriptor_++;
}

}  // namespace cingulum::view
