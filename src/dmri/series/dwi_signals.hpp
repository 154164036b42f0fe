// The signals of a diffusion series inside a mask, a record per voxel: what the models fit. Taken from an array, or
// read from NIfTI a few volumes at a time, so that the whole image is never held.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"
#include "formats/volume_array.hpp"

namespace cingulum {

struct DwiSignals {
  ImageGeometry geometry;
  std::vector<std::uint32_t> voxels;  // indices of the voxels of the mask, ascending
  std::size_t volumes = 0;            // numbers per voxel
  MappedVector<float> values;         // voxels.size() x volumes
  std::size_t replaced = 0;           // values that were not finite and became 0: contract, section 1
  std::vector<std::size_t> replaced_of_volume;

  [[nodiscard]] std::span<const float> record(std::size_t voxel) const {
    return std::span(values).subspan(voxel * volumes, volumes);
  }
};

// Only the given volumes (ascending; empty: all). `mask` has one entry per voxel of the image. The threads of a pool
// share the work.
[[nodiscard]] Result<DwiSignals> read_dwi_signals(const std::filesystem::path& series,
                                                  std::span<const std::uint8_t> mask,
                                                  std::span<const std::size_t> volumes = {},
                                                  const CancelToken& cancel = {}, ThreadPool* pool = nullptr);

// The same of an array, all volumes: only the voxels of the mask are read.
[[nodiscard]] Result<DwiSignals> take_dwi_signals(const ImageGeometry& geometry, const VolumeArray& series,
                                                  std::span<const std::uint8_t> mask, const CancelToken& cancel = {},
                                                  ThreadPool* pool = nullptr);

// Keeps some volumes (positions in the records, ascending) of the voxels that are not 0 in `voxels`, which has one
// entry per voxel of the image and may be empty: all. In place; memory that is no longer needed is given back. Counts
// of replaced values are those of the volumes, whatever the voxels.
void restrict_signals(DwiSignals& signals, std::span<const std::size_t> volumes,
                      std::span<const std::uint8_t> voxels = {});

}  // namespace cingulum
