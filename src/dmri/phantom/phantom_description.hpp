// The truth of a phantom as phantom.json holds it: its grid and the shape of its bundles, as JSON and back. Written by
// phantom_files.cpp among everything else that the phantom was made of; read by the score, the report and the
// comparison.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/phantom/phantom_bundle.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

constexpr const char* phantom_format = "cingulum-phantom";
constexpr int phantom_version = 1;

struct PhantomTruth {
  std::string preset;
  ImageGeometry geometry;
  std::vector<Bundle> bundles;
};

// Bounded: at most 64 MB, 64 levels, and as many bundles, knots and pieces as the messages say.
[[nodiscard]] Result<PhantomTruth> parse_phantom(std::string_view json);
[[nodiscard]] Result<PhantomTruth> read_phantom(const std::filesystem::path& folder);

[[nodiscard]] nlohmann::ordered_json vector_json(numerics::Vec3d v);
[[nodiscard]] nlohmann::ordered_json geometry_json(const ImageGeometry& geometry);
[[nodiscard]] nlohmann::ordered_json bundle_json(const Bundle& bundle);
// What parse_phantom reads, and nothing else.
[[nodiscard]] std::string format_phantom(const PhantomTruth& truth);

}  // namespace cingulum
