#include "streamlines/regions.hpp"

#include <algorithm>

#include "formats/nifti.hpp"
#include "numerics/elementary64.hpp"
#include "streamlines/sphere_text.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

Vec3d point_at(std::span<const float> points, std::size_t index) {
  return {points[3 * index], points[3 * index + 1], points[3 * index + 2]};
}

// The regions met from one end of a streamline, each looked for behind the place where the one before it was met. A
// segment that meets several counts for as many of them as come next.
bool met_in_order(const std::vector<Region>& regions, std::span<const float> points, bool reversed) {
  const std::size_t count = points.size() / 3;
  const auto at = [&](std::size_t i) { return point_at(points, reversed ? count - 1 - i : i); };
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(count - 1, 1) && next < regions.size(); ++i) {
    const Vec3d from = at(i);
    const Vec3d to = at(std::min(i + 1, count - 1));
    while (next < regions.size() && regions[next].meets(from, to)) ++next;
  }
  return next == regions.size();
}

bool met(const Region& region, std::span<const float> points) {
  const std::size_t count = points.size() / 3;
  for (std::size_t i = 0; i < std::max<std::size_t>(count - 1, 1); ++i) {
    if (region.meets(point_at(points, i), point_at(points, std::min(i + 1, count - 1)))) return true;
  }
  return false;
}

}  // namespace

Result<Region> Region::of_mask(std::string name, const ImageGeometry& grid, std::vector<std::uint8_t> mask,
                               const ImageGeometry& tracking) {
  if (mask.size() != static_cast<std::size_t>(grid.voxel_count())) {
    return fail(ErrorKind::invalid_argument, "region {}: {} values for a grid of {} voxels", name, mask.size(),
                grid.voxel_count());
  }
  if (std::none_of(mask.begin(), mask.end(), [](std::uint8_t value) { return value != 0; })) {
    return fail(ErrorKind::invalid_argument, "region {}: no voxel is above zero", name);
  }
  Region region;
  region.name_ = std::move(name);
  region.same_grid_ = grid.voxel_to_world == tracking.voxel_to_world;
  if (!region.same_grid_) {
    CGL_TRY_ASSIGN(const Affine world_to_grid, grid.voxel_to_world.inverse());
    region.map_ = compose(world_to_grid, tracking.voxel_to_world);
  }
  region.size_ = grid.size;
  region.mask_ = std::move(mask);
  return region;
}

Result<Region> Region::of_sphere(std::string name, Vec3d centre_world, double radius_mm,
                                 const ImageGeometry& tracking) {
  for (const double x : {centre_world.x, centre_world.y, centre_world.z}) {
    if (!(numerics::absolute(x) <= 1e6)) {
      return fail(ErrorKind::invalid_argument, "region {}: centre {} mm: accepted is -1000000 to 1000000 mm", name, x);
    }
  }
  if (!(radius_mm > 0 && radius_mm <= 1e6)) {
    return fail(ErrorKind::invalid_argument, "region {}: radius {} mm: accepted is more than 0, at most 1000000 mm",
                name, radius_mm);
  }
  Region region;
  region.name_ = std::move(name);
  region.sphere_ = true;
  region.map_ = tracking.voxel_to_world;
  region.centre_ = centre_world;
  region.radius_ = radius_mm;
  return region;
}

Vec3d Region::to_grid(Vec3d position) const {
  return same_grid_ ? position : map_.apply(position);
}

bool Region::voxel_set(const VoxelIndex& voxel) const {
  if (voxel.i < 0 || voxel.j < 0 || voxel.k < 0) return false;
  if (voxel.i >= size_[0] || voxel.j >= size_[1] || voxel.k >= size_[2]) return false;
  return mask_[static_cast<std::size_t>(voxel.i + size_[0] * (voxel.j + size_[1] * voxel.k))] != 0;
}

// From the centre to the nearest point of the segment, in world space.
double Region::square_distance(Vec3d from, Vec3d to) const {
  const Vec3d along = to - from;
  const Vec3d towards = centre_ - from;
  const double square = dot(along, along);
  double t = square > 0 ? dot(towards, along) / square : 0;
  t = t < 0 ? 0 : (t > 1 ? 1 : t);
  const Vec3d away = towards - along * t;
  return dot(away, away);
}

bool Region::contains(Vec3d position) const {
  const Vec3d mapped = to_grid(position);
  if (sphere_) return square_distance(mapped, mapped) <= radius_ * radius_;
  return voxel_set(voxel_of(mapped));
}

bool Region::meets(Vec3d from, Vec3d to) const {
  const Vec3d a = to_grid(from);
  const Vec3d b = to_grid(to);
  if (sphere_) return square_distance(a, b) <= radius_ * radius_;
  bool found = false;
  traverse_voxels(a, b, [&](const VoxelIndex& voxel) {
    found = voxel_set(voxel);
    return !found;
  });
  return found;
}

bool Region::enters(Vec3d from, Vec3d to, bool& inside) const {
  const bool began_inside = inside;
  if (sphere_) {
    const Vec3d a = to_grid(from);
    const Vec3d b = to_grid(to);
    inside = square_distance(b, b) <= radius_ * radius_;
    // A sphere is convex: a segment that begins inside cannot leave and come back.
    return !began_inside && square_distance(a, b) <= radius_ * radius_;
  }
  bool entered = false;
  traverse_voxels(to_grid(from), to_grid(to), [&](const VoxelIndex& voxel) {
    const bool set = voxel_set(voxel);
    entered = entered || (set && !inside);
    inside = set;
    return true;
  });
  return entered;
}

bool is_sphere_text(const std::string& text) {
  return parse_sphere(text).has_value();
}

Result<Region> read_region(const std::string& text, const ImageGeometry& tracking) {
  if (const auto sphere = parse_sphere(text)) {
    return Region::of_sphere(text, sphere->centre_world, sphere->radius_mm, tracking);
  }
  ImageGeometry grid;
  auto mask = read_mask(text, grid);
  if (!mask) {
    return add_context(Result<Region>(tl::make_unexpected(std::move(mask.error()))),
                       "region '{}' (an image, or a sphere x,y,z,r in mm)", text);
  }
  return Region::of_mask(text, grid, std::move(*mask), tracking);
}

bool passes_rules(const RegionRules& rules, std::span<const float> points) {
  if (points.empty()) return false;
  for (const Region& region : rules.exclude) {
    if (met(region, points)) return false;
  }
  for (const Region& region : rules.include) {
    if (!met(region, points)) return false;
  }
  return rules.include_ordered.empty() || met_in_order(rules.include_ordered, points, false) ||
         met_in_order(rules.include_ordered, points, true);
}

std::optional<std::size_t> stop_point(const std::vector<Region>& stop, std::span<const float> points, std::size_t seed,
                                      int step) {
  const std::size_t count = points.size() / 3;
  const std::size_t segments = step > 0 ? count - 1 - seed : seed;
  std::optional<std::size_t> first;
  std::size_t limit = segments;  // of a later region only what comes before the earliest entry so far matters
  for (const Region& region : stop) {
    bool inside = region.contains(point_at(points, seed));
    for (std::size_t i = 0; i < limit; ++i) {
      const std::size_t a = step > 0 ? seed + i : seed - i;
      const std::size_t b = step > 0 ? a + 1 : a - 1;
      if (!region.enters(point_at(points, a), point_at(points, b), inside)) continue;
      first = b;
      limit = i;
      break;
    }
  }
  return first;
}

}  // namespace cingulum
