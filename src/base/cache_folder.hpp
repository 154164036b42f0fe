// A folder of files that only save work: each is found by the digest in its name, DIGEST.EXTENSION, and may vanish at
// any time. Finding, counting and removing them is here; what is in a file, and how it is checked, is its cache's
// matter (device/kernel_cache.hpp, tract/field/fit_cache.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

struct CacheEntry {
  std::filesystem::path path;
  std::uint64_t bytes;
  std::filesystem::file_time_type last_used;
};

class CacheFolder {
 public:
  // The folder need not be there; `extension` begins with a dot.
  CacheFolder(std::filesystem::path folder, std::string extension)
      : folder_(std::move(folder)), extension_(std::move(extension)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }
  [[nodiscard]] std::filesystem::path path_of(const std::string& digest) const {
    return folder_ / (digest + extension_);
  }
  [[nodiscard]] Status make() const;
  // Sorted by name.
  [[nodiscard]] std::vector<CacheEntry> entries() const;
  // Number of entries removed.
  [[nodiscard]] Result<std::uint64_t> clear() const;
  // Removes least recently used entries until `coming_bytes` more fit under the limit.
  void make_room(std::uint64_t coming_bytes, std::uint64_t limit_bytes) const;

 private:
  std::filesystem::path folder_;
  std::string extension_;
};

}  // namespace cingulum
