// The phantoms that have names: which bundles, in which tissue, in which box. Geometry only; phantom_signal.* makes
// images of it. World coordinates, RAS+ in mm, the middle of the box at the origin.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/phantom/phantom_bundle.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

enum class Tissue { air, grey_matter, fluid };

[[nodiscard]] std::string_view tissue_name(Tissue tissue);

struct TissueRegion {
  enum class Form { box, ellipsoid };
  Tissue tissue = Tissue::grey_matter;
  Form form = Form::box;
  numerics::Vec3d centre = {0, 0, 0};
  numerics::Vec3d half = {1, 1, 1};  // half edges or semi-axes

  [[nodiscard]] bool contains(numerics::Vec3d point) const;
  friend bool operator==(const TissueRegion&, const TissueRegion&) = default;
};

struct PhantomModel {
  std::string preset;
  std::string meaning = {};  // a sentence without the full stop
  std::vector<BundleShape> bundles = {};
  // Where no tube is: the last region that contains a point says what is there; air where none does.
  std::vector<TissueRegion> regions = {};
  numerics::Vec3d extent_mm = {80, 80, 60};  // of the field of view
  std::string scheme = "dirs64-b1000";
  double voxel_mm = 2;
};

struct PresetOptions {
  double angle_deg = 90;  // crossing
  double gap_mm = 1;      // kissing and deadend
};

[[nodiscard]] const std::vector<std::string>& phantom_preset_names();
[[nodiscard]] Result<PhantomModel> phantom_preset(std::string_view name, const PresetOptions& options);

// phantom_brain.cpp
[[nodiscard]] Result<PhantomModel> brain_phantom();

// A tube through control points (natural cubic spline) with a radius at each of them.
struct TubePoint {
  numerics::Vec3d position;
  double radius_mm;
};
[[nodiscard]] Result<BundleShape> spline_tube(std::string name, std::span<const TubePoint> points);

}  // namespace cingulum
