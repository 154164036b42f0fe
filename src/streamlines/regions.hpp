// Regions that streamlines are asked to meet, to avoid or to end in: masks from images on any grid, and spheres in
// world space. Called by the run's driver on whole streamlines in voxel space, the same for every device.
//
// A mask is met when a segment enters a voxel of it (exact traversal, voxel_traversal.hpp); a sphere, when a segment
// comes within its radius. All in float64 from the tracker's float32 points.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/vec3.hpp"
#include "streamlines/voxel_traversal.hpp"

namespace cingulum {

class Region {
 public:
  // A mask on its own grid. `tracking` is the geometry of the streamlines' voxel space.
  [[nodiscard]] static Result<Region> of_mask(std::string name, const ImageGeometry& grid,
                                              std::vector<std::uint8_t> mask, const ImageGeometry& tracking);
  // centre in world mm.
  [[nodiscard]] static Result<Region> of_sphere(std::string name, numerics::Vec3d centre_world, double radius_mm,
                                                const ImageGeometry& tracking);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool contains(numerics::Vec3d position) const;

  // Whether any point of the segment lies in the region.
  [[nodiscard]] bool meets(numerics::Vec3d from, numerics::Vec3d to) const;
  // Whether the segment goes from outside into the region; `inside` says whether its beginning lies inside, and is set
  // to whether its end does.
  [[nodiscard]] bool enters(numerics::Vec3d from, numerics::Vec3d to, bool& inside) const;

 private:
  [[nodiscard]] bool voxel_set(const VoxelIndex& voxel) const;
  [[nodiscard]] numerics::Vec3d to_grid(numerics::Vec3d position) const;
  [[nodiscard]] double square_distance(numerics::Vec3d from, numerics::Vec3d to) const;

  std::string name_;
  bool sphere_ = false;
  bool same_grid_ = false;
  Affine map_;  // from the streamlines' voxel space into the mask's, or for spheres into the world
  std::array<std::int64_t, 3> size_ = {};
  std::vector<std::uint8_t> mask_;
  numerics::Vec3d centre_ = {};
  double radius_ = 0;
};

// "x,y,z,r" in mm, world space, or the name of an image whose voxels above zero are the region.
[[nodiscard]] Result<Region> read_region(const std::string& text, const ImageGeometry& tracking);
// True where the text is a sphere and not a file.
[[nodiscard]] bool is_sphere_text(const std::string& text);

struct RegionRules {
  std::vector<Region> include = {};          // every one is met, in any order
  std::vector<Region> include_ordered = {};  // met one after the other, in this order or from the other end
  std::vector<Region> exclude = {};          // none is met
  std::vector<Region> stop = {};             // tracking ends where one is entered

  [[nodiscard]] bool judges() const { return !include.empty() || !include_ordered.empty() || !exclude.empty(); }
};

// `points` are x y z in voxel space. Include, ordered include and exclude; a streamline of one point is a segment
// without length.
[[nodiscard]] bool passes_rules(const RegionRules& rules, std::span<const float> points);

// The last point of the half that runs from point `seed` towards the first (step -1) or the last point (step +1): the
// end of the first segment that enters a stop region, which is kept; nothing where none is entered. A region in which
// the seed lies does not count until the streamline has left it.
[[nodiscard]] std::optional<std::size_t> stop_point(const std::vector<Region>& stop, std::span<const float> points,
                                                    std::size_t seed, int step);

}  // namespace cingulum
