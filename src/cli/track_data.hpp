// What `cingulum track` tracks, and where: the field and the stopping map of a diffusion series, or of a file of
// amplitudes, spherical harmonics, peaks or tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/track_devices.hpp"
#include "cli/track_series.hpp"
#include "cli/verb.hpp"
#include "formats/image_geometry.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

struct TrackingData {
  ImageGeometry geometry;
  PreparedField prepared;
  std::vector<float> stop_map;
  std::vector<std::uint8_t> mask;   // one byte per voxel
  std::filesystem::path made_mask;  // written beside the output
  std::string fitted_on;            // a device, or empty where nothing was fitted
};

// Whether --sf, --sh, --peaks or --tensor name what is tracked.
[[nodiscard]] bool is_field_file_run(const ParsedArguments& arguments);

// Without a mask one is made and written beside `out`. Models are fitted where it is tracked, where that can be.
[[nodiscard]] Result<TrackingData> prepare_series(const ParsedArguments& arguments, const SeriesPaths& paths,
                                                  Getter getter, const std::filesystem::path& out,
                                                  const WantedDevices& wanted, VerbContext& context);

[[nodiscard]] Result<TrackingData> prepare_file(const ParsedArguments& arguments, Getter getter, VerbContext& context);

// A mask on the grid of `data`; `option` names it where it is not.
[[nodiscard]] Result<std::vector<std::uint8_t>> read_mask_on(const std::filesystem::path& path, std::string_view option,
                                                             const ImageGeometry& geometry,
                                                             const std::filesystem::path& data);

}  // namespace cingulum
