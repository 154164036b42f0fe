#include "device/kernel_cache.hpp"

#include <cstring>

#include "base/atomic_file.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/read_file.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// An entry is this line, the digest of its key, the hash of its code, each with a line end, then the code.
constexpr std::string_view magic = "cingulum kernel 1";
constexpr std::size_t hex_digits = 32;
constexpr std::size_t header_bytes = magic.size() + 1 + 2 * (hex_digits + 1);
constexpr std::uint64_t largest_entry_bytes = std::uint64_t{256} << 20;

void add_field(Hash128& hash, std::string_view field) {
  hash.add(std::to_string(field.size()));
  hash.add(":");
  hash.add(field);
}

std::string header(const std::string& key_digest, std::span<const std::byte> code) {
  return fmt::format("{}\n{}\n{}\n", magic, key_digest, hash_hex(code));
}

}  // namespace

std::string KernelCacheKey::digest() const {
  Hash128 hash;
  add_field(hash, source);
  add_field(hash, entry_point);
  add_field(hash, std::to_string(options.size()));
  for (const std::string& option : options) add_field(hash, option);
  add_field(hash, architecture);
  add_field(hash, driver);
  add_field(hash, toolkit);
  return hash.hex();
}

std::optional<std::vector<std::byte>> KernelCache::load(const KernelCacheKey& key) const {
  const fs::path path = folder_.path_of(key.digest());
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  auto content = read_file(path, largest_entry_bytes);
  if (!content) {
    log_debug("kernel cache: {}", content.error().message());
    return std::nullopt;
  }
  if (content->size() > header_bytes) {
    const auto code = std::span<const std::byte>(*content).subspan(header_bytes);
    if (std::memcmp(content->data(), header(key.digest(), code).data(), header_bytes) == 0) {
      fs::last_write_time(path, fs::file_time_type::clock::now(), error);
      content->erase(content->begin(), content->begin() + static_cast<std::ptrdiff_t>(header_bytes));
      return std::move(*content);
    }
  }
  log_warning("kernel cache: {} is damaged; it is removed and the kernel compiled again", path.string());
  fs::remove(path, error);
  return std::nullopt;
}

Status KernelCache::store(const KernelCacheKey& key, std::span<const std::byte> code) const {
  const std::uint64_t bytes = header_bytes + code.size();
  if (code.empty() || bytes > limit_bytes_ || bytes > largest_entry_bytes) return {};
  CGL_TRY(folder_.make());
  folder_.make_room(bytes, limit_bytes_);
  // A cache can be made anew: nothing is lost with it at a power cut, so it need not wait for the disk.
  WriteOptions options;
  options.force = true;
  options.sync = false;
  CGL_TRY_ASSIGN(auto file, AtomicFile::create(folder_.path_of(key.digest()), options));
  CGL_TRY(file.append(header(key.digest(), code)));
  CGL_TRY(file.append(code));
  return file.commit();
}

KernelCacheStatistics KernelCache::statistics() const {
  KernelCacheStatistics statistics;
  statistics.limit_bytes = limit_bytes_;
  for (const CacheEntry& entry : folder_.entries()) {
    ++statistics.entries;
    statistics.bytes += entry.bytes;
  }
  return statistics;
}

}  // namespace cingulum
