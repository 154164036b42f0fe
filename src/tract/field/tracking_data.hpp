// What a run of tractography tracks, and where: the field with what is to be said of it, the stopping map, the mask.
// Made from a diffusion series (series_field.hpp) or from an image of amplitudes, harmonics, peaks or tensors
// (file_field.hpp); read by seeds, trackers, benches and Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "images/on_grid.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

struct PreparedField {
  Field field;
  nlohmann::ordered_json facts;       // for the sidecar: model, degree, shell, response, ...
  std::vector<std::string> warnings;  // that were logged: a kept fit repeats them
  double min_signal = 0;              // of OPDT and CSA, in units of the data: the plan of boot gets it
};

struct TrackingData {
  ImageGeometry geometry;
  PreparedField prepared;
  std::vector<float> stop_map;     // one number per voxel of the image
  std::vector<std::uint8_t> mask;  // one byte per voxel
  bool mask_made = false;          // from the series, since none was given
};

// A scalar map of one volume, resampled where it is on another grid.
[[nodiscard]] Result<std::vector<float>> read_stop_map(const std::filesystem::path& path, const NamedGrid& grid);

// Where the mask is 0 nothing passes.
void stop_outside(std::span<float> stop_map, std::span<const std::uint8_t> mask);

}  // namespace cingulum
