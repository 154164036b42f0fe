// Files in memory behind the interface of a file system, for writers where there is none: a page in a browser that
// saves a tractogram (view/exported_tracks.hpp). One folder, "/". One caller at a time.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/file_layer.hpp"
#include "base/result.hpp"

namespace cingulum::view {

class MemoryFiles final : public FileLayer {
 public:
  // The bytes of a file, which is gone then.
  [[nodiscard]] Result<std::vector<std::byte>> take(const std::string& path);

  int create(const char* path, mode_t permissions) override;
  int lock(int descriptor) override;
  ssize_t write(int descriptor, const void* data, std::size_t size) override;
  ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int rename(const char* from, const char* to) override;
  int rename_no_replace(const char* from, const char* to) override;
  int link(const char* from, const char* to) override;
  int unlink(const char* path) override;
  int sync_folder(const char* path) override;
  int state(const char* path, FileState& state) override;
  int resolve(const char* path, std::string& resolved) override;
  int free_bytes(const char* path, std::uint64_t& bytes) override;
  int list_folder(const char* path, std::vector<std::string>& names) override;
  int open_existing(const char* path) override;

 private:
  std::map<std::string, std::vector<std::byte>> files_;
  std::map<int, std::string> open_;
  int next_descriptor_ = 0;
};

// The one of the process.
[[nodiscard]] MemoryFiles& memory_files();

}  // namespace cingulum::view
