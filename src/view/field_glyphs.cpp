#include "view/field_glyphs.hpp"

#include <algorithm>
#include <span>

#include "dmri/sphere/convex_hull.hpp"
#include "view/field_slice.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// 362 corners and 720 triangles: enough for series of degree 8, whose lobes are 45 degrees wide.
constexpr std::string_view sphere_of_glyphs = "repulsion362-full";

}  // namespace

Result<FieldGlyphs> glyphs_of_slice(const Field& field, int axis, double mm, ThreadPool& pool) {
  if (field.kind != FieldKind::harmonics && field.kind != FieldKind::amplitudes) {
    return fail(ErrorKind::unavailable,
                "this field has no distribution of orientations: it is not of harmonics or amplitudes");
  }
  return catch_out_of_memory([&]() -> Result<FieldGlyphs> {
    CGL_TRY_ASSIGN(const FieldSlice slice, voxels_of_slice(field, axis, mm));
    CGL_TRY_ASSIGN(const Sphere sphere, named_sphere(sphere_of_glyphs));
    CGL_TRY_ASSIGN(const auto triangles, convex_hull_on_sphere(sphere.directions));
    FieldGlyphs glyphs;
    for (const auto& [a, b, c] : triangles) {
      glyphs.triangles.push_back(
          {static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b), static_cast<std::uint16_t>(c)});
    }
    for (const Vec3d corner : sphere.directions) {
      glyphs.directions.push_back(rounded(to_world_axes(field.geometry, corner)));
    }
    CGL_TRY_ASSIGN(const MappedVector<float> values,
                   amplitudes_of_records(field, slice.records, sphere.directions, pool));
    const std::size_t corners = sphere.size();
    for (std::size_t v = 0; v < slice.records.size(); ++v) {
      const float* const of = values.data() + v * corners;
      const float greatest = *std::max_element(of, of + corners);
      if (!(greatest > 0.0f)) continue;
      glyphs.centres.push_back(rounded(slice.centres[v]));
      glyphs.greatest.push_back(greatest);
      for (std::size_t i = 0; i < corners; ++i) {
        glyphs.amplitudes.push_back(static_cast<std::uint8_t>(std::max(of[i], 0.0f) / greatest * 255.0f + 0.5f));
      }
    }
    return glyphs;
  });
}

std::vector<std::byte> glyph_bytes(const FieldGlyphs& glyphs) {
  const std::uint32_t counts[] = {static_cast<std::uint32_t>(glyphs.centres.size()),
                                  static_cast<std::uint32_t>(glyphs.directions.size()),
                                  static_cast<std::uint32_t>(glyphs.triangles.size())};
  const std::span<const std::byte> parts[] = {
      std::as_bytes(std::span(counts)),           std::as_bytes(std::span(glyphs.directions)),
      std::as_bytes(std::span(glyphs.centres)),   std::as_bytes(std::span(glyphs.greatest)),
      std::as_bytes(std::span(glyphs.triangles)), std::as_bytes(std::span(glyphs.amplitudes))};
  std::size_t total = 0;
  for (const auto& part : parts) total += part.size();
  std::vector<std::byte> bytes(total);
  auto at = bytes.begin();
  for (const auto& part : parts) at = std::copy(part.begin(), part.end(), at);
  return bytes;
}

}  // namespace cingulum
