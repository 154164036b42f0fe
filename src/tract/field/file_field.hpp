// The field that is tracked, from files: amplitudes on a sphere, spherical harmonics, peaks or tensors that `cingulum
// fit`, DIPY, MRtrix3 or anyone else wrote. Called by `cingulum track` and Python. What a file means (basis, frame,
// order) is said by the caller, else by the file's sidecar, else by the defaults of `cingulum track`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/nifti.hpp"
#include "formats/volume_array.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"
#include "tract/field/given_peaks.hpp"
#include "tract/field/tracking_data.hpp"

namespace cingulum {

enum class FieldFileKind { amplitudes, harmonics, peaks, tensor };

struct FieldFileRequest {
  FieldFileKind kind = FieldFileKind::amplitudes;
  std::filesystem::path path;
  std::optional<std::string> basis = {};         // tournier07, descoteaux07, descoteaux07-legacy
  std::optional<std::string> frame = {};         // image, world
  std::optional<std::string> tensor_order = {};  // mrtrix, dipy, fsl
  bool amplitudes = false;                       // sample harmonics once on the sphere, clipped at zero
  PeakSelection peaks = {};                      // which of given peaks count
  // What peaks without a word about their frame are in; refused where there is none and the two frames differ.
  std::optional<std::string> frame_of_silent_peaks = {};
};

// An image whose voxels hold what will be tracked, before a stopping map is known.
struct FieldFile {
  Image image;
  VolumeArray array;  // in the place of image.values: a caller's, who keeps it
  FieldFileRequest request;
  std::string basis;
  int degree = 0;           // of harmonics, by the number of volumes
  bool full_basis = false;  // harmonics of all degrees, odd ones too: asymmetric functions
  std::string frame;
  std::string tensor_order;
  bool oriented = true;  // the header has an sform or a qform

  [[nodiscard]] VolumeArray numbers() const {
    return array.empty() ? VolumeArray(image.values, static_cast<std::size_t>(image.geometry.voxel_count())) : array;
  }
};

// Reads the image and its sidecar and settles what the numbers mean. The threads of a pool share the reading.
[[nodiscard]] Result<FieldFile> read_field_file(const FieldFileRequest& request, ThreadPool* pool = nullptr);

// The same of an image in memory; request.path is but its name in messages. `sidecar` is what such a file would say of
// itself, an object or null.
[[nodiscard]] Result<FieldFile> take_field_image(Image image, const FieldFileRequest& request,
                                                 const nlohmann::ordered_json& sidecar = nullptr);
// The same of an array that stays where it is until the field is made.
[[nodiscard]] Result<FieldFile> take_field_array(const ImageGeometry& geometry, const VolumeArray& array,
                                                 const FieldFileRequest& request,
                                                 const nlohmann::ordered_json& sidecar = nullptr);

// The series of the file: its basis, and the directions of the sphere in the axes of its coefficients.
struct SampledHarmonics {
  numerics::HarmonicBasis basis = {};
  std::vector<numerics::Vec3d> directions;
};
[[nodiscard]] Result<SampledHarmonics> harmonics_of_file(const FieldFile& file, const Sphere& sphere);

// FA of the tensors of a tensor file, one number per voxel; from any other file 1 where a voxel has a number that is
// not zero, else 0.
[[nodiscard]] Result<std::vector<float>> default_stop_map(const FieldFile& file, ThreadPool* pool = nullptr);

// Voxels outside `mask` are not stored; everything is where it is empty. Harmonics of a full basis are sampled once,
// and take a whole sphere.
[[nodiscard]] Result<PreparedField> make_file_field(const FieldFile& file, std::span<const float> stop_map,
                                                    std::span<const std::uint8_t> mask, Sphere sphere,
                                                    ThreadPool& pool);

// All that a run tracks of it. `mask` empty: everywhere. `stop_map` empty: that of the file.
[[nodiscard]] Result<TrackingData> make_file_tracking_data(const FieldFile& file, std::vector<std::uint8_t> mask,
                                                           std::vector<float> stop_map, Sphere sphere,
                                                           ThreadPool& pool);

}  // namespace cingulum
