// A prepared series as a file: the mask, the stopping map and the field that the tracker reads, so that a run begins to
// track at once, here or on another machine. It carries the key that says of which inputs and parameters it was made,
// and a checksum over all its bytes. Kept by fit_cache.hpp; `cingulum track --prepare` writes one by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"
#include "tract/field/tracking_data.hpp"

namespace cingulum {

struct FitDescription {
  nlohmann::ordered_json key;    // equal keys are equal results
  nlohmann::ordered_json about;  // for whoever keeps it; has no part in the result
};

struct KeptFit {
  PreparedField prepared;
  std::vector<float> stop_map;
  std::vector<std::uint8_t> mask;  // one byte per voxel
};

// A KeptFit that is still in use elsewhere.
struct FitView {
  const PreparedField& prepared;
  const std::vector<float>& stop_map;
  const std::vector<std::uint8_t>& mask;
};

// Reads the head alone: the checksum is compared by read_fit_file(). Failures of both have the kind corrupt and no
// path.
[[nodiscard]] Result<FitDescription> read_fit_description(const std::filesystem::path& path);
// Sphere and geometry are not stored, since the key determines them; they become those of the field. Fails where the
// key in the file is another, or anything is damaged.
[[nodiscard]] Result<KeptFit> read_fit_file(const std::filesystem::path& path, const nlohmann::ordered_json& key,
                                            const ImageGeometry& geometry, const Sphere& sphere);
[[nodiscard]] Status write_fit_file(const std::filesystem::path& path, const FitDescription& said, const FitView& fit,
                                    const WriteOptions& options);

}  // namespace cingulum
