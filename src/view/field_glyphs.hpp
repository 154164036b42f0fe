// Orientation distributions of the voxels of one slice, as shapes that a page can draw: amplitudes on the corners of a
// sphere of triangles, all voxels the same sphere. From the field that is tracked, so what is seen is what streamlines
// follow. Called by the server of `cingulum view`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "numerics/vec3.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

struct FieldGlyphs {
  std::vector<numerics::Vec3> directions;  // corners of the sphere, unit length, world axes
  std::vector<std::array<std::uint16_t, 3>> triangles;
  std::vector<numerics::Vec3> centres;   // of the voxels, world, mm
  std::vector<float> greatest;           // amplitude of each voxel
  std::vector<std::uint8_t> amplitudes;  // of each voxel and corner, 255 the greatest of the voxel; negative ones are 0
};

// Voxels whose centre is at most half a voxel from the plane at `mm` along the world's `axis` (0 to 2), in order of the
// grid; those without an amplitude above zero are left out. Of harmonics and amplitudes; other fields have no
// distribution.
[[nodiscard]] Result<FieldGlyphs> glyphs_of_slice(const Field& field, int axis, double mm, ThreadPool& pool);

// As the page reads them (docs/view.md, "Glyphs"), little-endian.
[[nodiscard]] std::vector<std::byte> glyph_bytes(const FieldGlyphs& glyphs);

}  // namespace cingulum
