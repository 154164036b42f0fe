#include "base/cache_folder.hpp"

#include <algorithm>

namespace cingulum {

namespace fs = std::filesystem;

Status CacheFolder::make() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return fail(ErrorKind::io, "making the cache folder {}: {}", folder_.string(), error.message());
  return {};
}

std::vector<CacheEntry> CacheFolder::entries() const {
  std::vector<CacheEntry> found;
  std::error_code error;
  for (fs::directory_iterator file_at(folder_, error), end; !error && file_at != end; file_at.increment(error)) {
    const fs::directory_entry& file = *file_at;
    std::error_code file_error;
    if (file.path().extension() != extension_ || !file.is_regular_file(file_error)) continue;
    const auto bytes = file.file_size(file_error);
    const auto last_used = file.last_write_time(file_error);
    if (!file_error) found.push_back({file.path(), bytes, last_used});
  }
  std::sort(found.begin(), found.end(), [](const CacheEntry& a, const CacheEntry& b) { return a.path < b.path; });
  return found;
}

Result<std::uint64_t> CacheFolder::clear() const {
  std::uint64_t removed = 0;
  for (const CacheEntry& entry : entries()) {
    std::error_code error;
    fs::remove(entry.path, error);
    if (error)
      return fail_file(entry.path.string(), ErrorKind::io, "removing {} from the cache: {}", entry.path.string(),
                       error.message());
    ++removed;
  }
  return removed;
}

void CacheFolder::make_room(std::uint64_t coming_bytes, std::uint64_t limit_bytes) const {
  std::vector<CacheEntry> all = entries();
  std::uint64_t total = 0;
  for (const CacheEntry& entry : all) total += entry.bytes;
  std::stable_sort(all.begin(), all.end(),
                   [](const CacheEntry& a, const CacheEntry& b) { return a.last_used < b.last_used; });
  for (const CacheEntry& entry : all) {
    if (total + coming_bytes <= limit_bytes) return;
    std::error_code error;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace cingulum
