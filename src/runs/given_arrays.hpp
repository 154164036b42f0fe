// What a caller has in memory in the place of files that `track` and `fit` would read: arrays of Python. An argument
// that has its array here is `given`, and its text is `in_memory`: whoever would read the file asks here first. The
// command line has none. It owns what was converted and refers to series and images, which may be large.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dmri/series/dwi_series.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"
#include "formats/volume_array.hpp"
#include "numerics/vec3.hpp"
#include "runs/background_hash.hpp"

namespace cingulum {

// The text of an argument whose value is an array.
inline constexpr const char* in_memory = "<array>";

// For the sidecar: which argument had an array, and the hash of that.
struct GivenInput {
  std::string option;
  std::shared_ptr<const BackgroundHash> hash;
};

struct GivenImage {
  ImageGeometry geometry;
  VolumeArray numbers;
};

struct GivenArrays {
  std::optional<SeriesHead> head;  // of the series
  VolumeArray series;
  std::optional<GivenImage> image;                     // of sf, sh, peaks or tensor, whichever is given
  nlohmann::ordered_json image_facts = nullptr;        // what a sidecar would say of it
  std::optional<std::vector<std::uint8_t>> mask = {};  // these three: one entry per voxel of series or image
  std::optional<std::vector<std::uint8_t>> seed_mask = {};
  std::optional<std::vector<float>> stop_map = {};
  std::optional<std::vector<numerics::Vec3d>> seeds = {};       // in the space that the arguments name
  std::optional<std::vector<numerics::Vec3d>> directions = {};  // likewise
  std::optional<Sphere> sphere = {};
  std::vector<GivenInput> inputs = {};
};

}  // namespace cingulum
