// What decides the fit of a series in `cingulum track`, as the key under which --cache-dir keeps it: the hashes of the
// inputs, every parameter of the preparation, and the build, since another build may round otherwise.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.hpp"
#include "cli/track_series.hpp"
#include "cli/verb.hpp"
#include "dmri/sphere/sphere.hpp"
#include "tract/field/dwi_preparation.hpp"

namespace cingulum {

class FitKey {
 public:
  [[nodiscard]] static Result<FitKey> create(const ParsedArguments& arguments, const SeriesPaths& paths,
                                             const FieldRequest& request, const Sphere& sphere);

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

// For people: which series, which model.
[[nodiscard]] nlohmann::ordered_json about_fit(const SeriesPaths& paths, const FieldRequest& request);

}  // namespace cingulum
