// NIfTI images as OME-Zarr images and back. NIfTI's axes i, j, k are the last three dimensions of the array in the
// other order (z, y, x), as both have their bytes; a fourth axis is t. OME-Zarr has no place for an affine that turns:
// voxel sizes become the scale, and the affine and what else the header says are kept in the attribute
// `cingulum.nifti`, so that the way back gives the same data, type and affine. Images of others come back by their
// scale, translation and units. Called by `cingulum convert`.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "formats/nifti.hpp"
#include "zarr/hierarchy_copy.hpp"
#include "zarr/ome_zarr.hpp"

namespace cingulum::zarr {

struct NiftiConversionOptions {
  ThreadPool* pool = nullptr;
  RunContext run = {};
};

// What is to be written for an image, before any voxel is read.
struct NiftiImagePlan {
  int format = 3;
  std::vector<ArrayMetadata> levels;  // finest first
  std::string attributes;             // JSON text of the group, without the window
  std::vector<std::string> notes;

  [[nodiscard]] std::uint64_t needed_bytes() const;  // 0 where codecs compress
};
// `name` is the image's. `layout.chunks` and `layout.shards` are not used: they are chosen, a volume apart from the
// next.
[[nodiscard]] Result<NiftiImagePlan> plan_nifti_image(const NiftiHeader& header, const std::string& name,
                                                      const CopyLayout& layout, const PyramidChoice& pyramid);
// Reads all volumes and writes the image; a second time from the file, where the window needs it.
[[nodiscard]] Status write_nifti_image(const std::filesystem::path& nifti, const NiftiImagePlan& plan,
                                       StoreOutput& output, const NiftiConversionOptions& options);

// The finest level of an image, as NIfTI has it.
struct ImageForNifti {
  std::vector<Array> array;  // one
  std::vector<OmeAxis> axes;
  ImageGeometry geometry;
  std::vector<std::int64_t> further_axes;
  ElementType type;
  double slope = 1, intercept = 0;
  int intent_code = 0;
  std::string intent_name;
  std::string description;
  bool by_affine = false;          // the affine that was kept; else scale and translation
  std::vector<std::string> notes;  // what was guessed or could not be kept
};
[[nodiscard]] Result<ImageForNifti> open_for_nifti(const std::shared_ptr<const Store>& store, const std::string& group);
// `writer` was made for this image.
[[nodiscard]] Result<ReadReport> write_as_nifti(const ImageForNifti& image, NiftiWriter& writer, bool complete,
                                                const NiftiConversionOptions& options);

}  // namespace cingulum::zarr
