// Compiled kernels kept on disk between runs. An entry is found by everything that decides the code (source, entry
// point, options, architecture, driver, toolkit), is written beside and renamed, carries a checksum, and is removed
// when it is damaged: what does not check out is compiled again, never loaded. The least recently used entries go first
// when the limit is passed; use is remembered by the file's time, so a hit rewrites no index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cache_folder.hpp"
#include "base/result.hpp"

namespace cingulum {

struct KernelCacheKey {
  std::string source;
  std::string entry_point;
  std::vector<std::string> options;
  std::string architecture;
  std::string driver;
  std::string toolkit;

  // 32 hexadecimal digits; different fields never run into each other.
  [[nodiscard]] std::string digest() const;
};

struct KernelCacheStatistics {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t limit_bytes = 0;
};

class KernelCache {
 public:
  // The folder is made on the first store. A limit of 0 keeps nothing.
  KernelCache(std::filesystem::path folder, std::uint64_t limit_bytes)
      : folder_(std::move(folder), ".kernel"), limit_bytes_(limit_bytes) {}

  // The code, if it is there and undamaged.
  [[nodiscard]] std::optional<std::vector<std::byte>> load(const KernelCacheKey& key) const;
  [[nodiscard]] Status store(const KernelCacheKey& key, std::span<const std::byte> code) const;
  // Number of entries removed.
  [[nodiscard]] Result<std::uint64_t> clear() const { return folder_.clear(); }
  [[nodiscard]] KernelCacheStatistics statistics() const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  CacheFolder folder_;
  std::uint64_t limit_bytes_;
};

}  // namespace cingulum
