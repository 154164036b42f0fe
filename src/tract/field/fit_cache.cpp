#include "tract/field/fit_cache.hpp"

#include <utility>

#include "base/atomic_file.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string digest_of(const Json& key) {
  return hash_hex(key.dump());
}

}  // namespace

fs::path FitCache::path_of(const Json& key) const {
  return folder_.path_of(digest_of(key));
}

std::optional<KeptFit> FitCache::load(const Json& key, const ImageGeometry& geometry, const Sphere& sphere) const {
  const fs::path path = path_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  Result<KeptFit> fit = read_fit_file(path, key, geometry, sphere);
  if (fit) {
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return std::move(*fit);
  }
  if (fit.error().kind() != ErrorKind::corrupt) {
    log_warning("the kept fit {} is not used: {}", path.string(), fit.error());
    return std::nullopt;
  }
  log_warning("the kept fit {} is damaged: {}; it is removed and computed anew", path.string(), fit.error());
  fs::remove(path, error);
  return std::nullopt;
}

Status FitCache::store(const Json& key, const Json& about, const PreparedField& prepared,
                       const std::vector<float>& stop_map, const std::vector<std::uint8_t>& mask) const {
  CGL_TRY(folder_.make());
  // The entry can be made anew, and its checksum shows what a power cut did to it, so that it need not wait for the
  // disk.
  WriteOptions options;
  options.force = true;
  options.sync = false;
  return write_fit_file(path_of(key), {key, about}, {prepared, stop_map, mask}, options);
}

std::vector<FitCache::Entry> FitCache::entries() const {
  std::vector<Entry> list;
  for (CacheEntry& file : folder_.entries()) {
    Entry entry{std::move(file), nullptr};
    if (auto said = read_fit_description(entry.file.path)) entry.about = std::move(said->about);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace cingulum
