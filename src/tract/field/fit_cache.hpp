// Prepared series kept on disk between runs of `cingulum track --cache-dir`: the mask, the stopping map and the field
// that the tracker reads, so that a run with the same inputs and parameters begins to track at once. An entry is found
// by its key, which holds the hash of every input and every parameter that decides the result; it is written beside and
// renamed, so several processes may share a folder; it carries a checksum over all its bytes, and an entry whose
// checksum is wrong is reported, removed and computed anew, never used. Entries are not removed to save space:
// `cingulum cache` does that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_folder.hpp"
#include "base/result.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"
#include "tract/field/fit_file.hpp"

namespace cingulum {

class FitCache {
 public:
  // The folder is made on the first store.
  explicit FitCache(std::filesystem::path folder) : folder_(std::move(folder), ".fit") {}

  // `key` in its text form decides: equal keys are equal results. The sphere and the geometry are not stored, since the
  // key determines them; they become those of the field.
  [[nodiscard]] std::optional<KeptFit> load(const nlohmann::ordered_json& key, const ImageGeometry& geometry,
                                            const Sphere& sphere) const;
  // `about` is shown by `cingulum cache` and has no part in the result.
  [[nodiscard]] Status store(const nlohmann::ordered_json& key, const nlohmann::ordered_json& about,
                             const PreparedField& prepared, const std::vector<float>& stop_map,
                             const std::vector<std::uint8_t>& mask) const;

  struct Entry {
    CacheEntry file;
    nlohmann::ordered_json about;  // null where the file cannot be read
  };
  [[nodiscard]] std::vector<Entry> entries() const;
  [[nodiscard]] Result<std::uint64_t> clear() const { return folder_.clear(); }
  [[nodiscard]] std::filesystem::path path_of(const nlohmann::ordered_json& key) const;

 private:
  CacheFolder folder_;
};

}  // namespace cingulum
