// The voxels of a field that a plane cuts, and what they hold: what the pictures of a slice are made of. Called by
// field_glyphs and field_peaks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "numerics/vec3.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

struct FieldSlice {
  std::vector<numerics::Vec3d> centres;  // of the voxels, world, mm
  std::vector<std::uint32_t> records;    // of the same voxels
};

// Voxels whose centre is at most half a voxel from the plane at `mm` along the world's `axis` (0 to 2), in order of the
// grid. A plane between two layers belongs to one of them.
[[nodiscard]] Result<FieldSlice> voxels_of_slice(const Field& field, int axis, double mm);

// A number of a record, whatever its precision.
[[nodiscard]] float number_of_record(const Field& field, std::uint32_t record, std::size_t channel);

// directions.size() numbers of each record, of a field of harmonics, clipped at zero, or of amplitudes, where they are
// those of the nearest direction of the field's sphere. Directions are in image axes.
[[nodiscard]] Result<MappedVector<float>> amplitudes_of_records(const Field& field,
                                                                std::span<const std::uint32_t> records,
                                                                const std::vector<numerics::Vec3d>& directions,
                                                                ThreadPool& pool);

// A vector of image axes in those of the world.
[[nodiscard]] numerics::Vec3d to_world_axes(const ImageGeometry& grid, numerics::Vec3d in_image);

[[nodiscard]] inline numerics::Vec3 rounded(numerics::Vec3d v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
}

}  // namespace cingulum
