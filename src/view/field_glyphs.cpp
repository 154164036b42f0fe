#include "view/field_glyphs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "dmri/models/spherical_function.hpp"
#include "numerics/float16.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

struct TriangleSphere {
  std::vector<Vec3d> corners;
  std::vector<std::array<std::uint16_t, 3>> triangles;
};

// The icosahedron with every triangle cut into four, twice: 162 corners, 320 triangles. Enough for series of degree 8,
// whose lobes are 45 degrees wide.
TriangleSphere triangle_sphere() {
  const double golden = (1 + std::sqrt(5.0)) / 2;
  TriangleSphere sphere;
  for (const double a : {-1.0, 1.0}) {
    for (const double b : {-golden, golden}) {
      for (const Vec3d corner : {Vec3d{0, a, b}, Vec3d{a, b, 0}, Vec3d{b, 0, a}}) {
        sphere.corners.push_back(corner * (1 / length(corner)));
      }
    }
  }
  // Corners of an edge are nearer to each other than any others.
  const double edge = 4.0 / (1 + golden * golden) * 1.001;
  const auto joined = [&](std::size_t a, std::size_t b) {
    const Vec3d between = sphere.corners[a] - sphere.corners[b];
    return dot(between, between) < edge;
  };
  for (std::uint16_t a = 0; a < 12; ++a) {
    for (auto b = static_cast<std::uint16_t>(a + 1); b < 12; ++b) {
      for (auto c = static_cast<std::uint16_t>(b + 1); c < 12; ++c) {
        if (joined(a, b) && joined(b, c) && joined(a, c)) sphere.triangles.push_back({a, b, c});
      }
    }
  }
  for (int round = 0; round < 2; ++round) {
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint16_t> middles;
    const auto middle = [&](std::uint16_t a, std::uint16_t b) {
      const auto [found, is_new] =
          middles.emplace(std::minmax(a, b), static_cast<std::uint16_t>(sphere.corners.size()));
      if (is_new) {
        const Vec3d sum = sphere.corners[a] + sphere.corners[b];
        sphere.corners.push_back(sum * (1 / length(sum)));
      }
      return found->second;
    };
    std::vector<std::array<std::uint16_t, 3>> smaller;
    for (const auto& [a, b, c] : sphere.triangles) {
      const std::uint16_t ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
      smaller.insert(smaller.end(), {{a, ab, ca}, {ab, b, bc}, {ca, bc, c}, {ab, bc, ca}});
    }
    sphere.triangles = std::move(smaller);
  }
  return sphere;
}

// Numbers of a voxel's record.
class RecordReader {
 public:
  explicit RecordReader(const Field& field) : field_(field) {}

  [[nodiscard]] float at(std::uint32_t record, std::size_t channel) const {
    const std::size_t place = std::size_t{record} * field_.stride + channel;
    if (!field_.is_float16()) return field_.records[place];
    return numerics::finite_float16_to_float(field_.float16_records[place]);
  }

 private:
  const Field& field_;
};

// For each corner the direction of the field's sphere that is nearest to it, either way on a hemisphere.
std::vector<std::uint32_t> nearest_directions(const Sphere& sphere, const std::vector<Vec3d>& corners) {
  std::vector<std::uint32_t> nearest;
  for (const Vec3d corner : corners) {
    const auto closeness = [&](Vec3d direction) {
      const double cosine = dot(direction, corner);
      return sphere.is_hemisphere ? std::abs(cosine) : cosine;
    };
    const auto best = std::max_element(sphere.directions.begin(), sphere.directions.end(),
                                       [&](Vec3d a, Vec3d b) { return closeness(a) < closeness(b); });
    nearest.push_back(static_cast<std::uint32_t>(best - sphere.directions.begin()));
  }
  return nearest;
}

Result<BulkVector<float>> amplitudes_of(const Field& field, const std::vector<std::uint32_t>& records,
                                        const std::vector<Vec3d>& corners, ThreadPool& pool) {
  const RecordReader reader(field);
  if (field.kind == FieldKind::amplitudes) {
    const std::vector<std::uint32_t> nearest = nearest_directions(field.sphere, corners);
    BulkVector<float> values;
    values.reserve(records.size() * corners.size());
    for (const std::uint32_t record : records) {
      for (const std::uint32_t direction : nearest) values.push_back(reader.at(record, direction));
    }
    return values;
  }
  constexpr auto convention = numerics::HarmonicConvention::descoteaux07_legacy;
  const std::size_t count = field.channels;
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t j = 0; j < count; ++j) order[j] = j;
  if (field.sphere.mirror_symmetric) numerics::sort_by_mirror_class(convention, field.degree, order.data());
  std::vector<float> coefficients(records.size() * count);
  for (std::size_t v = 0; v < records.size(); ++v) {
    for (std::size_t j = 0; j < count; ++j) coefficients[v * count + order[j]] = reader.at(records[v], j);
  }
  return sample_harmonics({convention, field.degree, false}, coefficients, corners, true, FitMachine(pool));
}

// How far the plane may be from the centre of a voxel that it cuts: half of what its edges span along the axis.
double half_extent(const Affine& affine, int axis) {
  return 0.5 * (std::abs(affine.at(axis, 0)) + std::abs(affine.at(axis, 1)) + std::abs(affine.at(axis, 2)));
}

numerics::Vec3 rounded(Vec3d v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
}

}  // namespace

Result<FieldGlyphs> glyphs_of_slice(const Field& field, int axis, double mm, ThreadPool& pool) {
  if (axis < 0 || axis > 2) return fail(ErrorKind::invalid_argument, "axis {}: 0, 1 and 2 are accepted", axis);
  if (!std::isfinite(mm)) return fail(ErrorKind::invalid_argument, "a slice at {} mm: a finite place is needed", mm);
  if (field.kind != FieldKind::harmonics && field.kind != FieldKind::amplitudes) {
    return fail(ErrorKind::unavailable,
                "this field has no distribution of orientations: it is not of harmonics or amplitudes");
  }
  return catch_out_of_memory([&]() -> Result<FieldGlyphs> {
    const ImageGeometry& grid = field.geometry;
    const Affine& affine = grid.voxel_to_world;
    const double reach = half_extent(affine, axis);
    FieldGlyphs glyphs;
    std::vector<std::uint32_t> records;
    for (std::int64_t k = 0; k < grid.size[2]; ++k) {
      for (std::int64_t j = 0; j < grid.size[1]; ++j) {
        for (std::int64_t i = 0; i < grid.size[0]; ++i) {
          const std::uint32_t record = field.record_of_voxel[static_cast<std::size_t>(voxel_index(grid, i, j, k))];
          if (record == 0) continue;
          const Vec3d centre = affine.apply({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)});
          const double along = axis == 0 ? centre.x : axis == 1 ? centre.y : centre.z;
          // Half open: a plane between two layers belongs to one of them.
          if (along - mm > reach || along - mm <= -reach) continue;
          glyphs.centres.push_back(rounded(centre));
          records.push_back(record);
        }
      }
    }
    const TriangleSphere sphere = triangle_sphere();
    glyphs.triangles = sphere.triangles;
    const auto edges = grid.voxel_mm();
    for (const Vec3d corner : sphere.corners) {
      // Records are in image axes: unit vectors along the columns of the affine.
      glyphs.directions.push_back(
          rounded(affine.rotate({corner.x / edges[0], corner.y / edges[1], corner.z / edges[2]})));
    }
    CGL_TRY_ASSIGN(const BulkVector<float> values, amplitudes_of(field, records, sphere.corners, pool));
    const std::size_t corners = sphere.corners.size();
    std::size_t kept = 0;
    for (std::size_t v = 0; v < records.size(); ++v) {
      const float* const of = values.data() + v * corners;
      const float greatest = *std::max_element(of, of + corners);
      if (!(greatest > 0.0f)) continue;
      glyphs.centres[kept++] = glyphs.centres[v];
      glyphs.greatest.push_back(greatest);
      for (std::size_t i = 0; i < corners; ++i) {
        glyphs.amplitudes.push_back(static_cast<std::uint8_t>(std::max(of[i], 0.0f) / greatest * 255.0f + 0.5f));
      }
    }
    glyphs.centres.resize(kept);
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
