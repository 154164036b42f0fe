// What decides the field of a series, as the key under which a folder keeps it: the hashes of the inputs, every
// parameter of the preparation, and the build, since another build may round otherwise. Called by `cingulum track
// --cache-dir`.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tract/field/fit_cache.hpp"
#include "tract/field/series_field.hpp"

namespace cingulum {

// `build` is a text that differs between builds, `inputs` has the hashes of the files by what they are.
[[nodiscard]] nlohmann::ordered_json fit_key(std::string_view build, nlohmann::ordered_json inputs,
                                             const SeriesFieldRequest& request);

class FitKey {
 public:
  // Hashes the files.
  [[nodiscard]] static Result<FitKey> create(std::string_view build, const SeriesFieldFiles& files,
                                             const SeriesFieldRequest& request);

  [[nodiscard]] const nlohmann::ordered_json& json() const { return json_; }
  // Whether sizes and times of the inputs are still those that were hashed: what was read later may be something else.
  [[nodiscard]] bool inputs_unchanged() const;

 private:
  struct Stamp {
    std::filesystem::path path;
    std::uintmax_t bytes = 0;
    std::filesystem::file_time_type time = {};
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  [[nodiscard]] static Result<Stamp> stamp_of(const std::filesystem::path& path);

  nlohmann::ordered_json json_;
  std::vector<Stamp> stamps_;
};

// What the cache holds for these files and this request; where there is nothing, what `make` answers, which is then
// kept. A folder that cannot be written, or inputs that changed meanwhile, are said in the log and cost the keeping
// alone.
[[nodiscard]] Result<TrackingData> kept_or_made(const FitCache& cache, std::string_view build,
                                                const SeriesFieldFiles& files, const ImageGeometry& geometry,
                                                const SeriesFieldRequest& request,
                                                const std::function<Result<TrackingData>()>& make);

}  // namespace cingulum
